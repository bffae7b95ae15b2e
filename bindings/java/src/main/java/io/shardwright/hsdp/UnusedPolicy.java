// SPDX-License-Identifier: Apache-2.0
// Policy of unused parameterss.
package io.shardwright.hsdp;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.shw_nativeConstants;

/** What a parameter without a gradient adds to a reduction. */
public enum UnusedPolicy {
    /** Zeros. */
    ZERO(shw_nativeConstants.SHW_HSDP_UNUSED_ZERO),
    /** Nothing; the ranks must agree on which have none. */
    SKIP(shw_nativeConstants.SHW_HSDP_UNUSED_SKIP);

    private final int number;

    UnusedPolicy(int number) {
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

    static UnusedPolicy of(long number) {
        for (UnusedPolicy value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "policy of unused parameters " + number + " is not known");
    }
}
