// SPDX-License-Identifier: Apache-2.0
// Which libraries the classes go with.
package io.shardwright.internal;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class NativeLoaderTest {
    @Test
    void onlyALibraryOfTheSameMinorFitsWhileTheMajorIsZero() {
        long major = shw_nativeConstants.SHW_ABI_MAJOR;
        long minor = shw_nativeConstants.SHW_ABI_MINOR;
        assertTrue(NativeLoader.fits(major, minor));
        assertFalse(NativeLoader.fits(major, minor + 1));
        assertFalse(NativeLoader.fits(major, minor - 1));
        assertFalse(NativeLoader.fits(major + 1, minor));
    }
}
