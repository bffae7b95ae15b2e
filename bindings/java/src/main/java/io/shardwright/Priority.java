// SPDX-License-Identifier: Apache-2.0
// Values of the option priority.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** What all but the copy of a job runs at. */
public enum Priority {
    /** As the threads of the caller. */
    NORMAL(shw_nativeConstants.SHW_PRIORITY_NORMAL),
    /** On threads of its own that get about a tenth of a core that others want. */
    BACKGROUND(shw_nativeConstants.SHW_PRIORITY_BACKGROUND);

    private final int number;

    Priority(int number) {
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
     * @param word e.g. {@code background}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Priority of(String word) {
        return Words.named("priority", word, values());
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
