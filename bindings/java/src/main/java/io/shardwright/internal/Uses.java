// SPDX-License-Identifier: Apache-2.0
// The handles that one native call takes.
package io.shardwright.internal;

import io.shardwright.State;
import java.util.ArrayList;
import java.util.List;

/** Collects the handles of one call, or of everything that a longer-lived object stands on. Not thread-safe. */
public final class Uses implements AutoCloseable {
    private final List<Handle> entered = new ArrayList<>(4);
    private Runnable atClose;

    /** Handle of an object that must be there. */
    public long of(Handle object) {
        long handle = object.enter();
        entered.add(object);
        return handle;
    }

    /** Handle of a state of the caller. */
    public long of(State state) {
        if (state == null) {
            throw Invalid.parameter("state", "the state is null");
        }
        return of((Handle) state);
    }

    /** Handle of an object, 0 for null. */
    public long ofNullable(Handle object) {
        return object == null ? 0 : of(object);
    }

    /** What is done once, after everything was left. */
    public void atClose(Runnable action) {
        atClose = action;
    }

    /** Leaves all, last first. */
    @Override
    public void close() {
        for (int i = entered.size() - 1; i >= 0; i--) {
            entered.get(i).leave();
        }
        entered.clear();
        if (atClose != null) {
            Runnable action = atClose;
            atClose = null;
            action.run();
        }
    }
}
