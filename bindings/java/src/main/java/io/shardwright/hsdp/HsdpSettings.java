// SPDX-License-Identifier: Apache-2.0
// What a host may set of units.
package io.shardwright.hsdp;

import io.shardwright.internal.Handle;
import io.shardwright.internal.InterruptAlarm;
import io.shardwright.internal.shw_nativeConstants;
import java.util.function.LongConsumer;

/**
 * What a host may set of a unit, or of all units of a context: from now on, and equally on all ranks. Setters throw
 * FAILED_PRECONDITION where the state of the unit forbids it, and INVALID_ARGUMENT for a value that is none.
 */
public abstract sealed class HsdpSettings extends Handle permits Hsdp, HsdpUnit {
    HsdpSettings(long handle, Leak leak, LongConsumer release) {
        super(handle, leak, release);
    }

    /** Where this rank waits for others. */
    abstract HsdpMesh mesh();

    /** A call of the library that gives nothing. */
    final void run(LongConsumer call) {
        with(h -> {
            call.accept(h);
            return null;
        });
    }

    /** A call that may wait for other ranks: an interrupt of this thread ends it on all of them. */
    final void waitFor(LongConsumer call) {
        InterruptAlarm alarm = InterruptAlarm.begin(mesh()::cancel);
        try {
            run(call);
        } finally {
            alarm.close();
        }
    }

    abstract void set(int key, long value);

    abstract void set(int key, double value);

    private void set(int key, boolean value) {
        set(key, value ? 1L : 0L);
    }

    /**
     * Whether {@link HsdpUnit#postBackward} reduces; without it gradients are summed on this rank.
     *
     * @param value true at first
     */
    public void setRequiresGradientSync(boolean value) {
        set(shw_nativeConstants.SHW_HSDP_REQUIRES_GRADIENT_SYNC, value);
    }

    /**
     * Whether sums over the shard axis go on to the replicas; without it they are added up and wait.
     *
     * @param value true at first
     */
    public void setRequiresAllReduce(boolean value) {
        set(shw_nativeConstants.SHW_HSDP_REQUIRES_ALL_REDUCE, value);
    }

    /**
     * What becomes of gathered parameters after forward.
     *
     * @param value the policy
     */
    public void setReshardAfterForward(ReshardAfterForward value) {
        set(shw_nativeConstants.SHW_HSDP_SECONDARY_SIZE, value.secondarySize());
        set(shw_nativeConstants.SHW_HSDP_RESHARD_AFTER_FORWARD, (long) value.number());
    }

    /**
     * Whether whole parameters are freed after backward; without it they stay until {@link Hsdp#stepEvent}.
     *
     * @param value true at first
     */
    public void setReshardAfterBackward(boolean value) {
        set(shw_nativeConstants.SHW_HSDP_RESHARD_AFTER_BACKWARD, value);
    }

    /**
     * What becomes of gradients.
     *
     * @param value {@link ReduceOp#AVERAGE} at first
     */
    public void setReduceOp(ReduceOp value) {
        set(shw_nativeConstants.SHW_HSDP_REDUCE_OP, (long) value.number());
    }

    /**
     * What averages are divided by.
     *
     * @param value the factor; 0 = the number of ranks that share data
     */
    public void setDivideFactor(double value) {
        set(shw_nativeConstants.SHW_HSDP_DIVIDE_FACTOR, value);
    }

    /**
     * Whether backward needs the whole parameters.
     *
     * @param value true at first
     */
    public void setUnshardInBackward(boolean value) {
        set(shw_nativeConstants.SHW_HSDP_UNSHARD_IN_BACKWARD, value);
    }

    /**
     * Whether resharding keeps the memory of whole parameters.
     *
     * @param value false at first
     */
    public void setKeepUnsharded(boolean value) {
        set(shw_nativeConstants.SHW_HSDP_KEEP_UNSHARDED, value);
    }

    /**
     * What a parameter without a gradient adds to a reduction.
     *
     * @param value the policy
     */
    public void setUnusedPolicy(UnusedPolicy value) {
        set(shw_nativeConstants.SHW_HSDP_UNUSED_POLICY, (long) value.number());
    }
}
