// SPDX-License-Identifier: Apache-2.0
// Options of a reshard.
package io.shardwright;

import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeConstants;
import java.time.Duration;
import java.util.Objects;

/** Options of {@link Shardwright#reshard}. Not thread-safe while it is being filled. */
public final class ReshardOptions {
    private Context context;
    private int tensorParallel;
    private int pipelineParallel;
    private int expertParallel;
    private int expertTensorParallel;
    private int dataParallel;
    private int[] pipelineLayers = {};
    private OptimizerLayout optimizer = OptimizerLayout.FULLY_RESHARDABLE;
    private String job;
    private String map;
    private boolean dryRun;
    private Overwrite overwrite = Overwrite.REFUSE;
    private Durability durability = Durability.FULL;
    private boolean compare = true;
    private int threads;
    private int fileMode;
    private long memoryBudget;
    private Duration deadline;

    /** All defaults. */
    public ReshardOptions() {}

    /**
     * Context of the call.
     *
     * @param value the context; null = the shared one
     * @return this
     */
    public ReshardOptions context(Context value) {
        context = value;
        return this;
    }

    /**
     * Tensor-parallel size of the target job; 0 = as in the source.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions tensorParallel(int value) {
        tensorParallel = OptionValues.count("tensorParallel", value);
        return this;
    }

    /**
     * Pipeline-parallel size of the target job; 0 = as in the source.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions pipelineParallel(int value) {
        pipelineParallel = OptionValues.count("pipelineParallel", value);
        return this;
    }

    /**
     * Expert-parallel size of the target job; 0 = as in the source.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions expertParallel(int value) {
        expertParallel = OptionValues.count("expertParallel", value);
        return this;
    }

    /**
     * Tensor-parallel size of experts; 0 = that of the rest, or as in the source where it differs there.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions expertTensorParallel(int value) {
        expertTensorParallel = OptionValues.count("expertTensorParallel", value);
        return this;
    }

    /**
     * Data-parallel size of the target job; 0 = 1.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions dataParallel(int value) {
        dataParallel = OptionValues.count("dataParallel", value);
        return this;
    }

    /**
     * Layers of each pipeline stage; none = as in the source where it has as many stages, else all have as many.
     *
     * @param values the layers, by stages
     * @return this
     */
    public ReshardOptions pipelineLayers(int... values) {
        for (int value : values) {
            OptionValues.count("pipelineLayers", value);
        }
        pipelineLayers = values.clone();
        return this;
    }

    /**
     * How the optimizer is stored.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions optimizer(OptimizerLayout value) {
        optimizer = Objects.requireNonNull(value, "optimizer");
        return this;
    }

    /**
     * The target job as JSON text; null = none. What is said here wins over it.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions job(String value) {
        job = value;
        return this;
    }

    /**
     * What no checkpoint tells, as JSON text: what lies where in buckets, rules of a mapping, when buckets are full; null = none.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions map(String value) {
        map = value;
        return this;
    }

    /**
     * Whether everything is proved and nothing is written.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions dryRun(boolean value) {
        dryRun = value;
        return this;
    }

    /**
     * Whether another checkpoint at the target is replaced.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions overwrite(Overwrite value) {
        overwrite = Objects.requireNonNull(value, "overwrite");
        return this;
    }

    /**
     * What the target survives.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions durability(Durability value) {
        durability = Objects.requireNonNull(value, "durability");
        return this;
    }

    /**
     * Whether what was written is read back and compared.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions compare(boolean value) {
        compare = value;
        return this;
    }

    /**
     * Worker threads; 0 = all of the context.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions threads(int value) {
        threads = OptionValues.count("threads", value);
        return this;
    }

    /**
     * Mode of new files; 0 = 0666 and the umask.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions fileMode(int value) {
        fileMode = OptionValues.count("fileMode", value);
        return this;
    }

    /**
     * Bytes of staging memory for reading and writing together; 0 = that of the context.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions memoryBudget(long value) {
        memoryBudget = OptionValues.count("memoryBudget", value);
        return this;
    }

    /**
     * Limit of the whole call; null = none.
     *
     * @param value the value
     * @return this
     */
    public ReshardOptions deadline(Duration value) {
        deadline = value;
        return this;
    }

    Context context() {
        return context != null ? context : Context.shared();
    }

    Structs.ReshardOptions struct() {
        Structs.ReshardOptions struct = new Structs.ReshardOptions();
        struct.flags = (compare ? 0 : shw_nativeConstants.SHW_RESHARD_WITHOUT_COMPARISON)
                | (dryRun ? shw_nativeConstants.SHW_RESHARD_DRY_RUN : 0);
        struct.tensorParallel = tensorParallel;
        struct.pipelineParallel = pipelineParallel;
        struct.expertParallel = expertParallel;
        struct.expertTensorParallel = expertTensorParallel;
        struct.dataParallel = dataParallel;
        struct.pipelineLayers = pipelineLayers;
        struct.pipelineLayerCount = pipelineLayers.length;
        struct.optimizer = optimizer.number();
        struct.overwrite = overwrite.number();
        struct.durability = durability.number();
        struct.threads = threads;
        struct.fileMode = fileMode;
        struct.job = job == null ? null : Text.terminated(job);
        struct.map = map == null ? null : Text.terminated(map);
        struct.memoryBudget = memoryBudget;
        struct.deadlineNs = OptionValues.deadline(deadline);
        return struct;
    }
}
