// SPDX-License-Identifier: Apache-2.0
// Transports of the host.
package io.shardwright;

import io.shardwright.collective.Collective;
import io.shardwright.collective.HostCollective;
import io.shardwright.collective.Reduction;
import io.shardwright.collective.RootedHostCollective;
import io.shardwright.errors.DeadlineExceededException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.storage.Storage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


@Timeout(60)
class TransportTest {
    /** Where two ranks meet; once aborted, nobody waits any more. */
    private static final class Meeting {
        final ByteBuffer[] slots = new ByteBuffer[2];
        final long[][] numbers = new long[2][];
        private int arrived;
        private long round;
        private StatusCode abortCode;
        private String aborted;
        private Duration limit;

        synchronized void meet(Duration timeout) throws IOException {
            limit = timeout;
            long end = System.nanoTime() + (timeout == null ? Long.MAX_VALUE / 2 : timeout.toNanos());
            long mine = round;
            arrived++;
            if (arrived == 2) {
                arrived = 0;
                round++;
                notifyAll();
            }
            try {
                while (round == mine && aborted == null) {
                    long left = end - System.nanoTime();
                    if (left <= 0) {
                        throw ShardwrightException.of(StatusCode.DEADLINE_EXCEEDED, "the other rank did not come");
                    }
                    wait(left / 1_000_000 + 1);
                }
            } catch (InterruptedException e) {
                throw new IOException(e);
            }
            if (aborted != null) {
                throw ShardwrightException.of(abortCode, aborted);
            }
        }

        synchronized void abort(StatusCode code, String message) {
            abortCode = code;
            aborted = message;
            notifyAll();
        }
    }

    /** One of two ranks in this process; may fail at its first operation. */
    private static class Pair implements HostCollective {
        final int rank;
        final Meeting meeting;
        private final RuntimeException failure;
        boolean gatheredAll;
        boolean reduced;

        Pair(int rank, Meeting meeting, RuntimeException failure) {
            this.rank = rank;
            this.meeting = meeting;
            this.failure = failure;
        }

        Collective end() {
            return Collective.host(this);
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
        public void barrier(Duration timeout) throws IOException {
            meeting.meet(timeout);
        }

        @Override
        public void broadcast(ByteBuffer data, int root, Duration timeout) throws IOException {
            meeting.slots[rank] = data;
            meeting.meet(timeout);
            if (rank != root) {
                data.put(meeting.slots[root].duplicate());
            }
            meeting.meet(timeout);
        }

        @Override
        public void allGather(ByteBuffer data, ByteBuffer gathered, Duration timeout) throws IOException {
            allGatherV(data, gathered, null, timeout);
        }

        @Override
        public void allGatherV(ByteBuffer data, ByteBuffer gathered, long[] sizes, Duration timeout) throws IOException {
            gatheredAll = true;
            meeting.slots[rank] = data;
            meeting.meet(timeout);
            gathered.put(meeting.slots[0].duplicate()).put(meeting.slots[1].duplicate());
            meeting.meet(timeout);
        }

        @Override
        public long[] allReduce(long[] values, Reduction operation, Duration timeout) throws IOException {
            if (failure != null) {
                throw failure;
            }
            reduced = true;
            meeting.numbers[rank] = values;
            meeting.meet(timeout);
            long[] found = new long[values.length];
            for (int i = 0; i < found.length; i++) {
                long a = meeting.numbers[0][i];
                long b = meeting.numbers[1][i];
                found[i] = operation == Reduction.MIN ? Math.min(a, b)
                        : operation == Reduction.MAX ? Math.max(a, b) : Math.addExact(a, b);
            }
            meeting.meet(timeout);
            return found;
        }

        @Override
        public void abort(StatusCode code, String message) {
            meeting.abort(code, message);
        }
    }

    /** A pair that gathers to a root and scatters from it. */
    private static final class RootedPair extends Pair implements RootedHostCollective {
        boolean gathered;
        boolean scattered;

        RootedPair(int rank, Meeting meeting) {
            super(rank, meeting, null);
        }

