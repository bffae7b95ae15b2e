// SPDX-License-Identifier: Apache-2.0
// Values of the option exchange of estimates.
package io.shardwright.estimate;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Blocks of a load that several machines want. */
public enum NodeExchange {
    /** Each machine reads them. */
    OFF(shw_nativeConstants.SHW_ESTIMATE_EXCHANGE_OFF),
    /** One rank reads a block and sends it to one rank of each other machine. */
    ALWAYS(shw_nativeConstants.SHW_ESTIMATE_EXCHANGE_ALWAYS);

    private final int number;

    NodeExchange(int number) {
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
    public static NodeExchange of(String word) {
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
