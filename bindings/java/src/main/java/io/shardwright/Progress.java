// SPDX-License-Identifier: Apache-2.0
// How far jobs are.
package io.shardwright;

import java.time.Duration;

/** How far a job is; values never decrease. Immutable. */
public final class Progress {
    private final String stage;
    private final long[] values;

    Progress(String stage, long[] values) {
        this.stage = stage;
        this.values = values;
    }

    /**
     * What it does.
     *
     * @return e.g. {@code plan}, {@code write}, {@code commit}
     */
    public String stage() {
        return stage;
    }

    /**
     * Bytes done.
     *
     * @return bytes
     */
    public long bytesDone() {
        return values[0];
    }

    /**
     * Bytes in all; 0 while unknown.
     *
     * @return bytes
     */
    public long bytesTotal() {
        return values[1];
    }

    /**
     * Items done.
     *
     * @return their number
     */
    public long itemsDone() {
        return values[2];
    }

    /**
     * Items in all; 0 while unknown.
     *
     * @return their number
     */
    public long itemsTotal() {
        return values[3];
    }

    /**
     * Time since the start.
     *
     * @return the span
     */
    public Duration elapsed() {
        return Duration.ofNanos(values[4]);
    }

    @Override
    public String toString() {
        return stage + " " + bytesDone() + "/" + bytesTotal() + " bytes";
    }
}
