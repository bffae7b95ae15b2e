// SPDX-License-Identifier: Apache-2.0
// Values of the option cover.
package io.shardwright.planning;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** What is proved about boxes: of the chunks of a tensor, or of what fills a wanted box. */
public enum Cover {
    /** Every element exactly once. */
    FULL(shw_nativeConstants.SHW_COVER_FULL),
    /** No element twice. */
    DISJOINT(shw_nativeConstants.SHW_COVER_DISJOINT),
    /** Nothing but that each box lies inside its tensor. */
    OFF(shw_nativeConstants.SHW_COVER_OFF);

    private final int number;

    Cover(int number) {
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
     * @param word e.g. {@code full}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Cover of(String word) {
        return Words.named("cover", word, values());
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
