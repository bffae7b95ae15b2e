// SPDX-License-Identifier: Apache-2.0
// Options as the native structs of one call.
package io.shardwright;

import java.time.Duration;
import java.util.function.LongConsumer;

/** A native options struct that goes with the call. */
final class OptionStruct implements AutoCloseable {
    private final long address;
    private final LongConsumer release;

    OptionStruct(long address, LongConsumer release) {
        this.address = address;
        this.release = release;
    }

    long address() {
        return address;
    }

    @Override
    public void close() {
        release.accept(address);
    }

    /** null = the default of the library (0), negative = no limit (-1), else at least one nanosecond. */
    static long deadline(Duration span) {
        return span == null ? 0 : span.isNegative() ? -1 : Math.max(1, nanoseconds(span));
    }

    /** null and negative spans = no limit. */
    static long limit(Duration span) {
        return span == null || span.isNegative() ? -1 : nanoseconds(span);
    }

    private static long nanoseconds(Duration span) {
        try {
            return span.toNanos();
        } catch (ArithmeticException e) {
            return -1; // longer than 292 years
        }
    }

    static int count(String option, int value) {
        if (value < 0) {
            throw ShardwrightException.invalid(option, "option " + option + " is " + value + "; it must not be negative");
        }
        return value;
    }

    static long count(String option, long value) {
        if (value < 0) {
            throw ShardwrightException.invalid(option, "option " + option + " is " + value + "; it must not be negative");
        }
        return value;
    }
}
