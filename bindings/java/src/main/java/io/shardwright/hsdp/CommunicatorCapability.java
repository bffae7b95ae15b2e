// SPDX-License-Identifier: Apache-2.0
// What communicators can do.
package io.shardwright.hsdp;

import io.shardwright.internal.shw_nativeConstants;
import java.util.EnumSet;
import java.util.Set;

/** What a communicator can. */
public enum CommunicatorCapability {
    /** {@link TensorReduction#AVERAGE}. */
    AVERAGE(shw_nativeConstants.SHW_COMMUNICATOR_AVERAGE),
    /** {@link TensorReduction#SCALED_SUM}. */
    SCALED_SUM(shw_nativeConstants.SHW_COMMUNICATOR_SCALED_SUM),
    /** What all_gather reads may be this rank's part of what it writes. */
    IN_PLACE_ALL_GATHER(shw_nativeConstants.SHW_COMMUNICATOR_IN_PLACE_ALL_GATHER),
    /** Sums do not depend on who comes when. */
    ORDERED_SUM(shw_nativeConstants.SHW_COMMUNICATOR_ORDERED_SUM),
    /** Parts of different sizes. */
    UNEVEN(shw_nativeConstants.SHW_COMMUNICATOR_UNEVEN),
    /** Memory of the host. */
    HOST_MEMORY(shw_nativeConstants.SHW_COMMUNICATOR_HOST_MEMORY),
    /** Memory of a device. */
    DEVICE_MEMORY(shw_nativeConstants.SHW_COMMUNICATOR_DEVICE_MEMORY),
    /** Memory of its own that is faster. */
    REGISTERED_MEMORY(shw_nativeConstants.SHW_COMMUNICATOR_REGISTERED_MEMORY),
    /** An operation is issued without waiting for other ranks. */
    ASYNC(shw_nativeConstants.SHW_COMMUNICATOR_ASYNC);

    private final long bit;

    CommunicatorCapability(long bit) {
        this.bit = bit;
    }

    static long bits(Set<CommunicatorCapability> capabilities) {
        long bits = 0;
        for (CommunicatorCapability each : capabilities) {
            bits |= each.bit;
        }
        return bits;
    }

    static Set<CommunicatorCapability> of(long bits) {
        Set<CommunicatorCapability> capabilities = EnumSet.noneOf(CommunicatorCapability.class);
        for (CommunicatorCapability each : values()) {
            if ((bits & each.bit) != 0) {
                capabilities.add(each);
            }
        }
        return capabilities;
    }
}
