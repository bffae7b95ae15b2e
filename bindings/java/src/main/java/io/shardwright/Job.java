// SPDX-License-Identifier: Apache-2.0
// Saves and loads in the background.
package io.shardwright;

import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Handle;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/**
 * A save or load in the background. It keeps state, memory, storage and collective until it has ended, also when the
 * program drops it. Thread-safe.
 */
public final class Job extends Handle {
    /** A thread that sleeps in the library does not notice its interrupt: it looks this often. */
    private static final long SLICE_NS = 100_000_000L;

    private final CompletableFuture<Report> future = new CompletableFuture<>();
    private final State state;
    private final Uses uses;
    private final boolean isLoad;
    private boolean settled;
    private Report report;
    private Throwable failure;

    /** `uses` holds everything that the job stands on; the job leaves it when it has ended. */
    private Job(long handle, State state, Uses uses, boolean isLoad) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_job_release);
        this.state = state;
        this.uses = uses;
        this.isLoad = isLoad;
    }

    static Job start(long handle, State state, Uses uses, boolean isLoad) {
        Job job = new Job(handle, state, uses, isLoad);
        JobDispatcher.watch(job);
        return job;
    }

    /**
     * State now.
     *
     * @return the state
     */
    public JobState state() {
        return JobState.of(with(shw_nativeJNI::shw_job_poll));
    }

    /**
     * Whether it has ended.
     *
     * @return true when succeeded, failed or cancelled
     */
    public boolean isDone() {
        return state().compareTo(JobState.SUCCEEDED) >= 0;
    }

    @Override
    protected String facts() {
        return state().toString();
    }

    /**
     * How far it is.
     *
     * @return the progress
     */
    public Progress progress() {
        return with(h -> new Progress(shw_nativeJNI.shw_job_progress(h)));
    }

    /** Asks it to stop and returns at once; it still ends, and after its commit point it ends SUCCEEDED. */
    public void cancel() {
        with(h -> {
            shw_nativeJNI.shw_job_cancel(h);
            return null;
        });
    }

    /**
     * Waits for the end.
     *
     * @return what it did
     * @throws InterruptedException when this thread is interrupted: the job is cancelled and has ended by then
     * @throws ShardwrightException what the job failed with; or the exception of a callback of the host, as itself
     */
    public Report await() throws InterruptedException {
        await(Duration.ofSeconds(-1));
        return report();
    }

    /**
     * Waits for the end or for the time to pass.
     *
     * @param timeout limit; negative = none
     * @return false when the time passed
     * @throws InterruptedException when this thread is interrupted: the job is cancelled and has ended by then
     * @throws ShardwrightException what the job failed with; or the exception of a callback of the host, as itself
     */
    public boolean await(Duration timeout) throws InterruptedException {
        return awaitState(timeout, JobState.SUCCEEDED);
    }

    /**
     * Waits until a save no longer reads the tensors.
     *
     * @param timeout limit; negative = none
     * @return false when the time passed
     * @throws InterruptedException as {@link #await(Duration)}
     */
    public boolean awaitStaged(Duration timeout) throws InterruptedException {
        return awaitState(timeout, JobState.STAGED);
    }

    private boolean awaitState(Duration timeout, JobState wanted) throws InterruptedException {
        long limit = OptionValues.limit(timeout);
        long start = System.nanoTime();
        while (state().compareTo(wanted) < 0) {
            if (Thread.currentThread().isInterrupted()) {
                cancel();
                Thread.interrupted(); // cleared after the cancel, for those who watch the flag
                waitForEnd();
                throw new InterruptedException("the job was cancelled, because its thread was interrupted");
            }
            long left = limit < 0 ? SLICE_NS : limit - (System.nanoTime() - start);
            if (left <= 0) {
                return false;
            }
            waitSlice(Math.min(left, SLICE_NS), wanted);
        }
        if (isDone()) {
            settle();
            outcome();
        }
        return true;
    }

    private void waitSlice(long spanNs, JobState wanted) {
        with(h -> {
            if (wanted == JobState.STAGED) {
                shw_nativeJNI.shw_java_job_wait_staged(h, spanNs);
            } else {
                shw_nativeJNI.shw_java_job_wait(h, spanNs);
            }
            return null;
        });
    }

    /** Waits whatever interrupts come; they are kept. */
    private void waitForEnd() {
        while (!isDone()) {
            waitSlice(SLICE_NS, JobState.SUCCEEDED);
        }
        settle();
    }

    /**
     * What it did.
     *
     * @return the report
     * @throws FailedPreconditionException while it has not ended
     * @throws ShardwrightException what it failed with
     */
    public Report report() {
        if (!isDone()) {
            throw ShardwrightException.of(StatusCode.FAILED_PRECONDITION, "the job has not ended yet");
        }
        settle();
        return outcome();
    }

    /**
     * Completed when the job has ended, by one thread of this library: dependent work that takes long belongs into the
     * asynchronous methods of the future. Cancelling the future does not cancel the job.
     *
     * @return the future
     */
    public CompletableFuture<Report> future() {
        return future;
    }

    /** Takes the outcome of a job that has ended, once, and gives back what it used. */
    synchronized void settle() {
        if (settled) {
            return;
        }
        settled = true;
        try {
            with(h -> shw_nativeJNI.shw_job_wait(h, 0)); // throws what it failed with
            report = with(h -> new Report(shw_nativeJNI.shw_job_report(h)));
            if (isLoad) {
                state.afterLoad();
            }
        } catch (Throwable e) {
            failure = e;
        } finally {
            uses.close();
        }
    }

    private synchronized Report outcome() {
        if (failure != null) {
            throw Job.<RuntimeException>asItself(failure);
        }
        return report;
    }

    @SuppressWarnings("unchecked") // on purpose: an exception of the host comes out as itself, checked or not
    private static <E extends Throwable> E asItself(Throwable thrown) throws E {
        throw (E) thrown;
    }

    /** For the dispatcher: one look; true when the job needs no more of them. */
    boolean completeIfDone() {
        try {
            if (!isDone()) {
                return false;
            }
        } catch (IllegalStateException e) {
            // Closed by its owner, and a job is closed after it was settled.
        }
        settle();
        Throwable failed;
        Report done;
        synchronized (this) {
            failed = failure;
            done = report;
        }
        if (failed == null) {
            future.complete(done);
        } else {
            future.completeExceptionally(failed);
        }
        return true;
    }

    /** Cancels a job that is still running, waits for its end and releases it. The report and the future stay valid. */
    @Override
    public void close() {
        try {
            if (!isDone()) {
                cancel();
            }
            waitForEnd();
        } catch (IllegalStateException e) {
            return; // closed before
        }
        super.close();
    }
}
