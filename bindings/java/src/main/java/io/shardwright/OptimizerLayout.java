// SPDX-License-Identifier: Apache-2.0
// Values of the option optimizer.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** How the distributed optimizer of a checkpoint of Megatron is stored. */
public enum OptimizerLayout {
    /** With the shapes of its parameters: jobs of any shape load it. */
    FULLY_RESHARDABLE(shw_nativeConstants.SHW_OPTIMIZER_FULLY_RESHARDABLE),
    /** In buckets, as it was: only jobs of equal tensor, pipeline and expert sizes load it. */
    DP_RESHARDABLE(shw_nativeConstants.SHW_OPTIMIZER_DP_RESHARDABLE);

    private final int number;

    OptimizerLayout(int number) {
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

    /**
     * From the word that all languages use.
     *
     * @param word e.g. {@code fully_reshardable}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static OptimizerLayout of(String word) {
        return Words.named("optimizer", word, values());
    }

    /**
     * The word that all languages use.
     *
     * @return the word
     */
    public String word() {
        return Words.of(this);
    }
}