        @Override
        public void gatherV(ByteBuffer data, ByteBuffer all, long[] sizes, int root, Duration timeout)
                throws IOException {
            gathered = true;
            assertEquals(rank == root, sizes != null);
            meeting.slots[rank] = data;
            meeting.meet(timeout);
            if (rank == root) {
                all.put(meeting.slots[0].duplicate()).put(meeting.slots[1].duplicate());
            }
            meeting.meet(timeout);
        }

        @Override
        public void scatterV(ByteBuffer parts, long[] sizes, ByteBuffer data, int root, Duration timeout)
                throws IOException {
            scattered = true;
            meeting.slots[rank] = parts;
            if (rank == root) {
                meeting.numbers[0] = sizes;
            }
            meeting.meet(timeout);
            int begin = rank == 0 ? 0 : (int) meeting.numbers[0][0];
            data.put(meeting.slots[root].duplicate().position(begin).limit(begin + (int) meeting.numbers[0][rank]));
            meeting.meet(timeout);
        }
    }

    /** A pair whose ranks meet in the memory of their machine. */
    private static final class NearPair extends Pair {
        NearPair(int rank, Meeting meeting) {
            super(rank, meeting, null);
        }

        @Override
        Collective end() {
            try (Collective far = super.end()) {
                return Collective.node(far);
            }
        }
    }

    private static List<Throwable> saveBoth(RuntimeException failure, Storage storage) throws InterruptedException {
        Meeting meeting = new Meeting();
        return saveBoth(new Pair(0, meeting, null), new Pair(1, meeting, failure), storage);
    }

    private static List<Throwable> saveBoth(Pair first, Pair second, Storage storage) throws InterruptedException {
        List<Callable<Report>> calls = new ArrayList<>();
        for (Pair pair : List.of(first, second)) {
            calls.add(() -> {
                float[] half = {2 * pair.rank() + 1, 2 * pair.rank() + 2};
                HostTensor part = HostTensor.of(half).partOf(new long[] {4}, 2 * pair.rank());
                try (Collective end = pair.end(); State state = State.builder().add("w", part).build()) {
                    Report report = Shardwright.save(state, Location.of(storage, "p"), new SaveOptions().collective(end));
                    assertTrue(report.bytesReceived() > 0 && report.bytesReceived() <= 65536);
                    return report;
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
            try (Loaded loaded = Shardwright.load(Location.of(storage, "p"), new LoadOptions())) {
                float[] whole = new float[4];
                loaded.tensors().get("w").bytes().asFloatBuffer().get(whole);
                assertArrayEquals(new float[] {1, 2, 3, 4}, whole);
            }
        }
    }

    @Test
    void aSaveUsesWhatTheTransportHas() throws InterruptedException {
        Meeting meeting = new Meeting();
        RootedPair first = new RootedPair(0, meeting);
        RootedPair second = new RootedPair(1, meeting);
        try (Storage storage = Storage.memory()) {
            assertEquals(java.util.Arrays.asList(null, null), saveBoth(first, second, storage));
            for (RootedPair pair : List.of(first, second)) {
                assertTrue(pair.gathered && pair.scattered && !pair.gatheredAll);
            }
        }
    }

    @Test
    void ranksOfOneMachineMeetInItsMemory() throws InterruptedException {
        Meeting meeting = new Meeting();
        NearPair first = new NearPair(0, meeting);
        NearPair second = new NearPair(1, meeting);
        try (Storage storage = Storage.memory()) {
            assertEquals(java.util.Arrays.asList(null, null), saveBoth(first, second, storage));
            for (NearPair pair : List.of(first, second)) {
                assertTrue(pair.gatheredAll && !pair.reduced);
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
    void aTransportKeepsTheLimitOfTheCallAndHearsWhyItIsAborted() {
        Meeting meeting = new Meeting();
        try (Storage storage = Storage.memory(); Collective end = Collective.host(new Pair(0, meeting, null));
                State state = State.builder().add("w", new float[] {1}).build()) {
            SaveOptions options = new SaveOptions().collective(end).deadline(Duration.ofMillis(200));
            assertThrows(DeadlineExceededException.class, () -> Shardwright.save(state, Location.of(storage, "p"), options));
        }
        assertTrue(meeting.limit.compareTo(Duration.ofMillis(200)) <= 0, meeting.limit.toString());
        assertEquals(StatusCode.DEADLINE_EXCEEDED, meeting.abortCode);
    }
}
