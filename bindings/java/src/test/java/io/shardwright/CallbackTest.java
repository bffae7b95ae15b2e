// SPDX-License-Identifier: Apache-2.0
// Storages, transports and logs of the host.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.ResourceBundle;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CallbackTest {
    private static State weights(float... values) {
        return State.builder().add("w", values).build();
    }

    private static SaveOptions in(Storage storage) {
        return new SaveOptions().storage(storage);
    }

    @Test
    void aStorageOfTheHostHoldsCheckpoints() {
        try (Storage storage = Storage.host(new MapStorage()); State state = weights(1, 2, 3)) {
            Shardwright.save(state, "run/p", in(storage));
            Shardwright.save(state, "run/p", in(storage));
            assertThrows(AlreadyExistsException.class,
                    () -> Shardwright.save(state, "run/p", in(storage).overwrite(Overwrite.REFUSE)));
            assertTrue(storage.list("run/p/").contains("run/p/manifest.shw"));
            assertEquals("java", storage.name());
            float[] target = new float[3];
            try (State into = weights(target)) {
                Shardwright.loadInto(into, "run/p", new LoadOptions().storage(storage));
            }
            assertArrayEquals(new float[] {1, 2, 3}, target);
            assertThrows(NotFoundException.class,
                    () -> Checkpoint.open("run/q", new OpenOptions().storage(storage)));
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
            assertSame(mine, assertThrows(IllegalArgumentException.class, () -> Shardwright.save(state, "p", in(storage))));
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
            UncheckedIOException e = assertThrows(UncheckedIOException.class, () -> Shardwright.save(state, "p", in(storage)));
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
                    assertThrows(PermissionDeniedException.class, () -> Shardwright.save(state, "p", in(storage)));
            assertTrue(e.getMessage().contains("not today"), e.getMessage());
        }
    }

    /** Where two ranks meet; once aborted, nobody waits any more. */
    private static final class Meeting {
        final ByteBuffer[] slots = new ByteBuffer[2];
        final long[][] numbers = new long[2][];
        private int arrived;
        private long round;
        private String aborted;

        synchronized void meet() throws IOException {
            long mine = round;
            arrived++;
            if (arrived == 2) {
                arrived = 0;
                round++;
                notifyAll();
            }
            try {
                while (round == mine && aborted == null) {
                    wait();
                }
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
            if (aborted != null) {
                throw ShardwrightException.of(StatusCode.ABORTED, aborted);
            }
        }

        synchronized void abort(String message) {
            aborted = message;
            notifyAll();
        }
    }

    /** One of two ranks in this process; may fail at its first gathering. */
    private static final class Pair implements HostCollective {
        private final int rank;
        private final Meeting meeting;
        private final RuntimeException failure;

        Pair(int rank, Meeting meeting, RuntimeException failure) {
            this.rank = rank;
            this.meeting = meeting;
            this.failure = failure;
        }

        @Override
        public int rank() {
            return rank;
        }

        @Override
        public int size() {
            return 2;
        }

        @Override
        public void barrier() throws IOException {
            meeting.meet();
        }

        @Override
        public void broadcast(ByteBuffer data, int root) throws IOException {
            meeting.slots[rank] = data;
            meeting.meet();
            if (rank != root) {
                data.put(meeting.slots[root].duplicate());
            }
            meeting.meet();
        }

        @Override
        public void allGather(ByteBuffer data, ByteBuffer gathered) throws IOException {
            allGatherV(data, gathered, null);
        }

        @Override
        public void allGatherV(ByteBuffer data, ByteBuffer gathered, long[] sizes) throws IOException {
            if (failure != null) {
                throw failure;
            }
            meeting.slots[rank] = data;
            meeting.meet();
            gathered.put(meeting.slots[0].duplicate()).put(meeting.slots[1].duplicate());
            meeting.meet();
        }

        @Override
        public long[] allReduce(long[] values, Reduction operation) throws IOException {
            meeting.numbers[rank] = values;
            meeting.meet();
            long[] reduced = new long[values.length];
            for (int i = 0; i < reduced.length; i++) {
                long a = meeting.numbers[0][i];
                long b = meeting.numbers[1][i];
                reduced[i] = operation == Reduction.MIN ? Math.min(a, b)
                        : operation == Reduction.MAX ? Math.max(a, b) : Math.addExact(a, b);
            }
            meeting.meet();
            return reduced;
        }

        @Override
        public void abort(String message) {
            meeting.abort(message);
        }
    }

    private static List<Throwable> saveBoth(RuntimeException failure, Storage storage) throws InterruptedException {
        Meeting meeting = new Meeting();
        Pair first = new Pair(0, meeting, null);
        Pair second = new Pair(1, meeting, failure);
        List<Callable<Report>> calls = new ArrayList<>();
        for (Pair pair : List.of(first, second)) {
            calls.add(() -> {
                float[] half = {2 * pair.rank() + 1, 2 * pair.rank() + 2};
                HostTensor part = HostTensor.of(half).partOf(new long[] {4}, 2 * pair.rank());
                try (Collective end = Collective.host(pair); State state = State.builder().add("w", part).build()) {
                    return Shardwright.save(state, "p", in(storage).collective(end));
                }
            });
        }
        ExecutorService threads = Executors.newFixedThreadPool(2);
        List<Throwable> outcomes = new ArrayList<>();
        for (Future<Report> done : threads.invokeAll(calls)) {
            try {
                done.get();
                outcomes.add(null);
            } catch (ExecutionException e) {
                outcomes.add(e.getCause());
            }
        }
        threads.shutdown();
        return outcomes;
    }

    @Test
    void aTransportOfTheHostCarriesASave() throws InterruptedException {
        try (Storage storage = Storage.memory()) {
            List<Throwable> outcomes = saveBoth(null, storage);
            assertEquals(java.util.Arrays.asList(null, null), outcomes);
            try (Loaded loaded = Shardwright.load("p", new LoadOptions().storage(storage))) {
                float[] whole = new float[4];
                loaded.tensors().get("w").bytes().asFloatBuffer().get(whole);
                assertArrayEquals(new float[] {1, 2, 3, 4}, whole);
            }
        }
    }

    @Test
    void anExceptionOfATransportComesOutAsItself() throws InterruptedException {
        IllegalStateException mine = new IllegalStateException("cable");
        try (Storage storage = Storage.memory()) {
            List<Throwable> outcomes = saveBoth(mine, storage);
            assertSame(mine, outcomes.get(1));
            assertTrue(outcomes.get(0) != null);
            assertFalse(storage.list("").stream().anyMatch(key -> key.endsWith("manifest.shw")));
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
            Shardwright.save(state, "p", in(storage));
            // A trace that cannot be written is worth a warning, and no more.
            Shardwright.loadInto(state, "p", new LoadOptions().storage(storage).context(context)
                    .tracePath("/dev/null/trace.json"));
        }
        assertTrue(lines.stream().anyMatch(line -> line.startsWith("WARNING exec: ")), lines.toString());
    }
}
