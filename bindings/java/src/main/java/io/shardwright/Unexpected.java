// SPDX-License-Identifier: Apache-2.0
// Values of the option unexpected.
package io.shardwright;

/** Stored but not wanted. */
public enum Unexpected {
    /** Listed in the report. */
    REPORT(shw_nativeConstants.SHW_UNEXPECTED_REPORT),
    /** INVALID_ARGUMENT. */
    ERROR(shw_nativeConstants.SHW_UNEXPECTED_ERROR);

    private final int number;

    Unexpected(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * From the word that all languages use.
     *
     * @param word e.g. {@code report}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Unexpected of(String word) {
        return Words.named("unexpected", word, values());
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
