// SPDX-License-Identifier: Apache-2.0
// Values of the option common.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Where Megatron's format keeps the common state. */
public enum Common {
    /** In common.pt, which every megatron-core reads. */
    FILE(shw_nativeConstants.SHW_COMMON_FILE),
    /** Among the data, as megatron-core from 0.19 on does. */
    OBJECT(shw_nativeConstants.SHW_COMMON_OBJECT);

    private final int number;

    Common(int number) {
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
     * @param word e.g. {@code object}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Common of(String word) {
        return Words.named("common", word, values());
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
