// SPDX-License-Identifier: Apache-2.0
// Values of the option unexpected.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Stored but not wanted. */
public enum Unexpected {
    /** Listed in the report. */
    REPORT(shw_nativeConstants.SHW_UNEXPECTED_REPORT),
    /** INVALID_ARGUMENT. */
    ERROR(shw_nativeConstants.SHW_UNEXPECTED_ERROR);

    private final int number;

    Unexpected(int number) {
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
     * @param word e.g. {@code report}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Unexpected of(String word) {
        return Words.named("unexpected", word, values());
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
