// SPDX-License-Identifier: Apache-2.0
// Options of loads.
package io.shardwright;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Options of a load, with the names and defaults that all languages share. Not thread-safe while it is being filled. */
public final class LoadOptions {
    private Context context = null;
    private Storage storage = null;
    private Collective collective = null;
    private Missing missing = Missing.ERROR;
    private Unexpected unexpected = Unexpected.REPORT;
    private Cast cast = Cast.ERROR;
    private Shape shape = Shape.ERROR;
    private List<Strict> strict = new ArrayList<>();
    private Verify verify = Verify.ON_READ;
    private long memoryBudget;
    private int threads;
    private Duration deadline = null;
    private String tracePath = null;
    private Format format = Format.AUTO;
    private Preset preset = Preset.STANDARD;

    /** All defaults. */
    public LoadOptions() {}

    /**
     * Context of the call; null = the one that calls without a context share.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions context(Context value) {
        this.context = value;
        return this;
    }

    /**
     * Storage in which the path is a key prefix; null = the path is one of the file system.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions storage(Storage value) {
        this.storage = value;
        return this;
    }

    /**
     * Transport to the other ranks; null = one rank.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions collective(Collective value) {
        this.collective = value;
        return this;
    }

    /**
     * Wanted but not stored.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions missing(Missing value) {
        this.missing = Objects.requireNonNull(value, "missing");
        return this;
    }

    /**
     * Stored but not wanted.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions unexpected(Unexpected value) {
        this.unexpected = Objects.requireNonNull(value, "unexpected");
        return this;
    }

    /**
     * Stored with another dtype than wanted.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions cast(Cast value) {
        this.cast = Objects.requireNonNull(value, "cast");
        return this;
    }

    /**
     * Stored with another global shape than wanted.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions shape(Shape value) {
        this.shape = Objects.requireNonNull(value, "shape");
        return this;
    }

    /**
     * Whether stored digests are checked.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions verify(Verify value) {
        this.verify = Objects.requireNonNull(value, "verify");
        return this;
    }

    /**
     * Bytes of staging memory; 0 = 256 MiB, or the bytes to stage when asynchronous.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions memoryBudget(long value) {
        this.memoryBudget = OptionStruct.count("memoryBudget", value);
        return this;
    }

    /**
     * Worker threads; 0 = all of the context.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions threads(int value) {
        this.threads = OptionStruct.count("threads", value);
        return this;
    }

    /**
     * Limit of the whole call; null = the default, negative = none.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions deadline(Duration value) {
        this.deadline = value;
        return this;
    }

    /**
     * File for a Chrome trace of the call; null = none.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions tracePath(String value) {
        this.tracePath = value;
        return this;
    }

    /**
     * The only format that is accepted; AUTO = what is recognised.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions format(Format value) {
        this.format = Objects.requireNonNull(value, "format");
        return this;
    }

    /**
     * Planner behaviour.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions preset(Preset value) {
        this.preset = Objects.requireNonNull(value, "preset");
        return this;
    }

    /**
     * Adds a rule for the names that a glob matches; the first match wins.
     *
     * @param glob pattern over names
     * @param missing wanted but not stored
     * @param unexpected stored but not wanted
     * @param cast stored with another dtype
     * @return this
     */
    public LoadOptions strict(String glob, Missing missing, Unexpected unexpected, Cast cast) {
        return strict(glob, missing, unexpected, cast, null);
    }

    /**
     * Adds a rule for the names that a glob matches; the first match wins.
     *
     * @param glob pattern over names
     * @param missing wanted but not stored
     * @param unexpected stored but not wanted
     * @param cast stored with another dtype
     * @param shape stored with another global shape; null = the option of all names
     * @return this
     */
    public LoadOptions strict(String glob, Missing missing, Unexpected unexpected, Cast cast, Shape shape) {
        Objects.requireNonNull(glob, "glob");
        strict.add(new Strict(glob, new int[] {missing.number(), unexpected.number(), cast.number()}, shape));
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

    /** What of these options holds for opening. */
    OpenOptions opening() {
        return new OpenOptions().context(context).storage(storage).verify(verify).format(format).threads(threads)
                .memoryBudget(memoryBudget).deadline(deadline);
    }

    OptionStruct struct() {
        return struct(0);
    }

    /** With a native cancellation, which ends the call early; 0 = none. */
    OptionStruct struct(long cancellation) {
        int[] ints = {missing.number(), unexpected.number(), cast.number(), verify.number(), format.number(),
            preset.number(), threads, shape.number()};
        long[] longs = {memoryBudget, OptionStruct.deadline(deadline)};
        List<String> globs = new ArrayList<>();
        int[] rules = new int[3 * strict.size()];
        int[] shapes = new int[strict.size()];
        for (Strict rule : strict) {
            shapes[globs.size()] = (rule.shape != null ? rule.shape : shape).number();
            System.arraycopy(rule.values, 0, rules, 3 * globs.size(), 3);
            globs.add(rule.glob);
        }
        Text.Blob blob = Text.Blob.ofTexts(globs);
        long address = shw_nativeJNI.shw_java_load_options_create(ints, longs, Text.terminatedOrNull(tracePath),
                blob.bytes, blob.offsets, rules, shapes, strict.size(), cancellation);
        return new OptionStruct(address, shw_nativeJNI::shw_java_load_options_release);
    }

    private static final class Strict {
        final String glob;
        final int[] values;
        final Shape shape;

        Strict(String glob, int[] values, Shape shape) {
            this.glob = glob;
            this.values = values;
            this.shape = shape;
        }
    }
}
