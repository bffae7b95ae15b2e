// SPDX-License-Identifier: Apache-2.0
// Operations that are under way.
package io.shardwright.hsdp;

import io.shardwright.errors.CancelledException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Handle;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.lang.ref.Reference;
import java.time.Duration;

/**
 * An operation of a communicator or of a unit that is under way. Used by one thread at a time. It keeps the memory that the
 * operation reads and writes, and what the operation belongs to.
 */
public final class Work extends Handle {
    /** A thread that sleeps in the library does not notice its interrupt: it looks this often. */
    private static final long SLICE_NS = 100_000_000L;

    /** `kept` stays until the operation has let go of it. */
    Work(long handle, Object... kept) {
        super(handle, Leak.WARN, h -> {
            shw_nativeJNI.shw_work_release(h);
            Reference.reachabilityFence(kept);
        });
    }

    /**
     * Waits until the operation has ended.
     *
     * @throws CancelledException when this thread is interrupted, which it stays: the operation goes on, and may be waited for
     *     again
     * @throws ShardwrightException what the operation failed with, again at each further call: ABORTED, DEADLINE_EXCEEDED,
     *     UNAVAILABLE
     */
    public void await() {
        await(Duration.ofSeconds(-1));
    }

    /**
     * Waits until the operation has ended or the time has passed.
     *
     * @param timeout limit; null or negative = none but that of the operation
     * @return false when the time passed
     * @throws CancelledException as {@link #await()}
     * @throws ShardwrightException as {@link #await()}
     */
    public boolean await(Duration timeout) {
        long limit = OptionValues.limit(timeout);
        long start = System.nanoTime();
        while (true) {
            if (Thread.currentThread().isInterrupted()) {
                throw ShardwrightException.of(StatusCode.CANCELLED,
                        "the thread was interrupted while it waited for an operation, which goes on");
            }
            long left = limit < 0 ? SLICE_NS : Math.max(0, limit - (System.nanoTime() - start));
            if (ended(Math.min(left, SLICE_NS))) {
                return true;
            }
            if (limit >= 0 && left == 0) {
                return false;
            }
        }
    }

    private boolean ended(long spanNs) {
        return with(h -> shw_nativeJNI.shw_work_wait(h, spanNs)) != shw_nativeConstants.SHW_PENDING;
    }

    /**
     * Whether it has ended; does not wait.
     *
     * @return true when it has
     * @throws ShardwrightException as {@link #await()}
     */
    public boolean isDone() {
        return with(shw_nativeJNI::shw_work_poll) != shw_nativeConstants.SHW_PENDING;
    }

    /**
     * Gives the operation up, or forgets one that has ended: where other ranks still need this one, the communicator has failed.
     * May be called again.
     */
    @Override
    public void close() {
        super.close();
    }
}
