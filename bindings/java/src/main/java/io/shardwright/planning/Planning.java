// SPDX-License-Identifier: Apache-2.0
// Planning by descriptions alone.
package io.shardwright.planning;

import io.shardwright.Owner;
import io.shardwright.Plan;
import io.shardwright.Preset;
import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.DataLossException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.internal.DirectBlob;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * Planning without memory, storage or a checkpoint: every rank describes what it holds, the plan buffers travel as the host
 * likes, one rank merges them and says which boxes each rank keeps. Each call is one call of the library, however many
 * entries there are.
 *
 * <pre>{@code
 * byte[] mine = Planning.describe(batch, new DescribeOptions().rank(rank).worldSize(ranks));
 * Merged merged = Planning.merge(plansOfAllRanks, new MergeOptions().owner(Owner.EXACT).preset(Preset.TORCH));
 * EntryBatch boxes = Planning.entries(Plan.of(plansOfAllRanks.get(rank)));
 * int[] kept = merged.kept().get(rank); // kept[boxes.firstBox(i) + k]: chunk of box k of entry i, or NOT_KEPT
 * }</pre>
 */
public final class Planning {
    /** What a merge says of a box that its rank does not write; numbers of chunks are all others, without a sign. */
    public static final int NOT_KEPT = shw_nativeConstants.SHW_NOT_KEPT;

    private Planning() {}

    /**
     * A plan buffer of what the entries describe; equal entries give equal bytes.
     *
     * @param batch the entries
     * @param options whose they are
     * @return the plan buffer
     * @throws OutOfRangeException for a box that leaves its tensor
     * @throws AlreadyExistsException for a name that comes twice
     * @throws InvalidArgumentException for columns that do not fit
     */
    public static byte[] describe(EntryBatch batch, DescribeOptions options) {
        NativeLoader.load();
        return Parts.bytes(shw_nativeJNI.shw_plan_describe(options.struct(), batch.struct()));
    }

    /**
     * The entries of a local or merged plan, as they were described.
     *
     * @param plan the plan
     * @return its entries
     * @throws InvalidArgumentException for other plans
     */
    public static EntryBatch entries(Plan plan) {
        try (Uses uses = new Uses()) {
            return EntryBatch.of(shw_nativeJNI.shw_plan_entries(uses.of(plan)));
        }
    }

    /**
     * Merges the local plans of all ranks.
     *
     * @param plans plan buffers in rank order
     * @param options who writes, and what is proved
     * @return the merged plan, and what each rank keeps
     * @throws InvalidArgumentException when ranks contradict each other (both are named), or the proof fails (detail
     *     "cover")
     * @throws DataLossException for a damaged plan
     */
    public static Merged merge(List<byte[]> plans, MergeOptions options) {
        NativeLoader.load();
        DirectBlob blob = new DirectBlob(plans);
        try {
            List<byte[]> parts = Parts.all(
                    shw_nativeJNI.shw_plan_merge(options.struct(), blob.address(), blob.offsets(), plans.size()));
            List<int[]> kept = parts.subList(1, parts.size()).stream().map(Parts::intsOf).collect(Collectors.toList());
            return new Merged(parts.get(0), List.copyOf(kept));
        } finally {
            blob.keep();
        }
    }

    /**
     * Intersects wanted boxes with the chunks of a merged plan, by name.
     *
     * @param stored the merged plan
     * @param wanted entries and boxes
     * @param options order, cover and strictness
     * @return the common parts
     * @throws NotFoundException with the nearest names
     * @throws InvalidArgumentException for another shape and for what is not filled
     */
    public static Matches match(Plan stored, EntryBatch wanted, MatchOptions options) {
        try (Uses uses = new Uses()) {
            List<long[]> parts = Parts.longs(
                    shw_nativeJNI.shw_plan_match(options.struct(), uses.of(stored), wanted.struct()));
            return new Matches(parts.get(0), parts.get(1), parts.get(2), parts.get(3), parts.get(4), parts.get(5));
        }
    }

    /**
     * Chooses who writes each shard, as preset megatron with owner exact does, from arrays alone.
     *
     * @param shards weights and holders
     * @param rankCount number of ranks
     * @return a rank per shard
     * @throws InvalidArgumentException for arrays that do not fit
     */
    public static int[] owners(HeldShards shards, int rankCount) {
        int count = shards.sets().length;
        int sets = shards.setOffsets().length - 1;
        boolean[] marked = shards.secondary();
        if (shards.weights().length != count || (marked != null && marked.length != count) || sets < 0
                || shards.setOffsets()[sets] != shards.holders().length) {
            throw Invalid.parameter("shards", "the arrays of shards or sets differ in length");
        }
        byte[] marks = marked == null ? null : new byte[count];
        for (int i = 0; marks != null && i < count; i++) {
            marks[i] = (byte) (marked[i] ? 1 : 0);
        }
        NativeLoader.load();
        return Parts.ints(shw_nativeJNI.shw_java_plan_owners(count, shards.weights(), shards.sets(), marks, sets,
                shards.setOffsets(), shards.holders(), rankCount));
    }

    /**
     * What a plan describes in 16 bytes: equal for equal entries in equal order on equal ranks, whatever their content
     * digests are.
     *
     * @param plan a local or merged plan
     * @return 16 bytes
     */
    public static byte[] digest(Plan plan) {
        try (Uses uses = new Uses()) {
            return Parts.bytes(shw_nativeJNI.shw_plan_digest(uses.of(plan)));
        }
    }

    /**
     * XXH3-128 in canonical byte order, as {@link Entry#digest(byte[])} wants it.
     *
     * @param content the bytes
     * @return 16 bytes
     */
    public static byte[] contentDigest(byte[] content) {
        NativeLoader.load();
        return Parts.bytes(shw_nativeJNI.shw_content_digest(Objects.requireNonNull(content, "content")));
    }
}
