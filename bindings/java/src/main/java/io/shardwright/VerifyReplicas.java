// SPDX-License-Identifier: Apache-2.0
// Values of the option verify_replicas.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Which replicas are compared before one is written. */
public enum VerifyReplicas {
    /** Objects and tensors up to 1 MiB. */
    AUTO(shw_nativeConstants.SHW_VERIFY_REPLICAS_AUTO),
    /** All. */
    ALL(shw_nativeConstants.SHW_VERIFY_REPLICAS_ALL),
    /** None. */
    OFF(shw_nativeConstants.SHW_VERIFY_REPLICAS_OFF);

    private final int number;

    VerifyReplicas(int number) {
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
     * @param word e.g. {@code auto}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static VerifyReplicas of(String word) {
        return Words.named("verify_replicas", word, values());
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
