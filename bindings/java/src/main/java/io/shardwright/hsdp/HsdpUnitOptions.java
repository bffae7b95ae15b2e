// SPDX-License-Identifier: Apache-2.0
// Options of units.
package io.shardwright.hsdp;

import io.shardwright.DType;
import io.shardwright.internal.Structs;
import io.shardwright.internal.shw_nativeConstants;
import java.util.Objects;

/** Options of {@link Hsdp#unit}, with the defaults that all languages share. Not thread-safe while it is being filled. */
public final class HsdpUnitOptions {
    private DType paramDtype;
    private DType reduceDtype;
    private DType outputDtype;
    private DType gradDtype;
    private UnitLayout layout = UnitLayout.ROW;
    private ReshardAfterForward reshardAfterForward = ReshardAfterForward.AUTO;
    private UnusedPolicy unused = UnusedPolicy.ZERO;
    private boolean offload;
    private boolean hostMemory;

    /** All defaults. */
    public HsdpUnitOptions() {}

    /**
     * Dtype in which parameters are gathered.
     *
     * @param value null = as the parameter is stored
     * @return this
     */
    public HsdpUnitOptions paramDtype(DType value) {
        this.paramDtype = value;
        return this;
    }

    /**
     * Dtype in which gradients travel and are summed.
     *
     * @param value null = that of {@link #gradDtype}
     * @return this
     */
    public HsdpUnitOptions reduceDtype(DType value) {
        this.reduceDtype = value;
        return this;
    }

    /**
     * Dtype in which outputs are wanted; kept for the host.
     *
     * @param value null = as the parameter is stored
     * @return this
     */
    public HsdpUnitOptions outputDtype(DType value) {
        this.outputDtype = value;
        return this;
    }

    /**
     * Dtype of the gradient of the shard.
     *
     * @param value null = as the parameter is stored
     * @return this
     */
    public HsdpUnitOptions gradDtype(DType value) {
        this.gradDtype = value;
        return this;
    }

    /**
     * How parameters lie in the shards.
     *
     * @param value the layout
     * @return this
     */
    public HsdpUnitOptions layout(UnitLayout value) {
        this.layout = Objects.requireNonNull(value, "layout");
        return this;
    }

    /**
     * What becomes of gathered parameters after forward.
     *
     * @param value the policy
     * @return this
     */
    public HsdpUnitOptions reshardAfterForward(ReshardAfterForward value) {
        this.reshardAfterForward = Objects.requireNonNull(value, "reshardAfterForward");
        return this;
    }

    /**
     * What a parameter without a gradient adds to a reduction.
     *
     * @param value the policy
     * @return this
     */
    public HsdpUnitOptions unused(UnusedPolicy value) {
        this.unused = Objects.requireNonNull(value, "unused");
        return this;
    }

    /**
     * Whether shards and their gradients stay in memory of the host, so that buffers reach them on every device.
     *
     * @param value false by default
     * @return this
     */
    public HsdpUnitOptions offload(boolean value) {
        this.offload = value;
        return this;
    }

    /**
     * Whether whole parameters lie in memory of the host, given by {@link HsdpUnit#setMemory}.
     *
     * @param value false by default
     * @return this
     */
    public HsdpUnitOptions hostMemory(boolean value) {
        this.hostMemory = value;
        return this;
    }

    private static int number(DType dtype) {
        return dtype == null ? 0 : dtype.number();
    }

    Structs.HsdpUnitOptions struct() {
        Structs.HsdpUnitOptions struct = new Structs.HsdpUnitOptions();
        struct.flags = (offload ? shw_nativeConstants.SHW_HSDP_UNIT_OFFLOAD : 0)
                | (hostMemory ? shw_nativeConstants.SHW_HSDP_UNIT_HOST_MEMORY : 0);
        struct.paramDtype = number(paramDtype);
        struct.reduceDtype = number(reduceDtype);
        struct.outputDtype = number(outputDtype);
        struct.gradDtype = number(gradDtype);
        struct.layout = layout.number();
        struct.reshardAfterForward = reshardAfterForward.number();
        struct.secondarySize = reshardAfterForward.secondarySize();
        struct.unused = unused.number();
        return struct;
    }
}
