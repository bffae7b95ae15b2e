// SPDX-License-Identifier: Apache-2.0
// Options of saves.
package io.shardwright;

import io.shardwright.collective.Collective;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

/** Options of a save, with the names and defaults that all languages share. Not thread-safe while it is being filled. */
public final class SaveOptions {
    private Context context = null;
    private Collective collective = null;
    private Overwrite overwrite = Overwrite.REPLACE;
    private Durability durability = Durability.FULL;
    private boolean digests = true;
    private Owner owner = Owner.BALANCED;
    private VerifyReplicas verifyReplicas = VerifyReplicas.AUTO;
    private Map<String, Kind> kinds = new LinkedHashMap<>();
    private long memoryBudget;
    private int threads;
    private Duration deadline = null;
    private int keepGenerations;
    private int fileMode;
    private Map<String, String> metadata = new LinkedHashMap<>();
    private Path tracePath = null;
    private Format format = Format.AUTO;
    private Preset preset = Preset.NATIVE;
    private long maxShardSize;
    private boolean hold;
    private Priority priority = Priority.NORMAL;
    private Common common = Common.FILE;
    private Integrity integrity = Integrity.OFF;
    private Consumer<Progress> progress;

    /** All defaults. */
    public SaveOptions() {}

    /**
     * Context of the call; null = the one that calls without a context share.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions context(Context value) {
        this.context = value;
        return this;
    }

    /**
     * Transport to the other ranks; null = one rank.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions collective(Collective value) {
        this.collective = value;
        return this;
    }

    /**
     * What happens to a checkpoint that is at the path.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions overwrite(Overwrite value) {
        this.overwrite = Objects.requireNonNull(value, "overwrite");
        return this;
    }

    /**
     * What the result survives.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions durability(Durability value) {
        this.durability = Objects.requireNonNull(value, "durability");
        return this;
    }

    /**
     * Digests of stored blocks; off only for measurements, and the report says so.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions digests(boolean value) {
        this.digests = value;
        return this;
    }

    /**
     * Who writes an entry that several ranks hold.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions owner(Owner value) {
        this.owner = Objects.requireNonNull(value, "owner");
        return this;
    }

    /**
     * Which replicas are compared before one is written.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions verifyReplicas(VerifyReplicas value) {
        this.verifyReplicas = Objects.requireNonNull(value, "verifyReplicas");
        return this;
    }

    /**
     * Bytes of staging memory; 0 = 256 MiB, or the bytes to stage when asynchronous.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions memoryBudget(long value) {
        this.memoryBudget = OptionValues.count("memoryBudget", value);
        return this;
    }

    /**
     * Worker threads; 0 = all of the context.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions threads(int value) {
        this.threads = OptionValues.count("threads", value);
        return this;
    }

    /**
     * Limit of the whole call; null = the default, negative = none.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions deadline(Duration value) {
        this.deadline = value;
        return this;
    }

    /**
     * Generations kept at the path after the commit; 0 = 1.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions keepGenerations(int value) {
        this.keepGenerations = OptionValues.count("keepGenerations", value);
        return this;
    }

    /**
     * Mode of new files; 0 = 0666 and the umask.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions fileMode(int value) {
        this.fileMode = OptionValues.count("fileMode", value);
        return this;
    }

    /**
     * File for a Chrome trace of the call; null = none.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions tracePath(Path value) {
        this.tracePath = value;
        return this;
    }

    /**
     * Format of what is written.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions format(Format value) {
        this.format = Objects.requireNonNull(value, "format");
        return this;
    }

    /**
     * Planner behaviour.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions preset(Preset value) {
        this.preset = Objects.requireNonNull(value, "preset");
        return this;
    }

    /**
     * Bytes of tensors in one file of safetensors; 0 = 5e9. A larger tensor has a file for itself.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions maxShardSize(long value) {
        this.maxShardSize = OptionValues.count("maxShardSize", value);
        return this;
    }

    /**
     * Whether a job reads the state's own memory until it is staged, and copies nothing first.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions hold(boolean value) {
        this.hold = value;
        return this;
    }

    /**
     * What all but the copy of a job runs at.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions priority(Priority value) {
        this.priority = Objects.requireNonNull(value, "priority");
        return this;
    }

    /**
     * Where Megatron's format keeps the common state.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions common(Common value) {
        this.common = Objects.requireNonNull(value, "common");
        return this;
    }

    /**
     * Whether Megatron's format lists the SHA-256 of each file in integrity.json; other formats refuse it.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions integrity(Integrity value) {
        this.integrity = Objects.requireNonNull(value, "integrity");
        return this;
    }

    /**
     * Adds a rule: names that the glob matches have this kind, unless an earlier rule matches or the entry has its own.
     *
     * @param glob pattern over names
     * @param kind who holds these entries
     * @return this
     */
    public SaveOptions kind(String glob, Kind kind) {
        kinds.putIfAbsent(Objects.requireNonNull(glob, "glob"), Objects.requireNonNull(kind, "kind"));
        return this;
    }

