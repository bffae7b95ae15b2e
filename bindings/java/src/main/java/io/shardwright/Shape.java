// SPDX-License-Identifier: Apache-2.0
// Values of the option shape.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Stored with another global shape than wanted. */
public enum Shape {
    /** INVALID_ARGUMENT with both. */
    ERROR(shw_nativeConstants.SHW_SHAPE_ERROR),
    /** Both anchored at the origin: cropped, or padded with zeros, and listed in the report. */
    CROP_AND_PAD(shw_nativeConstants.SHW_SHAPE_CROP_AND_PAD);

    private final int number;

    Shape(int number) {
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
     * @param word e.g. {@code error}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Shape of(String word) {
        return Words.named("shape", word, values());
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
