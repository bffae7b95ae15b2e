// SPDX-License-Identifier: Apache-2.0
// The calls that users meet first.
package io.shardwright;

import io.shardwright.errors.CancelledException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import io.shardwright.storage.Storage;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Saves, loads and reshards sharded training checkpoints.
 *
 * <pre>{@code
 * try (State state = State.builder().add("model.weight", weights, 2, 2).json("step", 100).build()) {
 *     Shardwright.save(state, Path.of("run/step-00000100"), new SaveOptions());
 * }
 * try (Loaded loaded = Shardwright.load(Path.of("run/step-00000100"))) {
 *     FloatBuffer weight = loaded.tensors().get("model.weight").bytes().asFloatBuffer();
 * }
 * }</pre>
 *
 * Every failure is a {@link ShardwrightException}. Collective and context of a call are options; a {@link Location}
 * stands for a path where a checkpoint lies in a storage.
 *
 * <p>A save or load whose thread is interrupted ends with {@link CancelledException} at its next step, and the thread stays
 * interrupted; a save that has reached its commit point succeeds. What was at the path, or in a heap array that was to be
 * filled, is as it was; direct memory may hold part of a load. Other ranks of the collective end with it. Waiting for a
 * {@link Job} throws InterruptedException instead.
 */
public final class Shardwright {
    private Shardwright() {}

    /**
     * Release of the loaded library.
     *
     * @return e.g. {@code 0.1.0}
     */
    public static String version() {
        NativeLoader.load();
        return Text.of(shw_nativeJNI.shw_version_string());
    }

    /**
     * Saves the states of all ranks as one checkpoint; durable when it returns. The previous one stays until the commit.
     *
     * @param state what this rank saves
     * @param location where it lies
     * @param options the options
     * @return what was done
     * @throws ShardwrightException the same on all ranks
     */
    public static Report save(State state, Location location, SaveOptions options) {
        Team team = Team.of(options.collective(), shw_nativeConstants.SHW_CALL_SAVE);
        try (Uses uses = new Uses()) {
            byte[] text = Location.textOf(location);
            long contextHandle = uses.of(options.context());
            long stateHandle = uses.of(state);
            long storage = uses.ofNullable(location.storage());
            long collective = uses.ofNullable(options.collective());
            state.beforeSave();
            try (WaitingCall call = WaitingCall.begin(collective)) {
                Structs.SaveOptions struct = options.struct(call.cancellation(), uses);
                team.meets();
                return new Report(shw_nativeJNI.shw_save(contextHandle, stateHandle, storage, text, collective, struct));
            }
        } catch (Throwable e) {
            team.decline(e);
            throw e;
        }
    }

    /**
     * As {@link #save(State, Location, SaveOptions)}.
     *
     * @param state what this rank saves
     * @param path a path of the default file system
     * @param options the options
     * @return what was done
     */
    public static Report save(State state, Path path, SaveOptions options) {
        return save(state, Location.of(path), options);
    }

    /**
     * Fills the state of every rank from a checkpoint.
     *
     * @param into what is wanted; read-only memory in it is refused before anything is read
     * @param location where it lies
     * @param options the options
     * @return what was done: missing, unexpected and cast entries are in it
     * @throws ShardwrightException the same on all ranks
     */
    public static Report loadInto(State into, Location location, LoadOptions options) {
        Team team = Team.of(options.collective(), shw_nativeConstants.SHW_CALL_LOAD);
        try (Uses uses = new Uses()) {
            byte[] text = Location.textOf(location);
            long contextHandle = uses.of(options.context());
            long stateHandle = uses.of(into);
            long storage = uses.ofNullable(location.storage());
            long collective = uses.ofNullable(options.collective());
            into.beforeLoad();
            try (WaitingCall call = WaitingCall.begin(collective)) {
                Structs.LoadOptions struct = options.struct(call.cancellation(), uses);
                team.meets();
                Report report = new Report(shw_nativeJNI.shw_load(contextHandle, stateHandle, storage, text, collective, struct));
                into.afterLoad();
                return report;
            }
        } catch (Throwable e) {
            team.decline(e);
            throw e;
        }
    }

    /**
     * As {@link #loadInto(State, Location, LoadOptions)}.
     *
     * @param into what is wanted
     * @param path a path of the default file system
     * @param options the options
     * @return what was done
     */
    public static Report loadInto(State into, Path path, LoadOptions options) {
        return loadInto(into, Location.of(path), options);
    }

