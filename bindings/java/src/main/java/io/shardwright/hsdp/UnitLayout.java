// SPDX-License-Identifier: Apache-2.0
// Layout of a units.
package io.shardwright.hsdp;

import io.shardwright.internal.shw_nativeConstants;

/** How parameters lie in the shards. */
public enum UnitLayout {
    /** Each is cut along one dimension, as torch.chunk cuts. */
    ROW(shw_nativeConstants.SHW_HSDP_LAYOUT_ROW),
    /** All are one range of rows that is cut evenly, so that gathered parameters need no copy. */
    RAGGED(shw_nativeConstants.SHW_HSDP_LAYOUT_RAGGED);

    private final int number;

    UnitLayout(int number) {
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
