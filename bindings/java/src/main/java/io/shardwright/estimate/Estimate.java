// SPDX-License-Identifier: Apache-2.0
// What a save or load of a described job would cost.
package io.shardwright.estimate;

import io.shardwright.DType;
import io.shardwright.Kind;
import io.shardwright.internal.Facts;
import io.shardwright.layout.Box;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a save or load of a described job would cost. All but the time is computed, not estimated.
 *
 * @param isLoad whether it is a load
 * @param rankCount ranks that save or load
 * @param stored the checkpoint
 * @param bytes bytes of each rank's file without its index, or bytes that it reads: whole digest blocks
 * @param overBytes those of them that are read only to check digests
 * @param sharedBytes what comes to each rank of a load through the memory of its machine; 0 of a save, as the next two
 * @param receivedBytes what comes to each rank from other machines
 * @param sentBytes what each rank sends to other machines
 * @param operations chunks and objects that each rank writes or reads
 * @param files files that each rank writes or opens
 * @param heldBytes each rank's own state
 * @param stagingBytes staging memory of each rank
 * @param peakBytes state and staging, and on rank 0 of a save the plans of all ranks
 * @param planBytes plans of all ranks of a save; 0 of a load
 * @param time null when no bandwidth was given
 * @param perRank the same numbers rank by rank
 * @param tensors groups of equal tensors
 * @param json all of it as JSON text with {@code "schema": 1}
 */
