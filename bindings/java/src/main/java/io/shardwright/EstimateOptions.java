// SPDX-License-Identifier: Apache-2.0
// Options of an estimate.
package io.shardwright;

import java.util.Objects;

/** Options of {@link JobDescription#estimateSave} and {@link JobDescription#estimateLoad}. Not thread-safe while it is being filled. */
public final class EstimateOptions {
    private static final long WITH_CHUNKS = 2;

    private Owner owner = Owner.BALANCED;
    private Preset preset = Preset.STANDARD;
    private long memoryBudget;
    private long rankBytesPerSecond;
    private long totalBytesPerSecond;
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
        this.memoryBudget = OptionStruct.count("memoryBudget", value);
        return this;
    }

    /**
     * Bandwidth of one rank, for the estimated time.
     *
     * @param value bytes per second, 0 = not known
     * @return this
     */
    public EstimateOptions rankBytesPerSecond(long value) {
        this.rankBytesPerSecond = OptionStruct.count("rankBytesPerSecond", value);
        return this;
    }

    /**
     * Bandwidth that all ranks share.
     *
     * @param value bytes per second, 0 = not known
     * @return this
     */
    public EstimateOptions totalBytesPerSecond(long value) {
        this.totalBytesPerSecond = OptionStruct.count("totalBytesPerSecond", value);
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

    OptionStruct struct(long flags) {
        long all = chunks ? flags | WITH_CHUNKS : flags;
        long[] longs = {owner.number(), preset.number(), all, memoryBudget, rankBytesPerSecond, totalBytesPerSecond};
        return new OptionStruct(shw_nativeJNI.shw_java_estimate_options_create(longs),
                shw_nativeJNI::shw_java_estimate_options_release);
    }
}
