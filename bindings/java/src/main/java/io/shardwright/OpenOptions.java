// SPDX-License-Identifier: Apache-2.0
// Options of opening.
package io.shardwright;

import java.time.Duration;
import java.util.Objects;

/** Options of opening a checkpoint; they hold for all reads of it. Not thread-safe while it is being filled. */
public final class OpenOptions {
    private Context context = null;
    private Storage storage = null;
    private Verify verify = Verify.ON_READ;
    private Format format = Format.AUTO;
    private long memoryBudget;
    private int threads;
    private Duration deadline = null;
    private int rank = -1;

    /** All defaults. */
    public OpenOptions() {}

    /**
     * Context of the call; null = the one that calls without a context share.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions context(Context value) {
        this.context = value;
        return this;
    }

    /**
     * Storage in which the path is a key prefix; null = the path is one of the file system.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions storage(Storage value) {
        this.storage = value;
        return this;
    }

    /**
     * See what this rank is given: entries that all share and its own rank_local ones; -1 = all entries, where a name
     * stands for the shared one, else for that of the lowest rank.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions rank(int value) {
        this.rank = value;
        return this;
    }

    /**
     * Whether stored digests are checked when payload is read.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions verify(Verify value) {
        this.verify = Objects.requireNonNull(value, "verify");
        return this;
    }

    /**
     * The only format that is accepted; AUTO = what is recognised.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions format(Format value) {
        this.format = Objects.requireNonNull(value, "format");
        return this;
    }

    /**
     * Bytes of staging memory; 0 = 256 MiB, or the bytes to stage when asynchronous.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions memoryBudget(long value) {
        this.memoryBudget = OptionStruct.count("memoryBudget", value);
        return this;
    }

    /**
     * Worker threads; 0 = all of the context.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions threads(int value) {
        this.threads = OptionStruct.count("threads", value);
        return this;
    }

    /**
     * Limit of the whole call; null = the default, negative = none.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions deadline(Duration value) {
        this.deadline = value;
        return this;
    }

    Context context() {
        return context != null ? context : Context.shared();
    }

    Storage storage() {
        return storage;
    }

    int rank() {
        return rank;
    }

    OptionStruct struct() {
        return struct(0);
    }

    /** With a native cancellation, which ends the call early; 0 = none. */
    OptionStruct struct(long cancellation) {
        int[] ints = {verify.number(), format.number(), threads};
        long[] longs = {memoryBudget, OptionStruct.deadline(deadline)};
        return new OptionStruct(shw_nativeJNI.shw_java_checkpoint_options_create(ints, longs, cancellation),
                shw_nativeJNI::shw_java_checkpoint_options_release);
    }
}
