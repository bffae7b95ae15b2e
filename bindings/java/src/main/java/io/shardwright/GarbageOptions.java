// SPDX-License-Identifier: Apache-2.0
// Options of cleaning up.
package io.shardwright;

import java.time.Duration;

/** Options of {@link Shardwright#collectGarbage}. Not thread-safe while it is being filled. */
public final class GarbageOptions {
    private Context context;
    private Storage storage;
    private Duration grace;
    private boolean apply;

    /** All defaults: a dry run over generations older than a day. */
    public GarbageOptions() {}

    /**
     * Context of the call.
     *
     * @param value the context; null = the shared one
     * @return this
     */
    public GarbageOptions context(Context value) {
        context = value;
        return this;
    }

    /**
     * Storage in which the path is a key prefix.
     *
     * @param value the storage; null = the path is one of the file system
     * @return this
     */
    public GarbageOptions storage(Storage value) {
        storage = value;
        return this;
    }

    /**
     * Generations whose newest file is younger stay.
     *
     * @param value the span; null = 24 hours, zero = any age
     * @return this
     */
    public GarbageOptions grace(Duration value) {
        grace = value;
        return this;
    }

    /**
     * Whether anything is removed.
     *
     * @param value false = the report only says what would be
     * @return this
     */
    public GarbageOptions apply(boolean value) {
        apply = value;
        return this;
    }

    Context context() {
        return context != null ? context : Context.shared();
    }

    Storage storage() {
        return storage;
    }

    long graceNs() {
        return grace == null ? 0 : grace.isZero() ? -1 : OptionStruct.limit(grace);
    }

    long flags() {
        return apply ? shw_nativeConstants.SHW_GC_APPLY : 0;
    }
}
