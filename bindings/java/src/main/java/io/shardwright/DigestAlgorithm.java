// SPDX-License-Identifier: Apache-2.0
// Algorithms of tensor digests.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Algorithm of a tensor digest. */
public enum DigestAlgorithm {
    /** XXH3-128. */
    XXH3(shw_nativeConstants.SHW_DIGEST_XXH3),
    /** SHA-256. */
    SHA256(shw_nativeConstants.SHW_DIGEST_SHA256);

    private final int number;

    DigestAlgorithm(int number) {
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
     * @param word e.g. {@code xxh3}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static DigestAlgorithm of(String word) {
        return Words.named("algorithm", word, values());
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
