// SPDX-License-Identifier: Apache-2.0
// Options of saves.
package io.shardwright;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Options of a save, with the names and defaults that all languages share. Not thread-safe while it is being filled. */
public final class SaveOptions {
    private Context context = null;
    private Storage storage = null;
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
    private String tracePath = null;
    private Format format = Format.AUTO;
    private Preset preset = Preset.STANDARD;

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
     * Storage in which the path is a key prefix; null = the path is one of the file system.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions storage(Storage value) {
        this.storage = value;
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
        this.memoryBudget = OptionStruct.count("memoryBudget", value);
        return this;
    }

    /**
     * Worker threads; 0 = all of the context.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions threads(int value) {
        this.threads = OptionStruct.count("threads", value);
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
        this.keepGenerations = OptionStruct.count("keepGenerations", value);
        return this;
    }

    /**
     * Mode of new files; 0 = 0666 and the umask.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions fileMode(int value) {
        this.fileMode = OptionStruct.count("fileMode", value);
        return this;
    }

    /**
     * File for a Chrome trace of the call; null = none.
     *
     * @param value the value
     * @return this
     */
    public SaveOptions tracePath(String value) {
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

    Context context() {
        return context != null ? context : Context.shared();
    }

    Storage storage() {
        return storage;
    }

    Collective collective() {
        return collective;
    }

    OptionStruct struct() {
        return struct(0);
    }

    /** With a native cancellation, which ends the call early; 0 = none. */
    OptionStruct struct(long cancellation) {
        int[] ints = {overwrite.number(), durability.number(),
            digests ? shw_nativeConstants.SHW_DIGESTS_ON : shw_nativeConstants.SHW_DIGESTS_OFF, owner.number(),
            verifyReplicas.number(), format.number(), preset.number(), threads, fileMode, keepGenerations};
        long[] longs = {memoryBudget, OptionStruct.deadline(deadline)};
        Text.Blob globs = Text.Blob.ofTexts(new ArrayList<>(kinds.keySet()));
        int[] values = kinds.values().stream().mapToInt(Kind::number).toArray();
        List<String> texts = new ArrayList<>();
        metadata.forEach((key, value) -> {
            texts.add(key);
            texts.add(value);
        });
        Text.Blob pairs = Text.Blob.ofTexts(texts);
        long address = shw_nativeJNI.shw_java_save_options_create(ints, longs, Text.terminatedOrNull(tracePath),
                globs.bytes, globs.offsets, values, kinds.size(), pairs.bytes, pairs.offsets, metadata.size(),
                cancellation);
        return new OptionStruct(address, shw_nativeJNI::shw_java_save_options_release);
    }
}
