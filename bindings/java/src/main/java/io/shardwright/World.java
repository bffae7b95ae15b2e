// SPDX-License-Identifier: Apache-2.0
// Described jobs, whose saves and loads are planned and priced on one machine.
package io.shardwright;

import java.util.List;

/**
 * A job described without any memory: its ranks, and what each holds of each tensor and object. Descriptions and prices
 * are JSON text, named key by key in docs/formats/mesh.md. Immutable, thread-safe; closing is not necessary.
 */
public final class World extends Handle {
    private static final long WITH_PLAN = 1;

    private World(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_world_release);
    }

    /**
     * Reads a description.
     *
     * @param json JSON text
     * @return the world
     * @throws InvalidArgumentException that says line and column of what is wrong
     */
    public static World of(String json) {
        NativeLoader.load();
        return new World(shw_nativeJNI.shw_world_create(Text.bytes(json)));
    }

    /**
     * What a checkpoint stores: each chunk is held by the rank that wrote it.
     *
     * @param checkpoint an open checkpoint
     * @return the world
     */
    public static World ofCheckpoint(Checkpoint checkpoint) {
        return new World(checkpoint.with(shw_nativeJNI::shw_world_from_checkpoint));
    }

    /**
     * These tensors and objects as another world lays them out: as it lists them, else by the first of its rules.
     *
     * @param target the other world
     * @return a new world
     */
    public World layOut(World target) {
        return new World(with(s -> target.with(t -> shw_nativeJNI.shw_world_lay_out(s, t))));
    }

    /**
     * Number of ranks of the job.
     *
     * @return at least 1
     */
    public int rankCount() {
        return with(shw_nativeJNI::shw_world_rank_count);
    }

    /**
     * The world as a description, repeats written out.
     *
     * @return JSON text
     */
    public String json() {
        return with(h -> Parts.text(shw_nativeJNI.shw_world_json(h)));
    }

    /**
     * Plans the save of all ranks and prices it; nothing is written.
     *
     * @param options owner, memory and bandwidth
     * @return the price as JSON text with {@code "schema": 1}
     */
    public String priceSave(PriceOptions options) {
        return Text.of(saved(options, 0).get(0));
    }

    /**
     * The merged plan of the save of all ranks.
     *
     * @param options owner, memory and bandwidth
     * @return a plan buffer for {@link Plan#of}
     */
    public byte[] savePlan(PriceOptions options) {
        return saved(options, WITH_PLAN).get(1);
    }

    /**
     * Plans the load of what this world stores by the ranks of another one and prices it.
     *
     * @param wanted a world that {@link #layOut} made of this one; null = this world
     * @param options owner, memory and bandwidth
     * @return the price as JSON text with {@code "schema": 1}
     */
    public String priceLoad(World wanted, PriceOptions options) {
        return Text.of(loaded(wanted, options, 0).get(0));
    }

    /**
     * The load plan of each rank of another world, rank 0 first; up to 4 GiB in all.
     *
     * @param wanted a world that {@link #layOut} made of this one; null = this world
     * @param options owner, memory and bandwidth
     * @return plan buffers for {@link Plan#of}
     */
    public List<byte[]> loadPlans(World wanted, PriceOptions options) {
        List<byte[]> parts = loaded(wanted, options, WITH_PLAN);
        return parts.subList(1, parts.size());
    }

    private List<byte[]> loaded(World wanted, PriceOptions options, long flags) {
        World target = wanted == null ? this : wanted;
        try (OptionStruct struct = options.struct(flags)) {
            return with(s -> target.with(
                    t -> Parts.all(shw_nativeJNI.shw_world_price_load(s, t, struct.address()))));
        }
    }

    private List<byte[]> saved(PriceOptions options, long flags) {
        try (OptionStruct struct = options.struct(flags)) {
            return with(h -> Parts.all(shw_nativeJNI.shw_world_price_save(h, struct.address())));
        }
    }
}
