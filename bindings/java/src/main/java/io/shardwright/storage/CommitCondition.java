// SPDX-License-Identifier: Apache-2.0
// Conditions of host storages.
package io.shardwright.storage;

import io.shardwright.internal.shw_nativeConstants;

/** Condition of a commit in a storage. */
public enum CommitCondition {
    /** None. */
    NONE(shw_nativeConstants.SHW_COMMIT_NONE),
    /** The key must not exist. */
    IF_ABSENT(shw_nativeConstants.SHW_COMMIT_IF_ABSENT),
    /** The key must have the expected version. */
    IF_VERSION(shw_nativeConstants.SHW_COMMIT_IF_VERSION);

    private final int number;

    CommitCondition(int number) {
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

    static CommitCondition of(int number) {
        for (CommitCondition value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return NONE;
    }
}
