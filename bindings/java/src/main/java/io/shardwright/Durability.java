// SPDX-License-Identifier: Apache-2.0
// Values of the option durability.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** What a finished save survives. */
public enum Durability {
    /** A loss of power. */
    FULL(shw_nativeConstants.SHW_DURABILITY_FULL),
    /** The end of the process only; the report says so. */
    NONE(shw_nativeConstants.SHW_DURABILITY_NONE);

    private final int number;

    Durability(int number) {
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
     * @param word e.g. {@code full}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Durability of(String word) {
        return Words.named("durability", word, values());
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
