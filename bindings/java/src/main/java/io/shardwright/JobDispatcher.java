// SPDX-License-Identifier: Apache-2.0
// Completes the futures of jobs.
package io.shardwright;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * One daemon thread that looks at the running jobs, waits in the library for the oldest one in short slices, and ends when
 * none is left. It is also what keeps a running job, and the memory that it uses, reachable.
 */
final class JobDispatcher {
    private static final long SLICE_NS = 5_000_000L;
    private static final List<Job> RUNNING = new ArrayList<>();
    private static Thread thread;

    private JobDispatcher() {}

    static synchronized void watch(Job job) {
        RUNNING.add(job);
        if (thread == null) {
            thread = new Thread(JobDispatcher::run, "shardwright-jobs");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void run() {
        List<Job> jobs = new ArrayList<>();
        while (next(jobs)) {
            long wait = SLICE_NS;
            for (Iterator<Job> at = jobs.iterator(); at.hasNext();) {
                if (!at.next().completeIfDone(wait)) {
                    at.remove();
                }
                wait = 0;
            }
        }
    }

    /** Takes what was completed off the list and gives those that run; false when none is left. */
    private static synchronized boolean next(List<Job> completed) {
        RUNNING.removeAll(completed);
        completed.clear();
        completed.addAll(RUNNING);
        if (RUNNING.isEmpty()) {
            thread = null;
        }
        return !RUNNING.isEmpty();
    }
}
