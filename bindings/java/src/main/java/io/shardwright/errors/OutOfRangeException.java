// SPDX-License-Identifier: Apache-2.0
// What callers catch for status OUT_OF_RANGE.
package io.shardwright.errors;

import java.util.Map;

/** A short read, or a box outside a tensor. */
public final class OutOfRangeException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    OutOfRangeException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
