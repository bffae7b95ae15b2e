// SPDX-License-Identifier: Apache-2.0
// Calls that wait, and the interrupts of their threads.
package io.shardwright;

import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;

/**
 * One call that waits in the library. A thread there does not notice its interrupt, so the call is a channel to the virtual
 * machine, which closes what an interrupted thread is blocked on: the interrupt cancels what the call waits for, on the thread
 * that interrupts. Closed by the thread that made it.
 */
final class WaitingCall implements AutoCloseable {
    private static final byte[] CAUSE =
            "cancelled by the host: the thread of a rank was interrupted".getBytes(StandardCharsets.UTF_8);
    private static final AtomicLong CANCELLED = new AtomicLong();
    private static final ThreadLocal<WaitingCall> CURRENT = new ThreadLocal<>();

    private final Thread thread = Thread.currentThread();
    private final WaitingCall outer = CURRENT.get();
    private final Alarm alarm = new Alarm();
    private final long cancellation = shw_nativeJNI.shw_cancellation_create();
    private final long collective;
    private boolean cancelled;
    private boolean closed;

    /** What an interrupt closes. */
    private final class Alarm extends AbstractInterruptibleChannel {
        /** A thread that is interrupted already closes it at once. */
        void arm() {
            begin();
        }

        void disarm() {
            try {
                end(true);
            } catch (AsynchronousCloseException e) {
                // The call has been cancelled, and says so itself.
            }
        }

        @Override
        protected void implCloseChannel() {
            cancel();
        }
    }

    /** Handle of the collective that the call may wait in, 0 = none; its owner keeps it until this is closed. */
    private WaitingCall(long collective) {
        this.collective = collective;
    }

    /** A thread that is interrupted already gets a call that ends at its first step. */
    static WaitingCall begin(long collective) {
        WaitingCall call = new WaitingCall(collective);
        CURRENT.set(call);
        call.alarm.arm();
        return call;
    }

    /** After code of the host ran on this thread: a channel that it used took the place of the alarm. The native part calls it. */
    static void rearm() {
        WaitingCall call = CURRENT.get();
        if (call != null) {
            call.alarm.arm();
        }
    }

    /** For the options of the call. */
    long cancellation() {
        return cancellation;
    }

    /** Number of calls that were cancelled so far. */
    static long cancelledCalls() {
        return CANCELLED.get();
    }

    /** Once. A rank that waits for others is woken together with them: they end with the same failure. */
    private synchronized void cancel() {
        if (cancelled || closed) {
            return;
        }
        cancelled = true;
        shw_nativeJNI.shw_cancellation_cancel(cancellation);
        if (collective != 0) {
            abort();
        }
        CANCELLED.incrementAndGet();
    }

    private void abort() {
        try {
            shw_nativeJNI.shw_collective_abort(collective, shw_nativeConstants.SHW_CANCELLED, CAUSE);
        } catch (RuntimeException e) {
            // A transport that cannot be woken: the call ends at its next step or deadline.
        }
    }

    private synchronized boolean finish() {
        closed = true;
        return cancelled;
    }

    /** The interrupt stays, also when code of the host has taken it in the meantime. */
    @Override
    public void close() {
        alarm.disarm();
        if (outer != null) {
            CURRENT.set(outer);
        } else {
            CURRENT.remove();
        }
        if (finish()) {
            thread.interrupt(); // without a lock of ours: the virtual machine has one of its own around an alarm
        }
        shw_nativeJNI.shw_cancellation_release(cancellation);
        rearm();
    }
}
