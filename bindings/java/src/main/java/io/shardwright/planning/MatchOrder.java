// SPDX-License-Identifier: Apache-2.0
// Values of the option order.
package io.shardwright.planning;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Order of matches, entries always in their order. */
public enum MatchOrder {
    /** Wanted boxes in their order, for each the chunks by number. */
    WANTED(shw_nativeConstants.SHW_MATCH_BY_WANTED),
    /** As the sweep of torch 2.15 finds them. */
    SWEEP(shw_nativeConstants.SHW_MATCH_BY_SWEEP);

    private final int number;

    MatchOrder(int number) {
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
     * @param word e.g. {@code wanted}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static MatchOrder of(String word) {
        return Words.named("order", word, values());
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
