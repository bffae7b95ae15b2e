// SPDX-License-Identifier: Apache-2.0
// Values of the option missing.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Wanted but not stored. */
public enum Missing {
    /** NOT_FOUND with the nearest names. */
    ERROR(shw_nativeConstants.SHW_MISSING_ERROR),
    /** Listed in the report, the destination untouched. */
    REPORT(shw_nativeConstants.SHW_MISSING_REPORT);

    private final int number;

    Missing(int number) {
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
    public static Missing of(String word) {
        return Words.named("missing", word, values());
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