public record Estimate(boolean isLoad, int rankCount, Stored stored, Spread bytes, Spread overBytes,
        Spread sharedBytes, Spread receivedBytes, Spread sentBytes, Spread operations, Spread files, Spread heldBytes,
        Spread stagingBytes, Spread peakBytes, long planBytes, Time time, PerRank perRank, List<TensorGroup> tensors,
        String json) {
    /**
     * What the checkpoint holds.
     *
     * @param tensorCount tensors
     * @param objectCount byte objects
     * @param chunkCount chunks
     * @param fileCount data files
     * @param byteSize payload in bytes
     */
    public record Stored(long tensorCount, long objectCount, long chunkCount, long fileCount, long byteSize) {}

    /**
     * A number of each rank, over all ranks.
     *
     * @param min the least
     * @param median the one in the middle
     * @param max the greatest
     * @param maxRank the first rank that has it
     * @param total their sum
     */
    public record Spread(long min, long median, long max, int maxRank, long total) {}

    /**
     * The time, from the bandwidth that the options gave.
     *
     * @param span the slower of the busiest rank and all ranks together
     * @param isLimitedByRank whether the busiest rank is what takes longest, else what all share
     */
    public record Time(Duration span, boolean isLimitedByRank) {}

    /**
     * Tensors that differ only by their names and places.
     *
     * @param names a pattern of their names
     * @param first name of the first
     * @param count how many
     * @param dtype element type
     * @param kind who holds them
     * @param shape extents of each
     * @param layout in words
     * @param byteSize bytes of each
     * @param chunkCount chunks of each
     * @param smallestChunkBytes bytes of its smallest chunk
     * @param largestChunkBytes bytes of its largest chunk
     * @param fewestHolders ranks that hold a chunk, at least
     * @param mostHolders ranks that hold a chunk, at most
     * @param chunks those of the first tensor, when the options ask for them; else empty
     */
    public record TensorGroup(String names, String first, long count, DType dtype, Kind kind, List<Long> shape,
            String layout, long byteSize, long chunkCount, long smallestChunkBytes, long largestChunkBytes,
            long fewestHolders, long mostHolders, List<Chunk> chunks) {}

    /**
     * One chunk of the first tensor of a group.
     *
     * @param box where it lies in the tensor
     * @param rank that writes it; of a load the first that holds it
     * @param holders number of ranks that hold it
     */
    public record Chunk(Box box, int rank, long holders) {}

    /** Numbers rank by rank. Immutable. */
    public static final class PerRank {
        private final long[][] columns;
        private final boolean isLoad;

        PerRank(Facts facts, boolean isLoad) {
            columns = Stream.of("bytes", "over_bytes", isLoad ? "reads" : "writes", "files", "held_bytes", "peak_bytes",
                    "shared_bytes", "received_bytes", "sent_bytes").map(facts::numbers).toArray(long[][]::new);
            this.isLoad = isLoad;
        }

        /**
         * Bytes that a rank writes or reads.
         *
         * @param rank the rank
         * @return bytes
         */
        public long bytes(int rank) {
            return columns[0][rank];
        }

        /**
         * Bytes that a rank reads only to check digests.
         *
         * @param rank the rank
         * @return bytes
         */
        public long overBytes(int rank) {
            return columns[1][rank];
        }

        /**
         * Chunks and objects that a rank writes or reads.
         *
         * @param rank the rank
         * @return their number
         */
        public long operations(int rank) {
            return columns[2][rank];
        }

        /**
         * Files that a rank writes or opens.
         *
         * @param rank the rank
         * @return their number
         */
        public long files(int rank) {
            return columns[3][rank];
        }

        /**
         * A rank's own state.
         *
         * @param rank the rank
         * @return bytes
         */
        public long heldBytes(int rank) {
            return columns[4][rank];
        }

        /**
         * Most memory of a rank: state, staging and plans.
         *
         * @param rank the rank
         * @return bytes
         */
        public long peakBytes(int rank) {
            return columns[5][rank];
        }

        /**
         * Bytes that come to a rank of a load through the memory of its machine.
         *
         * @param rank the rank
         * @return bytes
         */
        public long sharedBytes(int rank) {
            return isLoad ? columns[6][rank] : 0;
        }

        /**
         * Bytes that come to a rank of a load from other machines.
         *
         * @param rank the rank
         * @return bytes
         */
        public long receivedBytes(int rank) {
            return isLoad ? columns[7][rank] : 0;
        }

        /**
         * Bytes that a rank of a load sends to other machines.
         *
         * @param rank the rank
         * @return bytes
         */
        public long sentBytes(int rank) {
            return isLoad ? columns[8][rank] : 0;
        }
    }

    static Estimate of(String json) {
        Facts facts = Facts.of(json);
        boolean isLoad = facts.text("command").equals("load");
        Facts stored = facts.object("stored");
        return new Estimate(isLoad, (int) facts.number("ranks"),
                new Stored(stored.number("tensors"), stored.number("objects"), stored.number("chunks"),
                        stored.number("files"), stored.number("bytes")),
                spread(facts, "bytes"), spread(facts, "over_bytes"), spread(facts, "shared_bytes"),
                spread(facts, "received_bytes"), spread(facts, "sent_bytes"), spread(facts, isLoad ? "reads" : "writes"),
                spread(facts, "files"), spread(facts, "held_bytes"), spread(facts, "staging_bytes"),
                spread(facts, "peak_bytes"), facts.number("plan_bytes"),
                facts.has("time") ? time(facts.object("time")) : null,
                new PerRank(facts.object("per_rank"), isLoad),
                facts.objects("tensors").stream().map(Estimate::group).collect(Collectors.toUnmodifiableList()), json);
    }

    private static Spread spread(Facts facts, String key) {
        Facts of = facts.object(key);
        return new Spread(of.number("min"), of.number("median"), of.number("max"), (int) of.number("max_rank"),
                of.number("total"));
    }

    private static Time time(Facts time) {
        return new Time(Duration.ofNanos(Math.round(time.real("seconds") * 1e9)), time.text("limit").equals("rank"));
    }

    private static TensorGroup group(Facts group) {
        long[] shape = group.numbers("shape");
        return new TensorGroup(group.text("names"), group.text("first"), group.number("count"),
                DType.named(group.text("dtype")), Kind.of(group.text("kind")), boxed(shape), group.text("layout"),
                group.number("bytes"), group.number("chunks"), group.number("smallest_chunk_bytes"),
                group.number("largest_chunk_bytes"), group.number("fewest_holders"), group.number("most_holders"),
                chunks(group.object("chunk_list"), shape));
    }

    private static List<Long> boxed(long[] values) {
        return Arrays.stream(values).boxed().collect(Collectors.toUnmodifiableList());
    }

    /** Columns of the dimensions that are cut, one value per chunk; the others are whole. */
    private static List<Chunk> chunks(Facts list, long[] shape) {
        long[] dims = list.numbers("dims");
        List<long[]> offsets = list.columns("offsets");
        List<long[]> sizes = list.columns("sizes");
        long[] ranks = list.numbers("ranks");
        long[] holders = list.numbers("holders");
        List<Chunk> chunks = new ArrayList<>(ranks.length);
        for (int i = 0; i < ranks.length; i++) {
            long[] begin = new long[shape.length];
            long[] extent = shape.clone();
            for (int d = 0; d < dims.length; d++) {
                begin[(int) dims[d]] = offsets.get(d)[i];
                extent[(int) dims[d]] = sizes.get(d)[i];
            }
            chunks.add(new Chunk(new Box(begin, extent), (int) ranks[i], holders[i]));
        }
        return List.copyOf(chunks);
    }

    /** What is moved and how long that takes. */
    @Override
    public String toString() {
        return "Estimate(" + (isLoad ? "load" : "save") + " of " + rankCount + " ranks, " + bytes.total() + " bytes"
                + (time == null ? "" : ", " + time.span()) + ")";
    }
}
