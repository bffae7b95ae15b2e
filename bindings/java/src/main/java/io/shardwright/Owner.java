// SPDX-License-Identifier: Apache-2.0
// Values of the option owner.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Who writes an entry that several ranks hold. */
public enum Owner {
    /** Balanced by bytes. */
    BALANCED(shw_nativeConstants.SHW_OWNER_BALANCED),
    /** Always the lowest rank. */
    LOWEST_RANK(shw_nativeConstants.SHW_OWNER_LOWEST_RANK),
    /** As the original of the preset chooses. */
    EXACT(shw_nativeConstants.SHW_OWNER_EXACT),
    /** All of them, each its own chunk: for merges of descriptions, refused by saves. */
    ALL(shw_nativeConstants.SHW_OWNER_ALL);

    private final int number;

    Owner(int number) {
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
     * @param word e.g. {@code balanced}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Owner of(String word) {
        return Words.named("owner", word, values());
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
