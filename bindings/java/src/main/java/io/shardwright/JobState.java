// SPDX-License-Identifier: Apache-2.0
// States of jobs.
package io.shardwright;

import io.shardwright.internal.shw_nativeConstants;

/** State of a job. */
public enum JobState {
    /** Not started. */
    QUEUED(shw_nativeConstants.SHW_JOB_QUEUED),
    /** At work. */
    RUNNING(shw_nativeConstants.SHW_JOB_RUNNING),
    /** A save that no longer reads the tensors. */
    STAGED(shw_nativeConstants.SHW_JOB_STAGED),
    /** Done, and durable when it was a save. */
    SUCCEEDED(shw_nativeConstants.SHW_JOB_SUCCEEDED),
    /** Ended with an error. */
    FAILED(shw_nativeConstants.SHW_JOB_FAILED),
    /** Stopped by cancel. */
    CANCELLED(shw_nativeConstants.SHW_JOB_CANCELLED);

    private final int number;

    JobState(int number) {
        this.number = number;
    }

    /**
     * Number of the value in the C interface.
     *
     * @return the number
     */
    public int number() {
        return number;
    }

    static JobState of(int number) {
        for (JobState value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return FAILED;
    }
}
