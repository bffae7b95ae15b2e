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

    /**
     * What this rank wants, for the one that calls {@link Shardwright#exchangePlans}. A rank with less than 2 MiB to read
     * wants nothing of others.
     *
     * @param plan a plan that this planner could execute
     * @param worldSize number of ranks
     * @return the want list
     */
    public Plan wantList(Plan plan, int worldSize) {
        return with(h -> {
            try (Uses uses = new Uses()) {
                return new Plan(shw_nativeJNI.shw_load_planner_want_list(h, uses.of(plan), worldSize));
            }
        });
    }

    /**
     * Begins the load of what a plan says, with blocks that come as the exchange plan says. The deadline of the options
     * counts from here, and the memory of all rounds is taken here.
     *
     * @param plan the plan of the want list
     * @param exchangePlan what {@link Shardwright#exchangePlans} gave for this rank
     * @return the exchange, which keeps checkpoint and state
     * @throws io.shardwright.errors.ShardwrightException FAILED_PRECONDITION for an exchange plan of another rank,
     *     generation or plan, RESOURCE_EXHAUSTED when the memory budget has no room
     */
    public LoadExchange exchange(Plan plan, Plan exchangePlan) {
        state.beforeLoad();
        Uses kept = new Uses();
        try (Uses uses = new Uses()) {
            long handle = shw_nativeJNI.shw_load_exchange_create(kept.of(this), uses.of(plan), uses.of(exchangePlan));
            return new LoadExchange(handle, state, kept);
        } catch (Throwable e) {
            kept.close();
            throw e;
        }
    }
}
