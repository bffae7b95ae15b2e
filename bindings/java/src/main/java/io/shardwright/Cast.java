// SPDX-License-Identifier: Apache-2.0
// Values of the option cast.
package io.shardwright;

/** Stored with another dtype than wanted. */
public enum Cast {
    /** INVALID_ARGUMENT with both. */
    ERROR(shw_nativeConstants.SHW_CAST_ERROR),
    /** Converted, and listed in the report. */
    ALLOW(shw_nativeConstants.SHW_CAST_ALLOW);

    private final int number;

    Cast(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * From the word that all languages use.
     *
     * @param word e.g. {@code error}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Cast of(String word) {
        return Words.named("cast", word, values());
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
