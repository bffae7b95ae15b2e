// SPDX-License-Identifier: Apache-2.0
// State of gradientss.
package io.shardwright.hsdp;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.shw_nativeConstants;

/** How far the gradients of a unit are. */
public enum GradState {
    /** There are none. */
    NONE(shw_nativeConstants.SHW_HSDP_GRAD_NONE),
    /** Whole ones of this rank were handed in. */
    LOCAL(shw_nativeConstants.SHW_HSDP_GRAD_LOCAL),
    /** They are packed. */
    PACKED(shw_nativeConstants.SHW_HSDP_GRAD_PACKED),
    /** They are on their way over the shard axis. */
    SCATTERING(shw_nativeConstants.SHW_HSDP_GRAD_SCATTERING),
    /** They are summed over the shard axis, and wait for the replicas. */
    PARTIAL(shw_nativeConstants.SHW_HSDP_GRAD_PARTIAL),
    /** They are on their way over the replicas. */
    REPLICATING(shw_nativeConstants.SHW_HSDP_GRAD_REPLICATING),
    /** They are in the gradient of the shard. */
    READY(shw_nativeConstants.SHW_HSDP_GRAD_READY);

    private final int number;

    GradState(int number) {
        this.number = number;
    }

    /**
     * Number of the value in the C interface.
     *
     * @return the number
     */
    public int number() {
        return number;
    }

    static GradState of(long number) {
        for (GradState value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "state of gradients " + number + " is not known");
    }
}
