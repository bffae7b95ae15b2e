// SPDX-License-Identifier: Apache-2.0
// Modes of host storages.
package io.shardwright.storage;

import io.shardwright.internal.shw_nativeConstants;

/** How an object of a storage is opened. */
public enum OpenMode {
    /** For reading. */
    READ(shw_nativeConstants.SHW_STORAGE_READ),
    /** For writing, invisible until commit. */
    CREATE(shw_nativeConstants.SHW_STORAGE_CREATE),
    /** For writing, visible at once; ALREADY_EXISTS when the key exists. */
    CREATE_VISIBLE(shw_nativeConstants.SHW_STORAGE_CREATE_VISIBLE),
    /** For writing into an object that is there; storages with positional writes are asked for it. */
    UPDATE(shw_nativeConstants.SHW_STORAGE_UPDATE);

    private final int number;

    OpenMode(int number) {
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

    static OpenMode of(int number) {
        for (OpenMode value : values()) {
            if (value.number == number) {
                return value;
            }
        }
        return CREATE_VISIBLE;
    }
}
