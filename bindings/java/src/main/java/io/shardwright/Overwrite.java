// SPDX-License-Identifier: Apache-2.0
// Values of the option overwrite.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** What happens to a checkpoint that is at the path. */
public enum Overwrite {
    /** Replaced atomically; the old one stays until the commit. */
    REPLACE(shw_nativeConstants.SHW_OVERWRITE_REPLACE),
    /** ALREADY_EXISTS. */
    REFUSE(shw_nativeConstants.SHW_OVERWRITE_REFUSE);

    private final int number;

    Overwrite(int number) {
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
     * @param word e.g. {@code replace}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Overwrite of(String word) {
        return Words.named("overwrite", word, values());
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
