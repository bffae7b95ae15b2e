// SPDX-License-Identifier: Apache-2.0
// Lane of a meshs.
package io.shardwright.hsdp;

import io.shardwright.internal.shw_nativeConstants;

/** What a communicator of an axis is for. */
public enum MeshLane {
    /** Gathers, and reductions unless they have their own. */
    GATHER(shw_nativeConstants.SHW_HSDP_LANE_GATHER),
    /** Reductions. */
    REDUCE(shw_nativeConstants.SHW_HSDP_LANE_REDUCE),
    /** n neighbours that each keep 1/n of gathered parameters after forward. */
    SECONDARY(shw_nativeConstants.SHW_HSDP_LANE_SECONDARY);

    private final int number;

    MeshLane(int number) {
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
}