    /**
     * Reads a whole checkpoint without a target; of rank_local entries those of rank 0.
     *
     * @param path a path of the default file system
     * @return everything in it
     */
    public static Loaded load(Path path) {
        return load(path, new LoadOptions());
    }

    /**
     * As {@link #load(Path)}, with options.
     *
     * @param path a path of the default file system
     * @param options as {@link #load(Location, LoadOptions)} takes them
     * @return everything in it
     */
    public static Loaded load(Path path, LoadOptions options) {
        return load(Location.of(path), options);
    }

    /**
     * As {@link #load(Path, LoadOptions)}, also in a storage.
     *
     * @param location where it lies
     * @param options those that say how to open and read; of rank_local entries those of the collective's rank are read,
     *     without a collective those of rank 0
     * @return everything in it
     */
    public static Loaded load(Location location, LoadOptions options) {
        int rank = options.collective() == null ? 0 : options.collective().rank();
        NativeLoader.load();
        try (WaitingCall call = WaitingCall.begin(0);
                Checkpoint checkpoint = Checkpoint.open(location, options.opening().rank(rank), call.cancellation())) {
            return new Loaded(checkpoint);
        }
    }

    /**
     * Saves in the background. The memory of the state's tensors must stay unchanged until the job is staged.
     *
     * @param state what this rank saves
     * @param location where it lies
     * @param options the options; a collective belongs to the job until it has ended
     * @return the job
     */
    public static Job saveAsync(State state, Location location, SaveOptions options) {
        Context context = options.context();
        Team team = Team.ofJob(options.collective(), shw_nativeConstants.SHW_CALL_SAVE, context);
        Uses uses = new Uses();
        try {
            Structs.SaveOptions struct = options.struct(0, uses);
            byte[] text = Location.textOf(location);
            long stateHandle = uses.of(state);
            state.beforeSave();
            long contextHandle = uses.of(context);
            long storage = uses.ofNullable(location.storage());
            long collective = uses.ofNullable(options.collective());
            team.meets();
            long handle = shw_nativeJNI.shw_save_async(contextHandle, stateHandle, storage, text, collective, struct);
            return Job.start(handle, state, uses, false);
        } catch (Throwable e) {
            team.decline(e);
            uses.close();
            throw e;
        }
    }

    /**
     * As {@link #saveAsync(State, Location, SaveOptions)}.
     *
     * @param state what this rank saves
     * @param path a path of the default file system
     * @param options the options
     * @return the job
     */
    public static Job saveAsync(State state, Path path, SaveOptions options) {
        return saveAsync(state, Location.of(path), options);
    }

    /**
     * Makes the memory into which jobs of the shared context copy such a state, so that the first copy is as fast as later
     * ones.
     *
     * @param state what counts is the size of its tensors
     */
    public static void prepare(State state) {
        prepare(Context.shared(), state);
    }

    /**
     * As {@link #prepare(State)} for the jobs of a context.
     *
     * @param context the context of the saves
     * @param state what counts is the size of its tensors
     */
    public static void prepare(Context context, State state) {
        try (Uses uses = new Uses()) {
            shw_nativeJNI.shw_prepare(uses.of(context), uses.of(state));
        }
    }

    /**
     * Loads in the background. State and memory belong to the job until it has ended.
     *
     * @param into what is wanted
     * @param location where it lies
     * @param options the options; a collective belongs to the job until it has ended
     * @return the job
     */
    public static Job loadAsync(State into, Location location, LoadOptions options) {
        Context context = options.context();
        Team team = Team.ofJob(options.collective(), shw_nativeConstants.SHW_CALL_LOAD, context);
        Uses uses = new Uses();
        try {
            Structs.LoadOptions struct = options.struct(0, uses);
            byte[] text = Location.textOf(location);
            long stateHandle = uses.of(into);
            into.beforeLoad();
            long contextHandle = uses.of(context);
            long storage = uses.ofNullable(location.storage());
            long collective = uses.ofNullable(options.collective());
            team.meets();
            long handle = shw_nativeJNI.shw_load_async(contextHandle, stateHandle, storage, text, collective, struct);
            return Job.start(handle, into, uses, true);
        } catch (Throwable e) {
            team.decline(e);
            uses.close();
            throw e;
        }
    }

