// SPDX-License-Identifier: Apache-2.0
// Values of options as the native structs have them.
package io.shardwright.internal;

import java.time.Duration;

/** Spans and counts. */
public final class OptionValues {
    private OptionValues() {}

    /** null = the default of the library (0), negative = no limit (-1), else at least one nanosecond. */
    public static long deadline(Duration span) {
        return span == null ? 0 : span.isNegative() ? -1 : Math.max(1, nanoseconds(span));
    }

    /** null and negative spans = no limit. */
    public static long limit(Duration span) {
        return span == null || span.isNegative() ? -1 : nanoseconds(span);
    }

    private static long nanoseconds(Duration span) {
        try {
            return span.toNanos();
        } catch (ArithmeticException e) {
            return -1; // longer than 292 years
        }
    }

    public static int count(String option, int value) {
        if (value < 0) {
            throw Invalid.parameter(option, "option " + option + " is " + value + "; it must not be negative");
        }
        return value;
    }

    public static long count(String option, long value) {
        if (value < 0) {
            throw Invalid.parameter(option, "option " + option + " is " + value + "; it must not be negative");
        }
        return value;
    }
}
