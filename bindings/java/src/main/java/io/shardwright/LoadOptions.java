// SPDX-License-Identifier: Apache-2.0
// Options of loads.
package io.shardwright;

import io.shardwright.collective.Collective;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;

/** Options of a load, with the names and defaults that all languages share. Not thread-safe while it is being filled. */
public final class LoadOptions {
    private Context context = null;
    private Collective collective = null;
    private Missing missing = Missing.ERROR;
    private Unexpected unexpected = Unexpected.REPORT;
    private Cast cast = Cast.ERROR;
    private Shape shape = Shape.ERROR;
    private List<Strict> strict = new ArrayList<>();
    private Verify verify = Verify.ON_READ;
    private ReadPath readPath = ReadPath.AUTO;
    private Exchange exchange = Exchange.AUTO;
    private long memoryBudget;
    private int threads;
    private Duration deadline = null;
    private Path tracePath = null;
    private Format format = Format.AUTO;
    private Preset preset = Preset.NATIVE;
    private Consumer<Progress> progress;

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
     * Where large reads go.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions readPath(ReadPath value) {
        this.readPath = Objects.requireNonNull(value, "readPath");
        return this;
    }

    /**
     * Blocks that ranks of several machines want. All ranks say the same.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions exchange(Exchange value) {
        this.exchange = Objects.requireNonNull(value, "exchange");
        return this;
    }

    /**
     * Bytes of staging memory; 0 = 256 MiB, or the bytes to stage when asynchronous.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions memoryBudget(long value) {
        this.memoryBudget = OptionValues.count("memoryBudget", value);
        return this;
    }

    /**
     * Worker threads; 0 = all of the context.
     *
     * @param value the value
     * @return this
     */
    public LoadOptions threads(int value) {
        this.threads = OptionValues.count("threads", value);
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
    public LoadOptions tracePath(Path value) {
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

    /**
     * Is told how far the call or job is: when work begins, then at most ten times a second, and once more when it has
     * succeeded. It runs on the thread that called or on one of the library, one call at a time, and returns soon. What it
     * throws is logged and ends there. Planners do not call it.
     *
     * @param value the listener; null = none
     * @return this
     */
    public LoadOptions progress(Consumer<Progress> value) {
        this.progress = value;
        return this;
    }

    Context context() {
        return context != null ? context : Context.shared();
    }

    Collective collective() {
        return collective;
    }

    /** What of these options holds for opening. */
    OpenOptions opening() {
        return new OpenOptions().context(context).verify(verify).readPath(readPath).format(format)
                .threads(threads).memoryBudget(memoryBudget).deadline(deadline);
    }

    /** For planners, which have no progress. */
    Structs.LoadOptions struct() {
        return struct(0, 0);
    }

    /** With a native cancellation, which ends the call early (0 = none), and a listener as long as these uses last. */
    Structs.LoadOptions struct(long cancellation, Uses uses) {
        return struct(cancellation, ProgressBridge.reference(progress, uses));
    }

    private Structs.LoadOptions struct(long cancellation, long bridge) {
        Structs.LoadOptions struct = new Structs.LoadOptions();
        struct.missing = missing.number();
        struct.unexpected = unexpected.number();
        struct.cast = cast.number();
        struct.verify = verify.number();
        struct.readPath = readPath.number();
        struct.exchange = exchange.number();
        struct.format = format.number();
        struct.preset = preset.number();
        struct.threads = threads;
        struct.shape = shape.number();
        struct.memoryBudget = memoryBudget;
        struct.deadlineNs = OptionValues.deadline(deadline);
        struct.tracePath = Text.pathOrNull(tracePath);
        struct.cancellation = cancellation;
        struct.progressUser = bridge;
        addRules(struct);
        return struct;
    }

    private void addRules(Structs.LoadOptions struct) {
        List<String> globs = new ArrayList<>();
        struct.strictRules = new int[3 * strict.size()];
        struct.strictShapes = new int[strict.size()];
        for (Strict rule : strict) {
            struct.strictShapes[globs.size()] = (rule.shape != null ? rule.shape : shape).number();
            System.arraycopy(rule.values, 0, struct.strictRules, 3 * globs.size(), 3);
            globs.add(rule.glob);
        }
        Text.Blob blob = Text.Blob.ofTexts(globs);
        struct.strictGlobs = blob.bytes;
        struct.strictOffsets = blob.offsets;
        struct.strictCount = strict.size();
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
