// SPDX-License-Identifier: Apache-2.0
// The load in steps.
package io.shardwright;

import io.shardwright.internal.Handle;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import io.shardwright.planning.Matches;

/** Plans one load of one rank. It keeps checkpoint and state. Used by one thread at a time. */
public final class LoadPlanner extends Handle {
    private final State state;

    private LoadPlanner(long handle, State state, Uses uses) {
        super(handle, Leak.WARN, h -> {
            shw_nativeJNI.shw_load_planner_release(h);
            uses.close();
        });
        this.state = state;
    }

    /**
     * The planner of a rank.
     *
     * @param checkpoint what is stored
     * @param state what is wanted
     * @param rank the rank, which selects rank-local entries
     * @param options options of the load; context, storage and collective are not used
     * @return the planner
     */
    public static LoadPlanner create(Checkpoint checkpoint, State state, int rank, LoadOptions options) {
        Uses uses = new Uses();
        try {
            long handle = shw_nativeJNI.shw_load_planner_create(uses.of(checkpoint), uses.of(state), rank,
                    options.struct());
            return new LoadPlanner(handle, state, uses);
        } catch (Throwable e) {
            uses.close();
            throw e;
        }
    }

    /**
     * Matches what the state wants with what is stored.
     *
     * @return what this rank reads
     */
    public Plan localPlan() {
        return with(h -> new Plan(shw_nativeJNI.shw_load_planner_local_plan(h)));
    }

    /**
     * Reads what the plan says into the state.
     *
     * @param plan a plan of this planner, or of one over the same checkpoint and an equal state
     * @return what was read
     */
    public Report execute(Plan plan) {
        state.beforeLoad();
        Report report = with(h -> {
            try (Uses uses = new Uses()) {
                return new Report(shw_nativeJNI.shw_load_execute(h, uses.of(plan)));
            }
        });
        state.afterLoad();
        return report;
    }
}
