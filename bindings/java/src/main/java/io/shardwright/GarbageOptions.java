// SPDX-License-Identifier: Apache-2.0
// Options of cleaning up.
package io.shardwright;

import io.shardwright.internal.OptionValues;
import io.shardwright.internal.shw_nativeConstants;
import java.time.Duration;

/** Options of {@link Shardwright#collectGarbage}. Not thread-safe while it is being filled. */
public final class GarbageOptions {
    private Context context;
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

    long graceNs() {
        return grace == null ? 0 : grace.isZero() ? -1 : OptionValues.limit(grace);
    }

    long flags() {
        return apply ? shw_nativeConstants.SHW_GC_APPLY : 0;
    }
}
