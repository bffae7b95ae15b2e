// SPDX-License-Identifier: Apache-2.0
// State of a units.
package io.shardwright.hsdp;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.shw_nativeConstants;

/** What a rank holds of the parameters of a unit. */
public enum UnitState {
    /** Its shard. */
    SHARDED(shw_nativeConstants.SHW_HSDP_SHARDED),
    /** Its shard, and a gather is under way. */
    GATHERING(shw_nativeConstants.SHW_HSDP_GATHERING),
    /** Whole parameters. */
    UNSHARDED(shw_nativeConstants.SHW_HSDP_UNSHARDED),
    /** 1/n of them, from forward to backward. */
    SECONDARY(shw_nativeConstants.SHW_HSDP_SECONDARY);

    private final int number;

    UnitState(int number) {
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

    static UnitState of(long number) {
        for (UnitState value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "state of a unit " + number + " is not known");
    }
}