    /**
     * Adds text to the manifest, shown by info.
     *
     * @param key e.g. {@code step}
     * @param value the text
     * @return this
     */
    public SaveOptions metadata(String key, String value) {
        metadata.put(Objects.requireNonNull(key, "key"), Objects.requireNonNull(value, "value"));
        return this;
    }

    /**
     * Is told how far the call or job is: when work begins, then at most ten times a second, and once more when it has
     * succeeded. It runs on the thread that called or on one of the library, one call at a time, and returns soon. What it
     * throws is logged and ends there. Planners do not call it.
     *
     * @param value the listener; null = none
     * @return this
     */
    public SaveOptions progress(Consumer<Progress> value) {
        this.progress = value;
        return this;
    }

    Context context() {
        return context != null ? context : Context.shared();
    }

    Collective collective() {
        return collective;
    }

    /** For planners, which have no progress. */
    Structs.SaveOptions struct() {
        return struct(0, 0);
    }

    /** With a native cancellation, which ends the call early (0 = none), and a listener as long as these uses last. */
    Structs.SaveOptions struct(long cancellation, Uses uses) {
        return struct(cancellation, ProgressBridge.reference(progress, uses));
    }

    private Structs.SaveOptions struct(long cancellation, long bridge) {
        Structs.SaveOptions struct = new Structs.SaveOptions();
        struct.overwrite = overwrite.number();
        struct.durability = durability.number();
        struct.digests = digests ? shw_nativeConstants.SHW_DIGESTS_ON : shw_nativeConstants.SHW_DIGESTS_OFF;
        struct.owner = owner.number();
        struct.verifyReplicas = verifyReplicas.number();
        struct.format = format.number();
        struct.preset = preset.number();
        struct.threads = threads;
        struct.fileMode = fileMode;
        struct.keepGenerations = keepGenerations;
        struct.memoryBudget = memoryBudget;
        struct.deadlineNs = OptionValues.deadline(deadline);
        struct.maxShardSize = maxShardSize;
        struct.hold = hold ? shw_nativeConstants.SHW_HOLD_ON : shw_nativeConstants.SHW_HOLD_OFF;
        struct.priority = priority.number();
        struct.common = common.number();
        struct.integrity = integrity.number();
        struct.tracePath = Text.pathOrNull(tracePath);
        struct.cancellation = cancellation;
        struct.progressUser = bridge;
        addTexts(struct);
        return struct;
    }

    private void addTexts(Structs.SaveOptions struct) {
        Text.Blob globs = Text.Blob.ofTexts(new ArrayList<>(kinds.keySet()));
        struct.kindGlobs = globs.bytes;
        struct.kindOffsets = globs.offsets;
        struct.kindValues = kinds.values().stream().mapToInt(Kind::number).toArray();
        struct.kindCount = kinds.size();
        List<String> texts = new ArrayList<>();
        metadata.forEach((key, value) -> {
            texts.add(key);
            texts.add(value);
        });
        Text.Blob pairs = Text.Blob.ofTexts(texts);
        struct.metadata = pairs.bytes;
        struct.metadataOffsets = pairs.offsets;
        struct.metadataCount = metadata.size();
    }
}
