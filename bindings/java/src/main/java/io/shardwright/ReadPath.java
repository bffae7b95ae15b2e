// SPDX-License-Identifier: Apache-2.0
// Values of the option read_path.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Where large reads go, of storage that has direct I/O. */
public enum ReadPath {
    /** What lies in the page cache is copied from there, the rest comes from the device round it. */
    AUTO(shw_nativeConstants.SHW_READ_PATH_AUTO),
    /** All from the device. */
    DIRECT(shw_nativeConstants.SHW_READ_PATH_DIRECT),
    /** All through the page cache. */
    BUFFERED(shw_nativeConstants.SHW_READ_PATH_BUFFERED);

    private final int number;

    ReadPath(int number) {
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

    /**
     * From the word that all languages use.
     *
     * @param word e.g. {@code direct}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static ReadPath of(String word) {
        return Words.named("read_path", word, values());
    }

    /**
     * The word that all languages use.
     *
     * @return the word
     */
    public String word() {
        return Words.of(this);
    }
}
