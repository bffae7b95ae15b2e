// SPDX-License-Identifier: Apache-2.0
// Calls that wait, and the interrupts of their threads.
package io.shardwright;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * One call that waits in the library. A thread there does not notice its interrupt, so one daemon thread looks at the threads
 * of such calls and cancels what an interrupted one waits for. The daemon ends when there was no call for a while, because a
 * thread per call would cost more than many calls do. Closed by the thread that made it.
 */
final class WaitingCall implements AutoCloseable {
    private static final long LOOK_MS = 20;
    private static final int IDLE_LOOKS = 250;
    private static final byte[] CAUSE =
            "cancelled by the host: the thread of a rank was interrupted".getBytes(StandardCharsets.UTF_8);
    private static final List<WaitingCall> RUNNING = new ArrayList<>();
    private static final AtomicLong CANCELLED = new AtomicLong();
    private static Thread watcher;

    private final Thread thread = Thread.currentThread();
    private final long cancellation = shw_nativeJNI.shw_cancellation_create();
    private final long collective;
    private boolean cancelled;
    private boolean closed;

    /** Handle of the collective that the call may wait in, 0 = none; its owner keeps it until this is closed. */
    private WaitingCall(long collective) {
        this.collective = collective;
    }

    /** A thread that is interrupted already gets a call that ends at its first step. */
    static WaitingCall begin(long collective) {
        WaitingCall call = new WaitingCall(collective);
        call.look();
        watch(call);
        return call;
    }

    /** For the options of the call. */
    long cancellation() {
        return cancellation;
    }

    private static synchronized void watch(WaitingCall call) {
        RUNNING.add(call);
        if (watcher == null) {
            watcher = new Thread(WaitingCall::run, "shardwright-interrupts");
            watcher.setDaemon(true);
            watcher.start();
        }
    }

    private static synchronized void forget(WaitingCall call) {
        RUNNING.remove(call);
    }

    private static synchronized List<WaitingCall> running(boolean last) {
        if (last && RUNNING.isEmpty()) {
            watcher = null;
        }
        return watcher == null ? null : new ArrayList<>(RUNNING);
    }

    /** Number of calls that were cancelled so far. */
    static long cancelledCalls() {
        return CANCELLED.get();
    }

    private static void run() {
        int idle = 0;
        for (List<WaitingCall> calls = running(false); calls != null; calls = running(idle >= IDLE_LOOKS)) {
            calls.forEach(WaitingCall::look);
            idle = calls.isEmpty() ? idle + 1 : 0;
            try {
                Thread.sleep(LOOK_MS);
            } catch (InterruptedException e) {
                idle = 0; // nobody's business but ours
            }
        }
    }

    /** Cancels once. A rank that waits for others is woken together with them: they end with the same failure. */
    private synchronized void look() {
        if (cancelled || closed || !thread.isInterrupted()) {
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

    /** The interrupt stays, also when code of the host has taken it in the meantime. */
    @Override
    public void close() {
        forget(this);
        synchronized (this) {
            closed = true;
            if (cancelled) {
                thread.interrupt();
            }
        }
        shw_nativeJNI.shw_cancellation_release(cancellation);
    }
}
