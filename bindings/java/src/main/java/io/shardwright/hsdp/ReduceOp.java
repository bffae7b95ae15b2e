// SPDX-License-Identifier: Apache-2.0
// Operation of a reductions.
package io.shardwright.hsdp;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.shw_nativeConstants;

/** What becomes of gradients. */
public enum ReduceOp {
    /** Their mean over the ranks that share data. */
    AVERAGE(shw_nativeConstants.SHW_HSDP_REDUCE_AVERAGE),
    /** Their sum. */
    SUM(shw_nativeConstants.SHW_HSDP_REDUCE_SUM);

    private final int number;

    ReduceOp(int number) {
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

    static ReduceOp of(long number) {
        for (ReduceOp value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "operation of a reduction " + number + " is not known");
    }
}
