// SPDX-License-Identifier: Apache-2.0
// Values of the option kind.
package io.shardwright.planning;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** What entries describe. */
public enum Described {
    /** What a rank holds. */
    LOCAL_SAVE(shw_nativeConstants.SHW_PLAN_LOCAL_SAVE),
    /** What is stored: each box one chunk, without rank, world size and agreement. */
    MERGED_SAVE(shw_nativeConstants.SHW_PLAN_MERGED_SAVE);

    private final int number;

    Described(int number) {
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
     * @param word e.g. {@code local_save}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Described of(String word) {
        return Words.named("kind", word, values());
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
