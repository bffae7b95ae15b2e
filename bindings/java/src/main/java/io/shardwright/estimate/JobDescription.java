// SPDX-License-Identifier: Apache-2.0
// Described jobs: what their saves and loads would cost is estimated on one machine.
package io.shardwright.estimate;

import io.shardwright.Checkpoint;
import io.shardwright.Plan;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.util.List;

/**
 * A job described without any memory: its ranks, and what each holds of each tensor and object. Descriptions are JSON
 * text, named key by key in docs/formats/mesh.md. Immutable, thread-safe; closing is not necessary.
 */
public final class JobDescription extends Handle {
    private static final int WITH_PLAN = 1;

    private JobDescription(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_job_description_release);
    }

    /**
     * Reads a description.
     *
     * @param json JSON text
     * @return the description
     * @throws InvalidArgumentException that says line and column of what is wrong
     */
    public static JobDescription of(String json) {
        NativeLoader.load();
        return new JobDescription(shw_nativeJNI.shw_job_description_create(Text.bytes(json)));
    }

    /**
     * What a checkpoint stores: each chunk is held by the rank that wrote it.
     *
     * @param checkpoint an open checkpoint
     * @return the description
     */
    public static JobDescription ofCheckpoint(Checkpoint checkpoint) {
        try (Uses uses = new Uses()) {
            return new JobDescription(shw_nativeJNI.shw_job_description_from_checkpoint(uses.of(checkpoint)));
        }
    }

    /**
     * These tensors and objects as another description lays them out: as it lists them, else by the first of its rules.
     *
     * @param target the other description
     * @return a new description
     */
    public JobDescription layOut(JobDescription target) {
        return new JobDescription(with(s -> target.with(t -> shw_nativeJNI.shw_job_description_lay_out(s, t))));
    }

    /**
     * Number of ranks of the job.
     *
     * @return at least 1
     */
    public int rankCount() {
        return with(shw_nativeJNI::shw_job_description_rank_count);
    }

    /**
     * The description, repeats written out.
     *
     * @return JSON text
     */
    public String json() {
        return with(h -> Parts.text(shw_nativeJNI.shw_job_description_json(h)));
    }

    /**
     * Plans the save of all ranks and estimates what it costs; nothing is written.
     *
     * @param options owner, memory and bandwidth
     * @return the estimate
     */
    public Estimate estimateSave(EstimateOptions options) {
        return Estimate.of(Text.of(saved(options, 0).get(0)));
    }

    /**
     * The merged plan of the save of all ranks.
     *
     * @param options owner, memory and bandwidth
     * @return a plan buffer for {@link Plan#of}
     */
    public byte[] savePlan(EstimateOptions options) {
        return saved(options, WITH_PLAN).get(1);
    }

    /**
     * Plans the load of what this job stores by the ranks of another one and estimates what it costs.
     *
     * @param wanted a description that {@link #layOut} made of this one; null = this one
     * @param options owner, memory and bandwidth
     * @return the estimate
     */
    public Estimate estimateLoad(JobDescription wanted, EstimateOptions options) {
        return Estimate.of(Text.of(loaded(wanted, options, 0).get(0)));
    }

    /**
     * The load plan of each rank of another job, rank 0 first; up to 4 GiB in all.
     *
     * @param wanted a description that {@link #layOut} made of this one; null = this one
     * @param options owner, memory and bandwidth
     * @return plan buffers for {@link Plan#of}
     */
    public List<byte[]> loadPlans(JobDescription wanted, EstimateOptions options) {
        List<byte[]> parts = loaded(wanted, options, WITH_PLAN);
        return parts.subList(1, parts.size());
    }

    private List<byte[]> loaded(JobDescription wanted, EstimateOptions options, int flags) {
        JobDescription target = wanted == null ? this : wanted;
        return with(s -> target.with(t -> Parts.all(shw_nativeJNI.shw_estimate_load(s, t, options.struct(flags)))));
    }

    private List<byte[]> saved(EstimateOptions options, int flags) {
        return with(h -> Parts.all(shw_nativeJNI.shw_estimate_save(h, options.struct(flags))));
    }
}
