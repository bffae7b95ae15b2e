// SPDX-License-Identifier: Apache-2.0
// Interrupts of threads that wait for a save or load.
package io.shardwright;

import io.shardwright.collective.Collective;
import io.shardwright.errors.CancelledException;
import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.storage.ObjectStat;
import io.shardwright.storage.Storage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


@Timeout(60)
class InterruptTest {
    /** A thread with a call, what the call threw and whether the thread was still interrupted after it. */
    private static final class Caller {
        final AtomicReference<Throwable> thrown = new AtomicReference<>();
        final AtomicBoolean interrupted = new AtomicBoolean();
        final Thread thread;

        Caller(Runnable call) {
            thread = new Thread(() -> {
                try {
                    call.run();
                } catch (Throwable e) {
                    thrown.set(e);
                }
                interrupted.set(Thread.currentThread().isInterrupted());
            });
            thread.start();
        }

        /** Interrupts and returns when the library was told. */
        void interrupt() {
            long before = WaitingCall.cancelledCalls();
            thread.interrupt();
            while (WaitingCall.cancelledCalls() == before) {
                assertFalse(Thread.currentThread().isInterrupted(), "the library was not told in time");
                Thread.yield();
            }
        }

        void assertCancelled() throws InterruptedException {
            thread.join();
            assertInstanceOf(CancelledException.class, thrown.get());
            assertTrue(interrupted.get(), "the thread stays interrupted");
        }
    }

    private static State weights(float... values) {
        return State.builder().add("w", values).build();
    }

    private static void saveUngated(GatedStorage host, Storage storage) {
        host.armed = false;
        try (State state = weights(1, 2)) {
            Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
        }
        host.armed = true;
    }

    private static void assertWhole(GatedStorage host, Storage storage) {
        host.armed = false;
        float[] target = new float[2];
        try (State into = weights(target)) {
            Shardwright.loadInto(into, Location.of(storage, "p"), new LoadOptions());
        }
        assertArrayEquals(new float[] {1, 2}, target);
    }

    @Test
    void aBlockedSaveIsCancelledAndTheOldCheckpointStays() throws InterruptedException {
        GatedStorage host = new GatedStorage();
        try (Storage storage = Storage.host(host); State state = weights(3, 4)) {
            saveUngated(host, storage);
            List<String> before = storage.list("p/");
            Caller caller = new Caller(() -> Shardwright.save(state, Location.of(storage, "p"), new SaveOptions()));
            host.entered.await();
            caller.interrupt();
            host.gate.countDown();
            caller.assertCancelled();
            assertTrue(storage.list("p/").equals(before), "nothing of the cancelled save is left");
            assertWhole(host, storage);
        }
    }

    @Test
    void aBlockedLoadIsCancelledAndHeapArraysStay() throws InterruptedException {
        GatedStorage host = new GatedStorage();
        float[] target = {7, 8};
        try (Storage storage = Storage.host(host); State into = weights(target)) {
            saveUngated(host, storage);
            Caller caller = new Caller(() -> Shardwright.loadInto(into, Location.of(storage, "p"), new LoadOptions()));
            host.entered.await();
            caller.interrupt();
            host.gate.countDown();
            caller.assertCancelled();
            assertArrayEquals(new float[] {7, 8}, target);
            assertWhole(host, storage);
        }
    }

    @Test
    void aBlockedLoadWithoutTargetIsCancelled() throws InterruptedException {
        GatedStorage host = new GatedStorage();
        try (Storage storage = Storage.host(host)) {
            saveUngated(host, storage);
            Caller caller = new Caller(() -> Shardwright.load(Location.of(storage, "p"), new LoadOptions()).close());
            host.entered.await();
            caller.interrupt();
            host.gate.countDown();
            caller.assertCancelled();
        }
    }

    /** Uses a channel, which wants to know of interrupts for itself. */
    private static final class ChannelStorage extends GatedStorage {
        final Set<Thread> users = ConcurrentHashMap.newKeySet();
        private final Path file;

