// SPDX-License-Identifier: Apache-2.0
// How far saves and loads are.
package io.shardwright;

import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import java.time.Duration;

/** How far a save or load is; values never decrease. Immutable. */
public final class Progress {
    private final Structs.Progress values;

    Progress(Structs.Progress values) {
        this.values = values;
    }

    /**
     * What it does.
     *
     * @return e.g. {@code plan}, {@code write}, {@code commit}
     */
    public String stage() {
        return Text.of(values.stage);
    }

    /**
     * State of the job; of a call RUNNING, and at last SUCCEEDED.
     *
     * @return the state
     */
    public JobState state() {
        return JobState.of(values.state);
    }

    /**
     * Bytes done.
     *
     * @return bytes
     */
    public long bytesDone() {
        return values.bytesDone;
    }

    /**
     * Bytes in all; 0 while unknown.
     *
     * @return bytes
     */
    public long bytesTotal() {
        return values.bytesTotal;
    }

    /**
     * Items done.
     *
     * @return their number
     */
    public long itemsDone() {
        return values.itemsDone;
    }

    /**
     * Items in all; 0 while unknown.
     *
     * @return their number
     */
    public long itemsTotal() {
        return values.itemsTotal;
    }

    /**
     * Time since the start.
     *
     * @return the span
     */
    public Duration elapsed() {
        return Duration.ofNanos(values.elapsedNs);
    }

    @Override
    public String toString() {
        return stage() + " " + bytesDone() + "/" + bytesTotal() + " bytes";
    }
}
