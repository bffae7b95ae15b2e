// SPDX-License-Identifier: Apache-2.0
// Values of the option verify.
package io.shardwright;

/** Whether stored digests are checked. */
public enum Verify {
    /** On every read. */
    ON_READ(shw_nativeConstants.SHW_VERIFY_ON_READ),
    /** Not; the report says so. */
    OFF(shw_nativeConstants.SHW_VERIFY_OFF);

    private final int number;

    Verify(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * From the word that all languages use.
     *
     * @param word e.g. {@code on_read}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Verify of(String word) {
        return Words.named("verify", word, values());
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
