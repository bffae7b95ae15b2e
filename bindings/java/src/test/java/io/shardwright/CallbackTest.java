// SPDX-License-Identifier: Apache-2.0
// Storages and logs of the host.
package io.shardwright;

import java.nio.file.Path;
import io.shardwright.collective.Collective;
import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.HostExceptionException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.errors.PermissionDeniedException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.storage.OpenMode;
import io.shardwright.storage.Storage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.ResourceBundle;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


@Timeout(60)
class CallbackTest {
    private static State weights(float... values) {
        return State.builder().add("w", values).build();
    }

    private static Location p(Storage storage) {
        return Location.of(storage, "run/p");
    }

    @Test
    void aStorageOfTheHostHoldsCheckpoints() {
        try (Storage storage = Storage.host(new MapStorage()); State state = weights(1, 2, 3)) {
            Shardwright.save(state, p(storage), new SaveOptions());
            Shardwright.save(state, p(storage), new SaveOptions());
            assertThrows(AlreadyExistsException.class,
                    () -> Shardwright.save(state, p(storage), new SaveOptions().overwrite(Overwrite.REFUSE)));
            assertTrue(storage.list("run/p/").contains("run/p/manifest.shw"));
            assertEquals("java", storage.name());
            float[] target = new float[3];
            try (State into = weights(target)) {
                Shardwright.loadInto(into, p(storage), new LoadOptions());
            }
            assertArrayEquals(new float[] {1, 2, 3}, target);
            assertThrows(NotFoundException.class,
                    () -> Checkpoint.open(Location.of(storage, "run/q"), new OpenOptions()));
        }
    }

    @Test
    void objectsOfAStorageAreWrittenReadAndRemoved() {
        try (Storage storage = Storage.host(new MapStorage())) {
            storage.put("a/b", new byte[] {1, 2, 3});
            assertEquals(3, storage.size("a/b"));
            assertArrayEquals(new byte[] {2, 3}, storage.read("a/b", 1, 2));
            assertThrows(OutOfRangeException.class, () -> storage.read("a/b", 2, 2));
            storage.remove("a/b");
            storage.remove("a/b");
            assertThrows(NotFoundException.class, () -> storage.size("a/b"));
        }
    }

    @Test
    void anExceptionOfTheHostComesOutAsItself() {
        IllegalArgumentException mine = new IllegalArgumentException("mine \uD83D\uDE00");
        try (Storage storage = Storage.host(new MapStorage() {
            @Override
            void beforeWrite() {
                throw mine;
            }
        }); State state = weights(1)) {
            assertSame(mine, assertThrows(IllegalArgumentException.class, () -> Shardwright.save(state, p(storage), new SaveOptions())));
        }
    }

    private static Storage throwing(RuntimeException thrown) {
        return Storage.host(new MapStorage() {
            @Override
            void beforeWrite() {
                if (thrown != null) {
                    throw thrown;
                }
            }
        });
    }

    /** What the save of each of three ranks threw, with these exceptions in their storages. */
    private static Throwable[] savesOfRanks(RuntimeException... thrown) throws InterruptedException {
        List<Collective> ends = Collective.threads(3);
        Throwable[] found = new Throwable[3];
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            int rank = i;
            threads.add(new Thread(() -> {
                try (Collective end = ends.get(rank); Storage storage = throwing(thrown[rank]); State state = weights(1)) {
                    Shardwright.save(state, p(storage), new SaveOptions().collective(end).kind("*", Kind.RANK_LOCAL));
                } catch (Throwable e) {
                    found[rank] = e;
                }
            }));
            threads.get(i).start();
        }
        for (Thread each : threads) {
            each.join();
        }
        return found;
    }

    @Test
    void eachWorkerOfATeamGetsItsOwnExceptionAndTheOthersAnError() throws InterruptedException {
        RuntimeException one = new IllegalArgumentException("one");
        RuntimeException two = new ArithmeticException("two");
        for (RuntimeException[] thrown : new RuntimeException[][] {{null, one, null}, {null, one, two}, {two, one, two}}) {
            Throwable[] found = savesOfRanks(thrown);
            for (int rank = 0; rank < 3; rank++) {
                if (thrown[rank] != null) {
                    assertSame(thrown[rank], found[rank]);
                } else {
                    assertInstanceOf(HostExceptionException.class, found[rank]);
                }
            }
        }
    }

    @Test
    void aCheckedExceptionOfTheHostIsWrapped() {
        IOException mine = new IOException("disk");
        try (Storage storage = Storage.host(new MapStorage() {
            @Override
            public OpenObject open(String key, OpenMode mode) {
                throw new UncheckedIOException(mine);
            }
        }); State state = weights(1)) {
            UncheckedIOException e = assertThrows(UncheckedIOException.class, () -> Shardwright.save(state, p(storage), new SaveOptions()));
            assertSame(mine, e.getCause());
        }
    }

    @Test
    void aStatusOfTheHostIsTheStatusOfTheCall() {
        try (Storage storage = Storage.host(new MapStorage() {
            @Override
            void beforeWrite() {
                throw ShardwrightException.of(StatusCode.PERMISSION_DENIED, "not today");
            }
        }); State state = weights(1)) {
            PermissionDeniedException e =
                    assertThrows(PermissionDeniedException.class, () -> Shardwright.save(state, p(storage), new SaveOptions()));
            assertTrue(e.getMessage().contains("not today"), e.getMessage());
        }
    }

    @Test
    void logRecordsReachALogger() {
        ConcurrentLinkedQueue<String> lines = new ConcurrentLinkedQueue<>();
        System.Logger logger = new System.Logger() {
            @Override
            public String getName() {
                return "test";
            }

            @Override
            public boolean isLoggable(Level level) {
                return true;
            }

            @Override
            public void log(Level level, ResourceBundle bundle, String message, Throwable thrown) {
                lines.add(level + " " + message);
            }

            @Override
            public void log(Level level, ResourceBundle bundle, String format, Object... parameters) {
                lines.add(level + " " + format);
            }
        };
        try (Context context = Context.builder().log(LogLevel.WARNING, logger).build();
                Storage storage = Storage.memory(); State state = weights(1)) {
            Shardwright.save(state, p(storage), new SaveOptions());
            // A trace that cannot be written is worth a warning, and no more.
            Shardwright.loadInto(state, p(storage), new LoadOptions().context(context)
                    .tracePath(Path.of("/dev/null/trace.json")));
        }
        assertTrue(lines.stream().anyMatch(line -> line.startsWith("WARNING exec: ")), lines.toString());
    }
}
