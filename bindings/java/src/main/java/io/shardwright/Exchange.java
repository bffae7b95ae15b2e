// SPDX-License-Identifier: Apache-2.0
// Values of the option exchange.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** What is done with blocks that ranks of several machines want. */
public enum Exchange {
    /** One rank reads a block and it goes to the others through the collective, where that ends first. */
    AUTO(shw_nativeConstants.SHW_EXCHANGE_AUTO),
    /** Each machine reads for itself. */
    OFF(shw_nativeConstants.SHW_EXCHANGE_OFF),
    /** They are exchanged without measuring. */
    ALWAYS(shw_nativeConstants.SHW_EXCHANGE_ALWAYS);

    private final int number;

    Exchange(int number) {
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
     * @param word e.g. {@code always}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Exchange of(String word) {
        return Words.named("exchange", word, values());
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
