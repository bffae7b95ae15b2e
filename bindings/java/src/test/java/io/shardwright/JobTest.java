// SPDX-License-Identifier: Apache-2.0
// Saves and loads in the background.
package io.shardwright;

import java.util.List;
import java.util.Collections;
import java.util.ArrayList;
import io.shardwright.errors.CancelledException;
import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.storage.Storage;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


@Timeout(60)
class JobTest {
    private static final Duration LONG = Duration.ofSeconds(30);

    private static State weights(float... values) {
        return State.builder().add("w", values).build();
    }

    @Test
    void aJobEndsWithItsReport() throws Exception {
        float[] target = new float[2];
        try (Storage storage = Storage.memory(); State state = weights(1, 2); State into = weights(target)) {
            try (Job job = Shardwright.saveAsync(state, Location.of(storage, "p"), new SaveOptions())) {
                assertTrue(job.awaitStaged(LONG));
                assertTrue(job.await().bytes() >= 8);
                assertEquals(JobState.SUCCEEDED, job.state());
                assertTrue(job.progress().bytesDone() >= 8);
                assertSame(job.await(), job.future().get(30, TimeUnit.SECONDS));
            }
            Shardwright.loadAsync(into, Location.of(storage, "p"), new LoadOptions()).future().get(30, TimeUnit.SECONDS);
        }
        assertArrayEquals(new float[] {1, 2}, target);
    }

    @Test
    void aJobThatFailsGivesItsError() {
        try (Storage storage = Storage.memory(); State into = weights(1);
                Job job = Shardwright.loadAsync(into, Location.of(storage, "p"), new LoadOptions())) {
            NotFoundException e = assertThrows(NotFoundException.class, job::await);
            assertSame(e, assertThrows(NotFoundException.class, job::await));
            ExecutionException wrapped = assertThrows(ExecutionException.class, () -> job.future().get(30, TimeUnit.SECONDS));
            assertSame(e, wrapped.getCause());
            assertEquals(JobState.FAILED, job.state());
        }
    }

    @Test
    void anExceptionOfTheHostEndsAJobAsItself() {
        UnsupportedOperationException mine = new UnsupportedOperationException("mine");
        try (Storage storage = Storage.host(new MapStorage() {
            @Override
            void beforeWrite() {
                throw mine;
            }
        }); State state = weights(1); Job job = Shardwright.saveAsync(state, Location.of(storage, "p"), new SaveOptions())) {
            ExecutionException e = assertThrows(ExecutionException.class, () -> job.future().get(30, TimeUnit.SECONDS));
            assertSame(mine, e.getCause());
        }
    }

    @Test
    void aWaitEndsWhenItsTimePassed() throws Exception {
        GatedStorage host = new GatedStorage();
        try (Storage storage = Storage.host(host); State state = weights(1);
                Job job = Shardwright.saveAsync(state, Location.of(storage, "p"), new SaveOptions())) {
            host.entered.await();
            assertFalse(job.await(Duration.ofMillis(5)));
            assertFalse(job.isDone());
            assertThrows(FailedPreconditionException.class, job::report);
            host.gate.countDown();
            assertTrue(job.await(LONG));
        }
    }

    @Test
    void anInterruptCancelsTheJobAndWaitsForItsEnd() throws Exception {
        GatedStorage host = new GatedStorage();
        AtomicReference<Throwable> outcome = new AtomicReference<>();
        try (Storage storage = Storage.host(host); State state = weights(1);
                Job job = Shardwright.saveAsync(state, Location.of(storage, "p"), new SaveOptions())) {
            Thread waiter = new Thread(() -> {
                try {
                    job.await();
                } catch (Throwable e) {
                    outcome.set(e);
                }
            });
            waiter.start();
            host.entered.await();
            waiter.interrupt();
            while (waiter.isInterrupted()) { // cleared once the job was told to stop
                Thread.onSpinWait();
            }
            host.gate.countDown();
            waiter.join();
            assertInstanceOf(InterruptedException.class, outcome.get());
            assertEquals(JobState.CANCELLED, job.state());
            assertThrows(CancelledException.class, job::report);
            assertTrue(storage.list("p/").isEmpty());
        }
    }

