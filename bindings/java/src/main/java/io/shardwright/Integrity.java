// SPDX-License-Identifier: Apache-2.0
// Values of the option integrity.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Whether Megatron's format lists the SHA-256 of each file in integrity.json. */
public enum Integrity {
    /** There is no list. */
    OFF(shw_nativeConstants.SHW_INTEGRITY_OFF),
    /** With a list, from hashes that are made while files are written. */
    SHA256(shw_nativeConstants.SHW_INTEGRITY_SHA256);

    private final int number;

    Integrity(int number) {
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
     * @param word e.g. {@code sha256}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Integrity of(String word) {
        return Words.named("integrity", word, values());
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
