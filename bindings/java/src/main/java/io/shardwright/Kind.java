// SPDX-License-Identifier: Apache-2.0
// Values of the option kind.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Who holds an entry. */
public enum Kind {
    /** Whole tensors and objects: replicated; those with boxes or a layout: sharded. */
    AUTO(shw_nativeConstants.SHW_KIND_AUTO),
    /** Equal on all ranks, stored once. */
    REPLICATED(shw_nativeConstants.SHW_KIND_REPLICATED),
    /** Each rank holds boxes. */
    SHARDED(shw_nativeConstants.SHW_KIND_SHARDED),
    /** Each rank has its own, stored per rank. */
    RANK_LOCAL(shw_nativeConstants.SHW_KIND_RANK_LOCAL);

    private final int number;

    Kind(int number) {
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
     * From a number of the C interface.
     *
     * @param number {@link #number}
     * @return the value
     * @throws UnimplementedException for a number of a newer library
     */
    public static Kind of(int number) {
        for (Kind kind : values()) {
            if (kind.number == number) {
                return kind;
            }
        }
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "kind " + number + " is newer than these classes");
    }

    /**
     * From the word that all languages use.
     *
     * @param word e.g. {@code auto}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Kind of(String word) {
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
