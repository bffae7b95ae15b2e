// SPDX-License-Identifier: Apache-2.0
// Calls that wait, and the interrupts of their threads.
package io.shardwright.internal;

import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;

/**
 * One call that waits in the library. A thread there does not notice its interrupt, so the call is a channel to the virtual
 * machine, which closes what an interrupted thread is blocked on: that runs an action, on the thread that interrupts. Closed by
 * the thread that made it.
 */
public final class InterruptAlarm implements AutoCloseable {
    private static final ThreadLocal<InterruptAlarm> CURRENT = new ThreadLocal<>();

    private final Thread thread = Thread.currentThread();
    private final InterruptAlarm outer = CURRENT.get();
    private final Bell bell = new Bell();
    private final Runnable action;
    private boolean rung;
    private boolean closed;

    /** What an interrupt closes. */
    private final class Bell extends AbstractInterruptibleChannel {
        /** A thread that is interrupted already closes it at once. */
        void arm() {
            begin();
        }

        void disarm() {
            try {
                end(true);
            } catch (AsynchronousCloseException e) {
                // The call has been ended, and says so itself.
            }
        }

        @Override
        protected void implCloseChannel() {
            ring();
        }
    }

    private InterruptAlarm(Runnable action) {
        this.action = action;
    }

    /** The action runs once at most, at once where this thread is interrupted already; it throws nothing. */
    public static InterruptAlarm begin(Runnable action) {
        InterruptAlarm alarm = new InterruptAlarm(action);
        CURRENT.set(alarm);
        alarm.bell.arm();
        return alarm;
    }

    /** After code of the host ran on this thread: a channel that it used took the place of the bell. The native part calls it. */
    static void rearm() {
        InterruptAlarm alarm = CURRENT.get();
        if (alarm != null) {
            alarm.bell.arm();
        }
    }

    private synchronized void ring() {
        if (rung || closed) {
            return;
        }
        rung = true;
        action.run();
    }

    private synchronized boolean finish() {
        closed = true;
        return rung;
    }

    /** The interrupt stays, also when code of the host has taken it in the meantime. */
    @Override
    public void close() {
        bell.disarm();
        if (outer != null) {
            CURRENT.set(outer);
        } else {
            CURRENT.remove();
        }
        if (finish()) {
            thread.interrupt(); // without a lock of ours: the virtual machine has one of its own around a bell
        }
        rearm();
    }
}
