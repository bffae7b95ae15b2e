// SPDX-License-Identifier: Apache-2.0
// Completes the futures of jobs.
package io.shardwright;

import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.util.ArrayList;
import java.util.List;

/**
 * One daemon thread that sleeps in the library until a job has ended, completes those that have, and ends when none is left.
 * It is also what keeps a running job, and the memory that it uses, reachable.
 */
final class JobDispatcher {
    private static final List<Job> RUNNING = new ArrayList<>();
    private static Thread thread;

    private JobDispatcher() {}

    static synchronized void watch(Job job) {
        RUNNING.add(job);
        try (Uses uses = new Uses()) {
            shw_nativeJNI.shw_java_job_watch(uses.of(job)); // after it was added: one that has ended wakes the thread at once
        }
        if (thread == null) {
            thread = new Thread(JobDispatcher::run, "shardwright-jobs");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void run() {
        boolean more = true;
        while (more) {
            shw_nativeJNI.shw_java_job_ends_wait();
            List<Job> ended = running();
            ended.removeIf(job -> !job.completeIfDone());
            more = forget(ended);
        }
    }

    private static synchronized List<Job> running() {
        return new ArrayList<>(RUNNING);
    }

    /** Takes what was completed off the list; false when none is left, and the thread ends. */
    private static synchronized boolean forget(List<Job> ended) {
        RUNNING.removeAll(ended);
        if (RUNNING.isEmpty()) {
            thread = null;
        }
        return !RUNNING.isEmpty();
    }
}