    /**
     * As {@link #loadAsync(State, Location, LoadOptions)}.
     *
     * @param into what is wanted
     * @param path a path of the default file system
     * @param options the options
     * @return the job
     */
    public static Job loadAsync(State into, Path path, LoadOptions options) {
        return loadAsync(into, Location.of(path), options);
    }

    /**
     * Finds generations that no manifest names, and removes them when the options say so.
     *
     * @param location where it lies
     * @param options the options
     * @return generations in {@link Report#removed}
     */
    public static Report collectGarbage(Location location, GarbageOptions options) {
        byte[] text = Location.textOf(location);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return new Report(shw_nativeJNI.shw_checkpoint_gc(uses.of(context), uses.ofNullable(location.storage()), text,
                    options.graceNs(), options.flags()));
        }
    }

    /**
     * As {@link #collectGarbage(Location, GarbageOptions)}.
     *
     * @param path a path of the default file system
     * @param options the options
     * @return generations in {@link Report#removed}
     */
    public static Report collectGarbage(Path path, GarbageOptions options) {
        return collectGarbage(Location.of(path), options);
    }

    /**
     * Finds tensors and objects of a checkpoint of torch DCP or Megatron whose names begin with a prefix, with the files that
     * hold nothing else, and removes them when the options say so.
     *
     * <pre>{@code
     * Path run = Path.of("run/iter_0001000");
     * System.out.println("would go: " + Shardwright.removeEntries(run, "optimizer.", new RemoveOptions()).removed());
     * Shardwright.removeEntries(run, "optimizer.", new RemoveOptions().apply(true));
     * }</pre>
     *
     * The index without the entries, which loses nothing else, is durable before a file goes; digests and integrity.json
     * follow. What shares its file with something else stays there and is in no index. Killed, the next call finishes it,
     * whatever its prefix.
     *
     * @param location where it lies
     * @param prefix what the names begin with; not empty
     * @param options the options
     * @return entries in {@link Report#removed}, files in {@link Report#fileCount}; its JSON has the bytes of both
     * @throws ShardwrightException NOT_FOUND also when no name begins so, UNIMPLEMENTED for other formats, UNAVAILABLE while a
     *     save runs there
     */
    public static Report removeEntries(Location location, String prefix, RemoveOptions options) {
        byte[] text = Location.textOf(location);
        byte[] beginning = Text.terminated("the prefix", prefix);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return new Report(shw_nativeJNI.shw_checkpoint_remove(uses.of(context), uses.ofNullable(location.storage()), text,
                    beginning, options.flags()));
        }
    }

    /**
     * As {@link #removeEntries(Location, String, RemoveOptions)}.
     *
     * @param path a path of the default file system
     * @param prefix what the names begin with; not empty
     * @param options the options
     * @return entries in {@link Report#removed}
     */
    public static Report removeEntries(Path path, String prefix, RemoveOptions options) {
        return removeEntries(Location.of(path), prefix, options);
    }

    /**
     * Saves a checkpoint again in another format, in bounded memory; the source is only read. It may be a directory of
     * Megatron-core's zarr backend, which nothing else takes. What was written stays when the call fails, and the same call goes
     * on with it.
     *
     * @param source where it lies
     * @param target where it goes; not in the source
     * @param options the options
     * @return what was written
     */
    public static Report convert(Location source, Location target, ConvertOptions options) {
        byte[] from = Location.textOf(source);
        byte[] to = Location.textOf(target);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return new Report(shw_nativeJNI.shw_convert(uses.of(context), uses.ofNullable(source.storage()), from,
                    uses.ofNullable(target.storage()), to, options.struct()));
        }
    }

    /**
     * As {@link #convert(Location, Location, ConvertOptions)}.
     *
     * @param source a path of the default file system
     * @param target a path of the default file system
     * @param options the options
     * @return what was written
     */
    public static Report convert(Path source, Path target, ConvertOptions options) {
        return convert(Location.of(source), Location.of(target), options);
    }

    /**
     * Saves a checkpoint of Megatron as a job with other parallel sizes would have saved it, optimizer included; the source is
     * only read. What lies in a bucket of the distributed optimizer is proved by its contents. What was written stays when the
     * call fails, and the same call goes on with it.
     *
     * @param source where it lies
     * @param target where it goes; not in the source
     * @param options the options
     * @return what was written
     */
    public static Report reshard(Location source, Location target, ReshardOptions options) {
        byte[] from = Location.textOf(source);
        byte[] to = Location.textOf(target);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return new Report(shw_nativeJNI.shw_reshard(uses.of(context), uses.ofNullable(source.storage()), from,
                    uses.ofNullable(target.storage()), to, options.struct()));
        }
    }

    /**
     * As {@link #reshard(Location, Location, ReshardOptions)}.
     *
     * @param source a path of the default file system
     * @param target a path of the default file system
     * @param options the options
     * @return what was written
     */
    public static Report reshard(Path source, Path target, ReshardOptions options) {
        return reshard(Location.of(source), Location.of(target), options);
    }

    /**
     * What the pickles of a place would import and call if they were unpickled; nothing of them is.
     *
     * @param location a file, or a directory whose files are all looked at
     * @param options their context is used
     * @return one JSON object as text: {@code globals}, {@code unknown}, {@code failures}, {@code unread}, {@code files},
     *     {@code pickles}, {@code notes}
     * @throws NotFoundException when nothing is there
     */
    public static String scanPickles(Location location, OpenOptions options) {
        byte[] text = Location.textOf(location);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return Parts.text(shw_nativeJNI.shw_scan_pickles(uses.of(context), uses.ofNullable(location.storage()), text));
        }
    }

    /**
     * Writes files with pickles once more, with None in place of what is not known; the source is only read. Of a directory,
     * indexes and other files with pickles are written, data files stay where they are, and an index leaves out entries whose
     * items are not clean.
     *
     * @param source a file or a directory
     * @param target where the files go; none of these names may be there
     * @param options their context is used
     * @return one JSON object as text: {@code files}, each with {@code file}, {@code replaced} and {@code left_out}
     */
    public static String cleanPickles(Location source, Location target, OpenOptions options) {
        byte[] from = Location.textOf(source);
        byte[] to = Location.textOf(target);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return Parts.text(shw_nativeJNI.shw_clean_pickles(uses.of(context), uses.ofNullable(source.storage()), from,
                    uses.ofNullable(target.storage()), to));
        }
    }

    /**
     * Checkpoints of a run directory: what lies in folders such as {@code step-00000100}.
     *
     * @param path a path of the default file system
     * @return all of them, with the newest whole one
     * @throws NotFoundException when there is none
     */
    public static Steps listSteps(Path path) {
        return listSteps(Location.of(path), new OpenOptions());
    }

    /**
     * The newest whole step of a run directory.
     *
     * @param path a path of the default file system, with folders such as {@code step-00000100} below it
     * @return where the step lies
     * @throws NotFoundException when no step is whole
     */
    public static Location latest(Path path) {
        return latest(Location.of(path), new OpenOptions());
    }

    /**
     * As {@link #latest(Path)}, also in a storage. Steps that are damaged or were never committed are passed over with a
     * warning in the log; when a step cannot be looked at, that is the failure, and no older one stands in for it.
     *
     * @param location where the steps lie
     * @param options their context is used
     * @return where the newest whole one lies
     * @throws NotFoundException when no step is whole
     */
    public static Location latest(Location location, OpenOptions options) {
        byte[] text = Location.textOf(location);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            String found = Parts.text(shw_nativeJNI.shw_checkpoint_latest(uses.of(context),
                    uses.ofNullable(location.storage()), text));
            return location.resolve(found.substring(found.lastIndexOf('/') + 1));
        }
    }

    /**
     * As {@link #listSteps(Path)}, also in a storage.
     *
     * @param location where they lie
     * @param options their context is used
     * @return all of them, with the newest whole one
     */
    public static Steps listSteps(Location location, OpenOptions options) {
        byte[] text = Location.textOf(location);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return Steps.of(Parts.text(shw_nativeJNI.shw_checkpoint_list_steps(uses.of(context),
                    uses.ofNullable(location.storage()), text)));
        }
    }

    /**
     * Plans an exchange, in which ranks of a load read for each other, from the want lists of all.
     *
     * @param wantLists one of each rank, in rank order
     * @return one exchange plan for each rank; equal lists give equal plans
     * @throws ShardwrightException INVALID_ARGUMENT naming the rank when they are not those of all ranks or of one generation
     */
    public static List<Plan> exchangePlans(List<Plan> wantLists) {
        NativeLoader.load();
        try (Uses uses = new Uses()) {
            long[] plans = shw_nativeJNI.exchangePlans(wantLists.stream().mapToLong(uses::of).toArray());
            return Arrays.stream(plans).mapToObj(Plan::new).collect(Collectors.toUnmodifiableList());
        }
    }
}
