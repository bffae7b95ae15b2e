// SPDX-License-Identifier: Apache-2.0
// Units whose memory is foretold.
package io.shardwright.hsdp;

import io.shardwright.internal.Structs;
import io.shardwright.internal.shw_nativeConstants;
import java.util.List;
import java.util.Objects;

/** A unit whose memory is foretold; its parameters need no tensors. Immutable. */
public final class EstimatedUnit {
    private final List<HsdpParam> params;
    private final Structs.HsdpUnitOptions options;
    private final int flags;

    private EstimatedUnit(List<HsdpParam> params, Structs.HsdpUnitOptions options, int flags) {
        this.params = List.copyOf(params);
        this.options = options;
        this.flags = flags;
    }

    /**
     * A unit whose gradients are taken where they lie.
     *
     * @param params its parameters
     * @param options as for {@link Hsdp#unit}; read now
     * @return the unit
     */
    public static EstimatedUnit of(List<HsdpParam> params, HsdpUnitOptions options) {
        Structs.HsdpUnitOptions struct = Objects.requireNonNull(options, "options").struct();
        boolean hostMemory = (struct.flags & shw_nativeConstants.SHW_HSDP_UNIT_HOST_MEMORY) != 0;
        return new EstimatedUnit(params, struct, hostMemory ? shw_nativeConstants.SHW_HSDP_ESTIMATE_HOST_MEMORY : 0);
    }

    /**
     * The same, with forward and backward around those of all others; of the first unit only.
     *
     * @return a new value
     */
    public EstimatedUnit root() {
        return new EstimatedUnit(params, options, flags | shw_nativeConstants.SHW_HSDP_ESTIMATE_ROOT);
    }

    /**
     * The same, with gradients that are handed in to be added ({@link HsdpUnit#addGrads}), so that they are summed in memory of
     * the library.
     *
     * @return a new value
     */
    public EstimatedUnit addsGrads() {
        return new EstimatedUnit(params, options, flags | shw_nativeConstants.SHW_HSDP_ESTIMATE_ADDS_GRADS);
    }

    List<HsdpParam> params() {
        return params;
    }

    /** As native/hsdp_estimate.c has them. */
    long[] facts() {
        return new long[] {options.flags, options.paramDtype, options.reduceDtype, options.outputDtype, options.gradDtype,
            options.layout, options.reshardAfterForward, options.secondarySize, options.unused, flags, params.size()};
    }
}
