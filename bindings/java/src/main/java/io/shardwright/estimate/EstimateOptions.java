// SPDX-License-Identifier: Apache-2.0
// Options of an estimate.
package io.shardwright.estimate;

import io.shardwright.Owner;
import io.shardwright.Preset;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Structs;
import java.util.Objects;

/** Options of {@link JobDescription#estimateSave} and {@link JobDescription#estimateLoad}. Not thread-safe while it is being filled. */
public final class EstimateOptions {
    private static final int WITH_CHUNKS = 2;

    private Owner owner = Owner.BALANCED;
    private Preset preset = Preset.NATIVE;
    private long memoryBudget;
    private long rankBytesPerSecond;
    private long totalBytesPerSecond;
    private int ranksPerNode;
    private NodeExchange exchange = NodeExchange.OFF;
    private boolean chunks;

    /** All defaults. */
    public EstimateOptions() {}

    /**
     * Who writes what several ranks hold.
     *
     * @param value the rule
     * @return this
     */
    public EstimateOptions owner(Owner value) {
        this.owner = Objects.requireNonNull(value, "owner");
        return this;
    }

    /**
     * Planner behaviour.
     *
     * @param value the preset
     * @return this
     */
    public EstimateOptions preset(Preset value) {
        this.preset = Objects.requireNonNull(value, "preset");
        return this;
    }

    /**
     * Staging memory of one rank.
     *
     * @param value bytes, 0 = 256 MiB
     * @return this
     */
    public EstimateOptions memoryBudget(long value) {
        this.memoryBudget = OptionValues.count("memoryBudget", value);
        return this;
    }

    /**
     * Bandwidth of one rank, for the estimated time.
     *
     * @param value bytes per second, 0 = not known
     * @return this
     */
    public EstimateOptions rankBytesPerSecond(long value) {
        this.rankBytesPerSecond = OptionValues.count("rankBytesPerSecond", value);
        return this;
    }

    /**
     * Bandwidth that all ranks share.
     *
     * @param value bytes per second, 0 = not known
     * @return this
     */
    public EstimateOptions totalBytesPerSecond(long value) {
        this.totalBytesPerSecond = OptionValues.count("totalBytesPerSecond", value);
        return this;
    }

    /**
     * Ranks of one machine, one after the other, which share what they read; for loads.
     *
     * @param value how many, 64 at most; 0 = each reads alone
     * @return this
     */
    public EstimateOptions ranksPerNode(int value) {
        this.ranksPerNode = OptionValues.count("ranksPerNode", value);
        return this;
    }

    /**
     * Whether machines send each other what several of them want; needs {@link #ranksPerNode}.
     *
     * @param value the rule
     * @return this
     */
    public EstimateOptions exchange(NodeExchange value) {
        this.exchange = Objects.requireNonNull(value, "exchange");
        return this;
    }

    /**
     * Whether groups of tensors list the chunks of their first tensor ({@code chunk_list}), up to 1 Mi in all.
     *
     * @param value false without it
     * @return this
     */
    public EstimateOptions chunks(boolean value) {
        this.chunks = value;
        return this;
    }

    Structs.EstimateOptions struct(int flags) {
        Structs.EstimateOptions struct = new Structs.EstimateOptions();
        struct.flags = chunks ? flags | WITH_CHUNKS : flags;
        struct.owner = owner.number();
        struct.preset = preset.number();
        struct.memoryBudget = memoryBudget;
        struct.rankBytesPerSecond = rankBytesPerSecond;
        struct.totalBytesPerSecond = totalBytesPerSecond;
        struct.ranksPerNode = ranksPerNode;
        struct.exchange = exchange.number();
        return struct;
    }
}
