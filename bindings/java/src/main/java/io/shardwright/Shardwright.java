// SPDX-License-Identifier: Apache-2.0
// The calls that users meet first.
package io.shardwright;

import java.nio.file.Path;

/**
 * Saves, loads and reshards sharded training checkpoints.
 *
 * <pre>{@code
 * try (State state = State.builder().add("model.weight", weights, 2, 2).json("step", 100).build()) {
 *     Shardwright.save(state, "run/step-00000100", new SaveOptions());
 * }
 * try (Loaded loaded = Shardwright.load("run/step-00000100")) {
 *     FloatBuffer weight = loaded.tensors().get("model.weight").bytes().asFloatBuffer();
 * }
 * }</pre>
 *
 * Every failure is a {@link ShardwrightException}. Storage, collective and context of a call are options.
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
     * @param path a path of the file system, or a key prefix in the storage of the options
     * @param options the options
     * @return what was done
     * @throws ShardwrightException the same on all ranks
     */
    public static Report save(State state, String path, SaveOptions options) {
        Team team = Team.of(options.collective(), shw_nativeConstants.SHW_CALL_SAVE);
        try (Uses uses = new Uses()) {
            byte[] text = Text.terminated(path);
            long contextHandle = uses.of(options.context());
            long stateHandle = uses.of(state);
            long storage = uses.ofNullable(options.storage());
            long collective = uses.ofNullable(options.collective());
            state.beforeSave();
            try (WaitingCall call = WaitingCall.begin(collective);
                    OptionStruct struct = options.struct(call.cancellation())) {
                team.meets();
                return new Report(shw_nativeJNI.shw_save(contextHandle, stateHandle, storage, text, collective,
                        struct.address()));
            }
        } catch (Throwable e) {
            team.decline(e);
            throw e;
        }
    }

    /**
     * As {@link #save(State, String, SaveOptions)}.
     *
     * @param state what this rank saves
     * @param path a path of the default file system
     * @param options the options
     * @return what was done
     */
    public static Report save(State state, Path path, SaveOptions options) {
        return save(state, Text.path(path), options);
    }

    /**
     * Fills the state of every rank from a checkpoint.
     *
     * @param into what is wanted; read-only memory in it is refused before anything is read
     * @param path a path of the file system, or a key prefix in the storage of the options
     * @param options the options
     * @return what was done: missing, unexpected and cast entries are in it
     * @throws ShardwrightException the same on all ranks
     */
    public static Report loadInto(State into, String path, LoadOptions options) {
        Team team = Team.of(options.collective(), shw_nativeConstants.SHW_CALL_LOAD);
        try (Uses uses = new Uses()) {
            byte[] text = Text.terminated(path);
            long contextHandle = uses.of(options.context());
            long stateHandle = uses.of(into);
            long storage = uses.ofNullable(options.storage());
            long collective = uses.ofNullable(options.collective());
            into.beforeLoad();
            try (WaitingCall call = WaitingCall.begin(collective);
                    OptionStruct struct = options.struct(call.cancellation())) {
                team.meets();
                Report report = new Report(shw_nativeJNI.shw_load(contextHandle, stateHandle, storage, text, collective,
                        struct.address()));
                into.afterLoad();
                return report;
            }
        } catch (Throwable e) {
            team.decline(e);
            throw e;
        }
    }

    /**
     * As {@link #loadInto(State, String, LoadOptions)}.
     *
     * @param into what is wanted
     * @param path a path of the default file system
     * @param options the options
     * @return what was done
     */
    public static Report loadInto(State into, Path path, LoadOptions options) {
        return loadInto(into, Text.path(path), options);
    }

    /**
     * Reads a whole checkpoint without a target; of rank_local entries those of rank 0.
     *
     * @param path a path of the file system
     * @return everything in it
     */
    public static Loaded load(String path) {
        return load(path, new LoadOptions());
    }

    /**
     * As {@link #load(String)}.
     *
     * @param path a path of the default file system
     * @return everything in it
     */
    public static Loaded load(Path path) {
        return load(Text.path(path));
    }

    /**
     * As {@link #load(String)}, with options.
     *
     * @param path a path of the file system, or a key prefix in the storage of the options
     * @param options those that say how to open and read; of rank_local entries those of the collective's rank are read,
     *     without a collective those of rank 0
     * @return everything in it
     */
    public static Loaded load(String path, LoadOptions options) {
        int rank = options.collective() == null ? 0 : options.collective().rank();
        NativeLoader.load();
        try (WaitingCall call = WaitingCall.begin(0);
                Checkpoint checkpoint = Checkpoint.open(path, options.opening().rank(rank), call.cancellation())) {
            return new Loaded(checkpoint);
        }
    }

    /**
     * Saves in the background. The memory of the state's tensors must stay unchanged until the job is staged.
     *
     * @param state what this rank saves
     * @param path a path of the file system, or a key prefix in the storage of the options
     * @param options the options; a collective belongs to the job until it has ended
     * @return the job
     */
    public static Job saveAsync(State state, String path, SaveOptions options) {
        Context context = options.context();
        Team team = Team.ofJob(options.collective(), shw_nativeConstants.SHW_CALL_SAVE, context);
        Uses uses = new Uses();
        try (OptionStruct struct = options.struct()) {
            byte[] text = Text.terminated(path);
            long stateHandle = uses.of(state);
            state.beforeSave();
            long contextHandle = uses.of(context);
            long storage = uses.ofNullable(options.storage());
            long collective = uses.ofNullable(options.collective());
            team.meets();
            long handle = shw_nativeJNI.shw_save_async(contextHandle, stateHandle, storage, text, collective,
                    struct.address());
            return Job.start(handle, state, uses, false);
        } catch (Throwable e) {
            team.decline(e);
            uses.close();
            throw e;
        }
    }

    /**
     * Loads in the background. State and memory belong to the job until it has ended.
     *
     * @param into what is wanted
     * @param path a path of the file system, or a key prefix in the storage of the options
     * @param options the options; a collective belongs to the job until it has ended
     * @return the job
     */
    public static Job loadAsync(State into, String path, LoadOptions options) {
        Context context = options.context();
        Team team = Team.ofJob(options.collective(), shw_nativeConstants.SHW_CALL_LOAD, context);
        Uses uses = new Uses();
        try (OptionStruct struct = options.struct()) {
            byte[] text = Text.terminated(path);
            long stateHandle = uses.of(into);
            into.beforeLoad();
            long contextHandle = uses.of(context);
            long storage = uses.ofNullable(options.storage());
            long collective = uses.ofNullable(options.collective());
            team.meets();
            long handle = shw_nativeJNI.shw_load_async(contextHandle, stateHandle, storage, text, collective,
                    struct.address());
            return Job.start(handle, into, uses, true);
        } catch (Throwable e) {
            team.decline(e);
            uses.close();
            throw e;
        }
    }

    /**
     * Finds generations that no manifest names, and removes them when the options say so.
     *
     * @param path a path of the file system, or a key prefix in the storage of the options
     * @param options the options
     * @return generations in {@link Report#removed}
     */
    public static Report collectGarbage(String path, GarbageOptions options) {
        byte[] text = Text.terminated(path);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return new Report(shw_nativeJNI.shw_checkpoint_gc(uses.of(context), uses.ofNullable(options.storage()), text,
                    options.graceNs(), options.flags()));
        }
    }

    /**
     * Checkpoints of a run directory.
     *
     * @param path a path of the file system
     * @return JSON text with {@code "schema": 1}, with the newest whole one
     * @throws NotFoundException when there is none
     */
    public static String listSteps(String path) {
        return listSteps(path, new OpenOptions());
    }

    /**
     * As {@link #listSteps(String)}, with context and storage of the options.
     *
     * @param path a path of the file system, or a key prefix in the storage of the options
     * @param options the options
     * @return JSON text with {@code "schema": 1}, with the newest whole one
     */
    public static String listSteps(String path, OpenOptions options) {
        byte[] text = Text.terminated(path);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return Parts.text(shw_nativeJNI.shw_checkpoint_list_steps(uses.of(context),
                    uses.ofNullable(options.storage()), text));
        }
    }
}
