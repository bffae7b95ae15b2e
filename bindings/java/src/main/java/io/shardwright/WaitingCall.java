// SPDX-License-Identifier: Apache-2.0
// Calls that wait, and the interrupts of their threads.
package io.shardwright;

import io.shardwright.internal.InterruptAlarm;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;

/**
 * One call that waits in the library: an interrupt of its thread cancels what it waits for. Closed by the thread that made it.
 */
final class WaitingCall implements AutoCloseable {
    private static final byte[] CAUSE =
            "cancelled by the host: the thread of a rank was interrupted".getBytes(StandardCharsets.UTF_8);
    private static final AtomicLong CANCELLED = new AtomicLong();

    private final long cancellation = shw_nativeJNI.shw_cancellation_create();
    private final long collective;
    private final InterruptAlarm alarm;

    /** Handle of the collective that the call may wait in, 0 = none; its owner keeps it until this is closed. */
    private WaitingCall(long collective) {
        this.collective = collective;
        alarm = InterruptAlarm.begin(this::cancel);
    }

    /** A thread that is interrupted already gets a call that ends at its first step. */
    static WaitingCall begin(long collective) {
        return new WaitingCall(collective);
    }

    /** For the options of the call. */
    long cancellation() {
        return cancellation;
    }

    /** Number of calls that were cancelled so far. */
    static long cancelledCalls() {
        return CANCELLED.get();
    }

    /** A rank that waits for others is woken together with them: they end with the same failure. */
    private void cancel() {
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

    @Override
    public void close() {
        alarm.close();
        shw_nativeJNI.shw_cancellation_release(cancellation);
    }
}
