// SPDX-License-Identifier: Apache-2.0
// Numbers without boxing.
package io.shardwright;

import java.util.Arrays;

/** A growing array of long. Not thread-safe. */
final class LongList {
    private long[] values = new long[16];
    private int size;

    void add(long value) {
        reserve(1);
        values[size++] = value;
    }

    void addAll(long[] more) {
        reserve(more.length);
        System.arraycopy(more, 0, values, size, more.length);
        size += more.length;
    }

    private void reserve(int more) {
        if (size + more > values.length) {
            values = Arrays.copyOf(values, Math.max(size + more, 2 * values.length));
        }
    }

    int size() {
        return size;
    }

    long get(int index) {
        return values[index];
    }

    /** A copy of the values from `begin` to `end`. */
    long[] slice(int begin, int end) {
        return Arrays.copyOfRange(values, begin, end);
    }

    long[] toArray() {
        return Arrays.copyOf(values, size);
    }
}
