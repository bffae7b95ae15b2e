// SPDX-License-Identifier: Apache-2.0
// Options of a conversion.
package io.shardwright;

import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Structs;
import io.shardwright.internal.shw_nativeConstants;
import java.time.Duration;
import java.util.Objects;

/** Options of {@link Shardwright#convert}. Not thread-safe while it is being filled. */
public final class ConvertOptions {
    private Context context;
    private Format format = Format.NATIVE;
    private Overwrite overwrite = Overwrite.REFUSE;
    private Durability durability = Durability.FULL;
    private boolean compare = true;
    private Common common = Common.FILE;
    private Integrity integrity = Integrity.OFF;
    private int threads;
    private int fileMode;
    private long memoryBudget;
    private long maxShardSize;
    private Duration deadline;

    /** All defaults. */
    public ConvertOptions() {}

    /**
     * Context of the call.
     *
     * @param value the context; null = the shared one
     * @return this
     */
    public ConvertOptions context(Context value) {
        context = value;
        return this;
    }

    /**
     * Format of the target.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions format(Format value) {
        format = Objects.requireNonNull(value, "format");
        return this;
    }

    /**
     * Whether another checkpoint at the target is replaced.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions overwrite(Overwrite value) {
        overwrite = Objects.requireNonNull(value, "overwrite");
        return this;
    }

    /**
     * What the target survives.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions durability(Durability value) {
        durability = Objects.requireNonNull(value, "durability");
        return this;
    }

    /**
     * Whether the digests of all tensors are compared in the end.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions compare(boolean value) {
        compare = value;
        return this;
    }

    /**
     * Where Megatron's format keeps the common state.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions common(Common value) {
        common = Objects.requireNonNull(value, "common");
        return this;
    }

    /**
     * Whether Megatron's format lists the SHA-256 of each file in integrity.json; other formats refuse it.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions integrity(Integrity value) {
        integrity = Objects.requireNonNull(value, "integrity");
        return this;
    }

    /**
     * Worker threads; 0 = all of the context.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions threads(int value) {
        threads = OptionValues.count("threads", value);
        return this;
    }

    /**
     * Mode of new files; 0 = 0666 and the umask.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions fileMode(int value) {
        fileMode = OptionValues.count("fileMode", value);
        return this;
    }

    /**
     * Bytes of staging memory for reading and writing together; 0 = that of the context.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions memoryBudget(long value) {
        memoryBudget = OptionValues.count("memoryBudget", value);
        return this;
    }

    /**
     * Bytes of tensors in one file; 0 = 5e9.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions maxShardSize(long value) {
        maxShardSize = OptionValues.count("maxShardSize", value);
        return this;
    }

    /**
     * Limit of the whole call; null = none.
     *
     * @param value the value
     * @return this
     */
    public ConvertOptions deadline(Duration value) {
        deadline = value;
        return this;
    }

    Context context() {
        return context != null ? context : Context.shared();
    }

    Structs.ConvertOptions struct() {
        Structs.ConvertOptions struct = new Structs.ConvertOptions();
        struct.flags = compare ? 0 : shw_nativeConstants.SHW_CONVERT_WITHOUT_COMPARISON;
        struct.format = format.number();
        struct.common = common.number();
        struct.integrity = integrity.number();
        struct.overwrite = overwrite.number();
        struct.durability = durability.number();
        struct.threads = threads;
        struct.fileMode = fileMode;
        struct.memoryBudget = memoryBudget;
        struct.maxShardSize = maxShardSize;
        struct.deadlineNs = OptionValues.deadline(deadline);
        return struct;
    }
}