    @Test
    void memoryStaysWhileAJobRuns() throws Exception {
        GatedStorage host = new GatedStorage();
        try (Storage storage = Storage.host(host)) {
            Job job = startAndForget(storage);
            host.entered.await();
            System.gc();
            host.gate.countDown();
            job.await();
            try (Loaded loaded = Shardwright.load(Location.of(storage, "p"), new LoadOptions())) {
                assertEquals(5f, loaded.tensors().get("w").bytes().asFloatBuffer().get(4999));
            }
        }
    }

    private static Job startAndForget(Storage storage) {
        float[] values = new float[5000];
        values[4999] = 5;
        try (Tensor more = Tensor.zeros(DType.UINT8, 1 << 20)) {
            State both = State.builder().add("w", values).add("more", HostTensor.of(more)).build();
            Job job = Shardwright.saveAsync(both, Location.of(storage, "p"), new SaveOptions().memoryBudget(8 << 20));
            both.close();
            return job;
        }
    }

    @Test
    void aDroppedJobGivesItsMemoryBackWhenItEnds() throws Exception {
        GatedStorage host = new GatedStorage();
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        try (Storage storage = Storage.host(host)) {
            Reference<?> watched = saveAndForget(storage, queue);
            host.entered.await();
            System.gc();
            assertNull(queue.poll(), "a running job let go of its memory");
            host.gate.countDown();
            Reference<?> found = null;
            while (found == null) { // the end of the job is all that is waited for; no call of the library comes in between
                System.gc();
                found = queue.remove(50);
            }
            assertSame(watched, found);
        }
    }

    private static Reference<?> saveAndForget(Storage storage, ReferenceQueue<Object> queue) {
        ByteBuffer values = ByteBuffer.allocateDirect(1 << 16);
        try (State state = State.builder().add("w", HostTensor.of(DType.UINT8, values, 1 << 16)).build()) {
            Shardwright.saveAsync(state, Location.of(storage, "p"), new SaveOptions().memoryBudget(1));
        }
        return new PhantomReference<>(values, queue);
    }

    @Test
    void closeOfARunningJobCancelsIt() throws Exception {
        GatedStorage host = new GatedStorage();
        try (Storage storage = Storage.host(host); State state = weights(1)) {
            Job job = Shardwright.saveAsync(state, Location.of(storage, "p"), new SaveOptions());
            host.entered.await();
            job.cancel();
            host.gate.countDown();
            job.close();
            job.close();
            assertThrows(IllegalStateException.class, job::state);
            assertThrows(ExecutionException.class, () -> job.future().get(30, TimeUnit.SECONDS));
        }
    }

    @Test
    void aContextThatWasShutDownTakesNoJobs() {
        Context context = Context.builder().threads(1).build();
        try (Storage storage = Storage.memory(); State state = weights(1)) {
            assertTrue(context.shutdown(LONG));
            assertThrows(FailedPreconditionException.class,
                    () -> Shardwright.saveAsync(state, Location.of(storage, "p"), new SaveOptions().context(context)));
        }
        context.close();
    }

    @Test
    void progressIsToldUntilTheCallOrJobHasSucceeded() throws Exception {
        List<Progress> told = Collections.synchronizedList(new ArrayList<>());
        try (Storage storage = Storage.memory(); State state = weights(1)) {
            Location location = Location.of(storage, "p");
            SaveOptions save = new SaveOptions().progress(told::add);
            LoadOptions load = new LoadOptions().progress(told::add);
            Shardwright.save(state, location, save);
            assertSucceeded(told);
            Shardwright.loadInto(state, location, load);
            assertSucceeded(told);
            try (Job job = Shardwright.saveAsync(state, location, save)) {
                job.await();
            }
            assertSucceeded(told);
            try (Job job = Shardwright.loadAsync(state, location, load)) {
                job.await();
            }
            assertSucceeded(told);
            Shardwright.save(state, location, new SaveOptions().progress(now -> {
                throw new IllegalStateException("a listener that fails");
            }));
        }
    }

    private static void assertSucceeded(List<Progress> told) {
        Progress last = told.get(told.size() - 1);
        assertEquals(JobState.SUCCEEDED, last.state());
        assertTrue(last.bytesTotal() > 0 && last.bytesDone() == last.bytesTotal(), last.toString());
        told.subList(0, told.size() - 1).forEach(now -> assertEquals(JobState.RUNNING, now.state()));
        told.clear();
    }
}
