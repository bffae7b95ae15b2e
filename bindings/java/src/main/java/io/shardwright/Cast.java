// SPDX-License-Identifier: Apache-2.0
// Values of the option cast.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Stored with another dtype than wanted. */
public enum Cast {
    /** INVALID_ARGUMENT with both. */
    ERROR(shw_nativeConstants.SHW_CAST_ERROR),
    /** Converted, and listed in the report. */
    ALLOW(shw_nativeConstants.SHW_CAST_ALLOW);

    private final int number;

    Cast(int number) {
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
     * @param word e.g. {@code error}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Cast of(String word) {
        return Words.named("cast", word, values());
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
