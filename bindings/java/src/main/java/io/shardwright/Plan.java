// SPDX-License-Identifier: Apache-2.0
// Plan buffers.
package io.shardwright;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Parts;
import io.shardwright.internal.shw_nativeJNI;
import java.util.List;

/** A verified plan buffer. Immutable, thread-safe; closing it is not necessary. */
public final class Plan extends Handle {
    Plan(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_plan_release);
    }

    /**
     * From bytes of another rank or run.
     *
     * @param bytes the plan buffer
     * @return the plan
     * @throws ShardwrightException DATA_LOSS, INVALID_ARGUMENT or UNIMPLEMENTED, before anything else looks at the bytes
     */
    public static Plan of(byte[] bytes) {
        NativeLoader.load();
        return new Plan(shw_nativeJNI.shw_plan_create(bytes));
    }

    /**
     * All that is wrong with bytes that should be a plan.
     *
     * @param bytes the plan buffer
     * @return one sentence each; empty = valid
     */
    public static List<String> findings(byte[] bytes) {
        NativeLoader.load();
        return Parts.texts(shw_nativeJNI.shw_plan_findings(bytes));
    }

    /**
     * The plan buffer.
     *
     * @return a copy
     */
    public byte[] bytes() {
        return with(h -> shw_nativeJNI.copy(shw_nativeJNI.shw_plan_data(h), shw_nativeJNI.shw_plan_size(h)));
    }

    /**
     * The rank that it is for.
     *
     * @return the rank; 0 for a merged plan
     */
    public int rank() {
        return with(shw_nativeJNI::shw_plan_rank);
    }

    /**
     * Items of a write list or load plan.
     *
     * @return their number
     */
    public long itemCount() {
        return with(shw_nativeJNI::shw_plan_item_count);
    }

    /**
     * The plan for people.
     *
     * @param itemLimit most items of each list
     * @return JSON text with {@code "schema": 1}
     */
    public String json(long itemLimit) {
        return with(h -> Parts.text(shw_nativeJNI.shw_plan_json(h, itemLimit)));
    }
}
