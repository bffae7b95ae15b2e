// SPDX-License-Identifier: Apache-2.0
// A communicator that is written in Java.
package io.shardwright.hsdp;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Ranks of one process that meet in a table: what a rank issues lies there as a copy, and whoever waits takes what it needs from it
 * once all have come.
 */
final class JavaTeam {
    private final int size;
    private final Map<Long, byte[][]> table = new HashMap<>();
    private final Map<Long, Integer> takers = new HashMap<>();
    private StatusCode abortCode;
    private String aborted;

    JavaTeam(int size) {
        this.size = size;
    }

    /** Communicators of all ranks; they move bytes, and the library sums. */
    static List<Communicator> ends(int size) {
        JavaTeam team = new JavaTeam(size);
        List<Communicator> made = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            made.add(Communicator.host(team.new End(rank)));
        }
        return made;
    }

    /** The same with sums and broadcasts of their own. */
    static List<Communicator> completeEnds(int size) {
        JavaTeam team = new JavaTeam(size);
        List<Communicator> made = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            made.add(Communicator.host(team.new CompleteEnd(rank)));
        }
        return made;
    }

    private static byte[] copyOf(ByteBuffer buffer) {
        byte[] copy = new byte[buffer.remaining()];
        buffer.duplicate().get(copy);
        return copy;
    }

    /** What becomes of the bytes of all ranks. */
    private interface Delivery {
        void deliver(byte[][] ofRanks);
    }

    private synchronized void put(long number, int rank, byte[] bytes) {
        table.computeIfAbsent(number, n -> new byte[size][])[rank] = bytes;
        notifyAll();
    }

    private boolean isComplete(long number) {
        if (aborted != null) {
            throw ShardwrightException.of(abortCode, aborted);
        }
        for (byte[] each : table.get(number)) {
            if (each == null) {
                return false;
            }
        }
        return true;
    }

    /** The last rank that has taken its part clears the place. */
    private void take(long number, Delivery delivery) {
        delivery.deliver(table.get(number));
        if (takers.merge(number, 1, Integer::sum) == size) {
            table.remove(number);
            takers.remove(number);
        }
    }

    private synchronized void end(StatusCode code, String message) {
        if (aborted == null) {
            abortCode = code;
            aborted = message;
            notifyAll();
        }
    }

    /** One rank. */
    class End implements HostCommunicator {
        private final int rank;
        private long issued;
        int closedWorks;

        End(int rank) {
            this.rank = rank;
        }

        @Override
        public int rank() {
            return rank;
        }

        @Override
        public int size() {
            return size;
        }

        HostWork issue(byte[] bytes, Delivery delivery) {
            long number = issued++;
            put(number, rank, bytes);
            return new HostWork() {
                private boolean done;

                @Override
                public boolean await(Duration timeout) {
                    synchronized (JavaTeam.this) {
                        long end = timeout == null ? Long.MAX_VALUE : System.nanoTime() + timeout.toNanos();
                        while (!isDone()) {
                            long left = (end - System.nanoTime()) / 1_000_000 + 1;
                            if (end - System.nanoTime() <= 0) {
                                return false;
                            }
                            pause(left);
                        }
                        return true;
                    }
                }

                private void pause(long milliseconds) {
                    try {
                        JavaTeam.this.wait(milliseconds);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                        throw new IllegalStateException("interrupted", e);
                    }
                }

                @Override
                public boolean isDone() {
                    synchronized (JavaTeam.this) {
                        if (!done && isComplete(number)) {
                            take(number, delivery);
                            done = true;
                        }
                        return done;
                    }
                }

                @Override
                public void close() {
                    closedWorks++;
                }
            };
        }

        @Override
        public HostWork allGather(CommunicatorCall call, ByteBuffer data, ByteBuffer gathered) {
            return issue(copyOf(data), ofRanks -> {
                ByteBuffer target = gathered.duplicate();
                for (byte[] each : ofRanks) {
                    target.put(each);
                }
            });
        }

        @Override
        public HostWork allToAll(CommunicatorCall call, ByteBuffer parts, ByteBuffer received) {
            return issue(copyOf(parts), ofRanks -> {
                ByteBuffer target = received.duplicate();
                for (byte[] each : ofRanks) {
                    int part = each.length / size;
                    target.put(each, rank * part, part);
                }
            });
        }

        @Override
        public void abort(StatusCode code, String message) {
            end(code, message);
        }
    }

    /** One rank that adds float32 in rank order, and broadcasts. */
    class CompleteEnd extends End implements ReducingHostCommunicator, BroadcastingHostCommunicator {
        CompleteEnd(int rank) {
            super(rank);
        }

        @Override
        public Set<CommunicatorCapability> capabilities() {
            return Set.of(CommunicatorCapability.ORDERED_SUM);
        }

        private void add(byte[][] ofRanks, int begin, ByteBuffer target) {
            ByteBuffer out = target.duplicate().order(ByteOrder.LITTLE_ENDIAN);
            for (int at = 0; at < target.remaining(); at += Float.BYTES) {
                float sum = 0;
                for (byte[] each : ofRanks) {
                    sum += ByteBuffer.wrap(each).order(ByteOrder.LITTLE_ENDIAN).getFloat(begin + at);
                }
                out.putFloat(at, sum);
            }
        }

        private void needSum(CommunicatorCall call) {
            if (call.op() != TensorReduction.SUM) {
                throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "this team only adds");
            }
        }

        @Override
        public HostWork reduceScatter(CommunicatorCall call, ByteBuffer parts, ByteBuffer reduced) {
            needSum(call);
            return issue(copyOf(parts), ofRanks -> add(ofRanks, rank() * reduced.remaining(), reduced));
        }

        @Override
        public HostWork allReduce(CommunicatorCall call, ByteBuffer data) {
            needSum(call);
            return issue(copyOf(data), ofRanks -> add(ofRanks, 0, data));
        }

        @Override
        public HostWork broadcast(CommunicatorCall call, ByteBuffer data, int root) {
            return issue(copyOf(data), ofRanks -> data.duplicate().put(ofRanks[root]));
        }

        @Override
        public HostWork barrier(CommunicatorCall call) {
            return issue(new byte[0], ofRanks -> { });
        }
    }
}
