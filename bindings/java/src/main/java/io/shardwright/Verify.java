// SPDX-License-Identifier: Apache-2.0
// Values of the option verify.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Whether stored digests are checked. */
public enum Verify {
    /** On every read. */
    ON_READ(shw_nativeConstants.SHW_VERIFY_ON_READ),
    /** Not; the report says so. */
    OFF(shw_nativeConstants.SHW_VERIFY_OFF);

    private final int number;

    Verify(int number) {
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
     * @param word e.g. {@code on_read}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Verify of(String word) {
        return Words.named("verify", word, values());
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
