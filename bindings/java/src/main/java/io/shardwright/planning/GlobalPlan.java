// SPDX-License-Identifier: Apache-2.0
// Global plans: who writes what in a whole job, by arithmetic on layouts.
package io.shardwright.planning;

import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.DataLossException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.internal.DirectBlob;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import io.shardwright.layout.Layout;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Who writes what in a whole job. Ranks that differ only by their place in a mesh describe alike: they exchange 16 bytes
 * each, one description per distinct digest, and parts where there are any; whoever has these makes the same plan, equal in
 * every byte to the merge of explicit local plans. Immutable, thread-safe; closing is not necessary.
 *
 * <pre>{@code
 * Description mine = GlobalPlan.describe(batch, layouts, new DescribeOptions().rank(rank).worldSize(ranks));
 * List<byte[]> digests = ...;                                  // all_gather of mine.digest()
 * int[] chosen = GlobalPlan.representatives(digests);        // these ranks send mine.description()
 * GlobalPlan plan = GlobalPlan.create(digests, descriptions, parts, new MergeOptions());
 * byte[] list = plan.writeList(rank, generation);
 * }</pre>
 */
public final class GlobalPlan extends Handle {
    private static final int DIGEST_BYTES = 16;

    private GlobalPlan(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_global_plan_release);
    }

    /**
     * Describes what a rank holds.
     *
     * @param batch the entries; numbers, order, secondary and attributes are not set, and entries with a layout list no
     *     boxes ({@link EntryBatch#addLaidOut})
     * @param layouts one per entry, null where the boxes of the batch count; empty = no entry has one
     * @param options rank and world size
     * @return what the rank says
     * @throws OutOfRangeException for a box that leaves its tensor
     * @throws AlreadyExistsException for a name that comes twice
     */
    public static Description describe(EntryBatch batch, List<Layout> layouts, DescribeOptions options) {
        if (!layouts.isEmpty() && layouts.size() != batch.size()) {
            throw Invalid.parameter("layouts", layouts.size() + " layouts for " + batch.size() + " entries");
        }
        NativeLoader.load();
        try (Uses uses = new Uses()) {
            long[] handles = layouts.isEmpty() ? null : layouts.stream().mapToLong(uses::ofNullable).toArray();
            List<byte[]> parts = Parts.all(shw_nativeJNI.shw_global_plan_describe(options.struct(), batch.struct(), handles));
            return new Description(parts.get(0), parts.get(1), parts.get(2));
        }
    }

    /**
     * Ranks that send their description: the lowest of each distinct digest.
     *
     * @param digests 16 bytes of each rank
     * @return the ranks, ascending by first use
     */
    public static int[] representatives(List<byte[]> digests) {
        NativeLoader.load();
        DirectBlob blob = joined(digests);
        try {
            return Parts.ints(shw_nativeJNI.shw_global_plan_representatives(blob.address(), digests.size()));
        } finally {
            blob.keep();
        }
    }

    /**
     * The plan of all ranks.
     *
     * @param digests 16 bytes of each rank
     * @param descriptions those of {@link #representatives} in their order
     * @param parts those of the ranks that have one, in any order; empty ones are skipped
     * @param options owner balanced, lowest_rank, or exact of the preset Megatron; cover full
     * @return the plan
     * @throws InvalidArgumentException when ranks contradict each other or chunks do not cover a tensor; ranks are named
     * @throws UnimplementedException for another owner
     * @throws DataLossException for a damaged buffer
     */
    public static GlobalPlan create(List<byte[]> digests, List<byte[]> descriptions, List<byte[]> parts,
            MergeOptions options) {
        NativeLoader.load();
        DirectBlob all = joined(digests);
        DirectBlob described = new DirectBlob(descriptions);
        DirectBlob own = new DirectBlob(parts.stream().filter(part -> part.length > 0).collect(Collectors.toList()));
        try {
            return new GlobalPlan(shw_nativeJNI.shw_global_plan_create(options.struct(), all.address(), digests.size(),
                    described.address(), described.offsets(), described.count(), own.address(), own.offsets(),
                    own.count()));
        } finally {
            all.keep();
            described.keep();
            own.keep();
        }
    }

    private static DirectBlob joined(List<byte[]> digests) {
        for (byte[] digest : digests) {
            if (digest.length != DIGEST_BYTES) {
                throw Invalid.parameter("digests", "a digest has 16 bytes, not " + digest.length);
            }
        }
        return new DirectBlob(digests);
    }

    /**
     * What a rank writes; the list carries the digest of this plan.
     *
     * @param rank the rank
     * @param generation 32 hex digits
     * @return a plan buffer
     */
    public byte[] writeList(int rank, String generation) {
        return writeList(rank, generation, null);
    }

    /**
     * What a rank writes.
     *
     * @param rank the rank
     * @param generation 32 hex digits
     * @param planDigest 16 bytes that the list carries; null = {@link #digest}
     * @return a plan buffer
     */
    public byte[] writeList(int rank, String generation, byte[] planDigest) {
        DirectBlob carried = planDigest == null ? null : joined(List.of(planDigest));
        byte[] text = Text.terminated(generation);
        try {
            return with(h -> Parts.bytes(shw_nativeJNI.shw_global_plan_write_list(h, rank, text,
                    carried == null ? 0 : carried.address())));
        } finally {
            if (carried != null) {
                carried.keep();
            }
        }
    }

    /**
     * Bytes that each rank writes, without padding.
     *
     * @return by rank
     */
    public long[] rankBytes() {
        return Parts.longs(with(shw_nativeJNI::shw_global_plan_rank_bytes)).get(0);
    }

    /**
     * Rank that writes each chunk of a tensor that is not rank_local, in the order of the explicit catalog.
     *
     * @param name the tensor's name
     * @return a rank per chunk
     * @throws NotFoundException when there is no such tensor
     */
    public int[] owners(String name) {
        byte[] text = Text.bytes(name);
        return Parts.ints(with(h -> shw_nativeJNI.shw_global_plan_owners(h, text)));
    }

    /**
     * Counts: ranks, descriptions, tensors, items, chunks, objects, files, bytes, most_bytes (of the rank that writes most).
     *
     * @return JSON text with {@code "schema": 1}
     */
    public String json() {
        return with(h -> Parts.text(shw_nativeJNI.shw_global_plan_json(h)));
    }

    /**
     * Digest of what the plan is made of, equal on all ranks that made it.
     *
     * @return 16 bytes
     */
    public byte[] digest() {
        return with(h -> Parts.bytes(shw_nativeJNI.shw_global_plan_digest(h)));
    }

    /**
     * The explicit plan; costs what that costs.
     *
     * @param generation 32 hex digits
     * @return the merged plan and the write list of each rank
     */
    public Expanded expand(String generation) {
        byte[] text = Text.terminated(generation);
        List<byte[]> parts = with(h -> Parts.all(shw_nativeJNI.shw_global_plan_expand(h, text)));
        return new Expanded(parts.get(0), List.copyOf(parts.subList(1, parts.size())));
    }
}
