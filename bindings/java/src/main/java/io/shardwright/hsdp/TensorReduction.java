// SPDX-License-Identifier: Apache-2.0
// Reduction of tensorss.
package io.shardwright.hsdp;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.shw_nativeConstants;

/** How elements of ranks are reduced. bfloat16 and float16 are added in float32 and rounded once. */
public enum TensorReduction {
    /** The sum. */
    SUM(shw_nativeConstants.SHW_REDUCTION_SUM),
    /** The mean. */
    AVERAGE(shw_nativeConstants.SHW_REDUCTION_AVERAGE),
    /** The sum of each input times the scale of the call. */
    SCALED_SUM(shw_nativeConstants.SHW_REDUCTION_SCALED_SUM),
    /** The largest. */
    MAX(shw_nativeConstants.SHW_REDUCTION_MAX),
    /** The smallest. */
    MIN(shw_nativeConstants.SHW_REDUCTION_MIN);

    private final int number;

    TensorReduction(int number) {
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

    static TensorReduction of(long number) {
        for (TensorReduction value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "reduction of tensors " + number + " is not known");
    }
}