        ChannelStorage(Path file) {
            this.file = file;
        }

        @Override
        public ObjectStat stat(String key) {
            users.add(Thread.currentThread());
            try (FileChannel channel = FileChannel.open(file)) {
                channel.read(ByteBuffer.allocate(1));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return super.stat(key);
        }
    }

    @Test
    void anInterruptIsNoticedAfterTheHostUsedAChannel(@TempDir Path folder) throws Exception {
        ChannelStorage host = new ChannelStorage(Files.writeString(folder.resolve("file"), "x"));
        float[] target = {7, 8};
        try (Storage storage = Storage.host(host); State into = weights(target)) {
            saveUngated(host, storage);
            Caller caller = new Caller(() -> Shardwright.loadInto(into, Location.of(storage, "p"), new LoadOptions()));
            host.entered.await();
            assertTrue(host.users.contains(caller.thread), "the call's own thread used the channel");
            caller.interrupt();
            host.gate.countDown();
            caller.assertCancelled();
            assertArrayEquals(new float[] {7, 8}, target);
        }
    }

    @Test
    void aCallThatIsRefusedInsideOfAnotherLeavesThatItsInterrupt() throws InterruptedException {
        State more = weights(1);
        GatedStorage host = new GatedStorage() {
            @Override
            public ObjectStat stat(String key) {
                assertThrows(FailedPreconditionException.class,
                        () -> Shardwright.save(more, Location.of(Path.of("never")), new SaveOptions()));
                return super.stat(key);
            }
        };
        try (more; Storage storage = Storage.host(host); State into = weights(7, 8)) {
            saveUngated(host, storage);
            Caller caller = new Caller(() -> Shardwright.loadInto(into, Location.of(storage, "p"), new LoadOptions()));
            host.entered.await();
            caller.interrupt();
            host.gate.countDown();
            caller.assertCancelled();
        }
    }

    @Test
    void aThreadThatIsInterruptedAlreadyBeginsNothing() {
        try (Storage storage = Storage.memory(); State state = weights(1)) {
            Thread.currentThread().interrupt();
            assertThrows(CancelledException.class, () -> Shardwright.save(state, Location.of(storage, "p"), new SaveOptions()));
            assertTrue(Thread.interrupted());
            assertTrue(storage.list("").isEmpty());
            Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
            assertFalse(Thread.interrupted());
        }
    }

    @Test
    void aRankThatWaitsForOthersIsWokenWithThem() throws InterruptedException {
        List<Collective> ends = Collective.threads(3);
        try (Storage storage = Storage.memory(); State first = weights(1); State second = weights(1)) {
            Caller other = new Caller(() ->
                    Shardwright.save(first, Location.of(storage, "p"), new SaveOptions().collective(ends.get(0))));
            Caller caller = new Caller(() ->
                    Shardwright.save(second, Location.of(storage, "p"), new SaveOptions().collective(ends.get(1))));
            caller.interrupt(); // the third rank never comes
            caller.assertCancelled();
            other.thread.join();
            assertInstanceOf(CancelledException.class, other.thrown.get());
            assertFalse(other.interrupted.get());
            assertTrue(storage.list("").isEmpty());
        }
        ends.forEach(Collective::close);
    }

    @Test
    void aCallThatIsNotInterruptedIsLeftAlone() throws InterruptedException {
        GatedStorage host = new GatedStorage();
        try (Storage storage = Storage.host(host); State state = weights(1, 2); State more = weights(5)) {
            Caller caller = new Caller(() -> Shardwright.save(state, Location.of(storage, "p"), new SaveOptions()));
            host.entered.await();
            Thread.currentThread().interrupt();
            assertThrows(CancelledException.class, () -> Shardwright.save(more, Location.of(storage, "q"), new SaveOptions()));
            assertTrue(Thread.interrupted());
            host.gate.countDown();
            caller.thread.join();
            assertNull(caller.thrown.get());
            assertFalse(caller.interrupted.get());
            assertWhole(host, storage);
        }
    }
}
