// SPDX-License-Identifier: Apache-2.0
// What becomes of gathered parameters after forward.
package io.shardwright.hsdp;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.shw_nativeConstants;

/** What becomes of gathered parameters after forward. Immutable. */
public final class ReshardAfterForward {
    /** As {@link #RESHARD}, but {@link #KEEP} for a unit inside whose forward others run (a root). */
    public static final ReshardAfterForward AUTO = new ReshardAfterForward(shw_nativeConstants.SHW_HSDP_RESHARD_AUTO, 0);
    /** They are freed, and gathered again for backward. */
    public static final ReshardAfterForward RESHARD = new ReshardAfterForward(shw_nativeConstants.SHW_HSDP_RESHARD, 0);
    /** They are kept until backward has used them. */
    public static final ReshardAfterForward KEEP = new ReshardAfterForward(shw_nativeConstants.SHW_HSDP_KEEP, 0);

    private final int number;
    private final long secondarySize;

    private ReshardAfterForward(int number, long secondarySize) {
        this.number = number;
        this.secondarySize = secondarySize;
    }

    /**
     * Each rank keeps 1/n of them, and backward gathers over n ranks.
     *
     * @param n a divisor of the number of shards
     * @return the policy
     * @throws InvalidArgumentException for n below 1
     */
    public static ReshardAfterForward secondary(long n) {
        if (n < 1) {
            throw Invalid.parameter("n", "a secondary size of " + n + "; it must be a divisor of the number of shards");
        }
        return new ReshardAfterForward(shw_nativeConstants.SHW_HSDP_RESHARD_SECONDARY, n);
    }

    static ReshardAfterForward of(long number, long secondarySize) {
        boolean isSecondary = number == shw_nativeConstants.SHW_HSDP_RESHARD_SECONDARY;
        return new ReshardAfterForward((int) number, isSecondary ? secondarySize : 0);
    }

    /**
     * Number of the policy in the C interface.
     *
     * @return the number
     */
    public int number() {
        return number;
    }

    /**
     * n of {@link #secondary}.
     *
     * @return the number of ranks; 0 for the other policies
     */
    public long secondarySize() {
        return secondarySize;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ReshardAfterForward && ((ReshardAfterForward) other).number == number
                && ((ReshardAfterForward) other).secondarySize == secondarySize;
    }

    @Override
    public int hashCode() {
        return 31 * number + Long.hashCode(secondarySize);
    }

    @Override
    public String toString() {
        if (secondarySize > 0) {
            return "secondary(" + secondarySize + ")";
        }
        return equals(AUTO) ? "auto" : equals(KEEP) ? "keep" : "reshard";
    }
}
