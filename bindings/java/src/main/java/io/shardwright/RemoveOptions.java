// SPDX-License-Identifier: Apache-2.0
// Options of removing entries.
package io.shardwright;

import io.shardwright.internal.shw_nativeConstants;

/** Options of {@link Shardwright#removeEntries}. Not thread-safe while it is being filled. */
public final class RemoveOptions {
    private Context context;
    private boolean wholeParts;
    private boolean apply;

    /** All defaults: a dry run over all names that begin with the prefix. */
    public RemoveOptions() {}

    /**
     * Context of the call.
     *
     * @param value the context; null = the shared one
     * @return this
     */
    public RemoveOptions context(Context value) {
        context = value;
        return this;
    }

    /**
     * Whether names end behind the prefix, or go on with "." or "/", so that "layer1" has no "layer10".
     *
     * @param value false = any that begin with it
     * @return this
     */
    public RemoveOptions wholeParts(boolean value) {
        wholeParts = value;
        return this;
    }

    /**
     * Whether anything is removed.
     *
     * @param value false = the report only says what would be
     * @return this
     */
    public RemoveOptions apply(boolean value) {
        apply = value;
        return this;
    }

    Context context() {
        return context != null ? context : Context.shared();
    }

    long flags() {
        return (apply ? shw_nativeConstants.SHW_REMOVE_APPLY : 0) | (wholeParts ? shw_nativeConstants.SHW_REMOVE_WHOLE_PARTS : 0);
    }
}
