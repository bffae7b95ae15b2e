// SPDX-License-Identifier: Apache-2.0
// Operations of host collectives.
package io.shardwright.collective;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.shw_nativeConstants;

/** Operation of a reduction. */
public enum Reduction {
    /** The smallest value. */
    MIN(shw_nativeConstants.SHW_REDUCE_MIN),
    /** The largest value. */
    MAX(shw_nativeConstants.SHW_REDUCE_MAX),
    /** The sum; OUT_OF_RANGE when it does not fit. */
    SUM(shw_nativeConstants.SHW_REDUCE_SUM);

    private final int number;

    Reduction(int number) {
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

    static Reduction of(int number) {
        for (Reduction value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "reduction " + number + " is not known");
    }
}
