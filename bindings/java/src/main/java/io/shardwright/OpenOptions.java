// SPDX-License-Identifier: Apache-2.0
// Options of opening.
package io.shardwright;

import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Structs;
import java.time.Duration;
import java.util.Objects;

/** Options of opening a checkpoint; they hold for all reads of it. Not thread-safe while it is being filled. */
public final class OpenOptions {
    private Context context = null;
    private Verify verify = Verify.ON_READ;
    private ReadPath readPath = ReadPath.AUTO;
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
     * Where large reads go.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions readPath(ReadPath value) {
        this.readPath = Objects.requireNonNull(value, "readPath");
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
        this.memoryBudget = OptionValues.count("memoryBudget", value);
        return this;
    }

    /**
     * Worker threads; 0 = all of the context.
     *
     * @param value the value
     * @return this
     */
    public OpenOptions threads(int value) {
        this.threads = OptionValues.count("threads", value);
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

    int rank() {
        return rank;
    }

    /** With a native cancellation, which ends the call early; 0 = none. */
    Structs.CheckpointOptions struct(long cancellation) {
        Structs.CheckpointOptions struct = new Structs.CheckpointOptions();
        struct.verify = verify.number();
        struct.readPath = readPath.number();
        struct.format = format.number();
        struct.threads = threads;
        struct.memoryBudget = memoryBudget;
        struct.deadlineNs = OptionValues.deadline(deadline);
        struct.cancellation = cancellation;
        return struct;
    }
}
