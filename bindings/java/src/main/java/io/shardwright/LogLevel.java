// SPDX-License-Identifier: Apache-2.0
// Levels of the log.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Severity of a log record. */
public enum LogLevel {
    /** Every step. */
    TRACE(shw_nativeConstants.SHW_LOG_TRACE),
    /** For those who work on the library. */
    DEBUG(shw_nativeConstants.SHW_LOG_DEBUG),
    /** What was done. */
    INFO(shw_nativeConstants.SHW_LOG_INFO),
    /** Something is not as it should be. */
    WARNING(shw_nativeConstants.SHW_LOG_WARNING),
    /** A call failed. */
    ERROR(shw_nativeConstants.SHW_LOG_ERROR),
    /** Nothing. */
    OFF(shw_nativeConstants.SHW_LOG_OFF);

    private final int number;

    LogLevel(int number) {
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
     * @param word e.g. {@code trace}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static LogLevel of(String word) {
        return Words.named("level", word, values());
    }

    /**
     * The word that all languages use.
     *
     * @return the word
     */
    public String word() {
        return Words.of(this);
    }

    static LogLevel of(int number) {
        for (LogLevel value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return ERROR;
    }
}
