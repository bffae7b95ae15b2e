// SPDX-License-Identifier: Apache-2.0
// Phases.
package io.shardwright.hsdp;

import io.shardwright.internal.shw_nativeConstants;

/** Where a unit reshards or gathers ahead. */
public enum Phase {
    /** Around forward; resharding follows the policy of the unit. */
    FORWARD(shw_nativeConstants.SHW_HSDP_FORWARD),
    /** Around backward; resharding is not a question of policy. */
    BACKWARD(shw_nativeConstants.SHW_HSDP_BACKWARD);

    private final int number;

    Phase(int number) {
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
