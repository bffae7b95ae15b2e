// SPDX-License-Identifier: Apache-2.0
// The save in steps, for hosts that move plan buffers between ranks themselves.
package io.shardwright;

import io.shardwright.internal.DirectBlob;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.file.Path;
import java.util.List;

/**
 * Plans one save of one rank: localPlan on all ranks, globalPlan on one, finish and execute on all, commit on the one. It
 * keeps context, state and storage. Used by one thread at a time.
 */
public final class SavePlanner extends Handle {
    private final State state;

    private SavePlanner(long handle, State state, Uses uses) {
        super(handle, Leak.WARN, h -> {
            shw_nativeJNI.shw_save_planner_release(h);
            uses.close();
        });
        this.state = state;
    }

    /**
     * The planner of a rank.
     *
     * @param state what it saves
     * @param rank the rank
     * @param worldSize number of ranks
     * @param options options of the save; their collective is not used
     * @return the planner
     */
    public static SavePlanner create(State state, int rank, int worldSize, SaveOptions options) {
        Context context = options.context();
        Uses uses = new Uses();
        try {
            long handle = shw_nativeJNI.shw_save_planner_create(uses.of(context), uses.of(state), rank, worldSize,
                    options.struct());
            return new SavePlanner(handle, state, uses);
        } catch (Throwable e) {
            uses.close();
            throw e;
        }
    }

    /**
     * What this rank describes to the one that merges.
     *
     * @return a plan buffer
     */
    public byte[] localPlan() {
        state.beforeSave();
        return with(h -> Parts.bytes(shw_nativeJNI.shw_save_planner_local_plan(h)));
    }

    /**
     * As {@link #globalPlan(List, Location)}.
     *
     * @param plans local plans by rank
     * @param path a path of the default file system
     * @return what each rank gives to finish, by rank
     */
    public List<byte[]> globalPlan(List<byte[]> plans, Path path) {
        return globalPlan(plans, Location.of(path));
    }

    /**
     * Merges the local plans of all ranks, checks the target and draws the generation.
     *
     * @param plans local plans by rank
     * @param location where to save
     * @return what each rank gives to finish, by rank
     */
    public List<byte[]> globalPlan(List<byte[]> plans, Location location) {
        byte[] text = Location.textOf(location);
        DirectBlob blob = new DirectBlob(plans);
        return with(h -> {
            try (Uses uses = new Uses()) {
                return Parts.all(shw_nativeJNI.shw_save_planner_global_plan(h, uses.ofNullable(location.storage()), text,
                        blob.address(), blob.offsets(), blob.count()));
            } finally {
                blob.keep();
            }
        });
    }

    /**
     * Takes this rank's part and checks that it fits the state.
     *
     * @param mine its part of the global plan
     * @return what this rank writes
     */
    public Plan finish(byte[] mine) {
        return with(h -> new Plan(shw_nativeJNI.shw_save_planner_finish(h, mine)));
    }

    /**
     * As {@link #execute(Plan, Location)}.
     *
     * @param plan what it writes
     * @param path a path of the default file system
     * @return the result for the rank that commits
     */
    public byte[] execute(Plan plan, Path path) {
        return execute(plan, Location.of(path));
    }

    /**
     * Writes this rank's file.
     *
     * @param plan what it writes
     * @param location where to save
     * @return the result for the rank that commits
     */
    public byte[] execute(Plan plan, Location location) {
        byte[] text = Location.textOf(location);
        state.beforeSave();
        return with(h -> {
            try (Uses uses = new Uses()) {
                return Parts.bytes(shw_nativeJNI.shw_save_execute(h, uses.of(plan), uses.ofNullable(location.storage()), text));
            }
        });
    }

    /**
     * Checks the results of all ranks and commits, or removes what was written.
     *
     * @param results by rank; an empty one = that rank failed
     * @return what was saved
     */
    public Report commit(List<byte[]> results) {
        DirectBlob blob = new DirectBlob(results);
        return with(h -> {
            try {
                return new Report(shw_nativeJNI.shw_save_commit(h, blob.address(), blob.offsets(), blob.count()));
            } finally {
                blob.keep();
            }
        });
    }
}
