// SPDX-License-Identifier: Apache-2.0
// Numbers without boxing.
package io.shardwright.internal;

import java.util.Arrays;

/** A growing array of long. Not thread-safe. */
public final class LongList {
    private long[] values = new long[16];
    private int size;

    public void add(long value) {
        reserve(1);
        values[size++] = value;
    }

    public void addAll(long[] more) {
        reserve(more.length);
        System.arraycopy(more, 0, values, size, more.length);
        size += more.length;
    }

    private void reserve(int more) {
        if (size + more > values.length) {
            values = Arrays.copyOf(values, Math.max(size + more, 2 * values.length));
        }
    }

    public int size() {
        return size;
    }

    public long get(int index) {
        return values[index];
    }

    /** A copy of the values from `begin` to `end`. */
    public long[] slice(int begin, int end) {
        return Arrays.copyOfRange(values, begin, end);
    }

    public long[] toArray() {
        return Arrays.copyOf(values, size);
    }
}
