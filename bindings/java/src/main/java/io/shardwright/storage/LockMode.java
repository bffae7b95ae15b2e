// SPDX-License-Identifier: Apache-2.0
// How a lock of a host's storage is held.
package io.shardwright.storage;

import io.shardwright.internal.shw_nativeConstants;

/** How a lock is held. */
public enum LockMode {
    /** Beside any number of other shared holders. */
    SHARED(shw_nativeConstants.SHW_LOCK_SHARED),
    /** Alone. */
    EXCLUSIVE(shw_nativeConstants.SHW_LOCK_EXCLUSIVE);

    private final int number;

    LockMode(int number) {
        this.number = number;
    }

    static LockMode of(int number) {
        return number == SHARED.number ? SHARED : EXCLUSIVE;
    }
}
