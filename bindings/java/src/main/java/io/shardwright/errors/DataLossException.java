// SPDX-License-Identifier: Apache-2.0
// What callers catch for status DATA_LOSS.
package io.shardwright.errors;

import java.util.Map;

/** Torn, damaged or unreadable bytes. */
public final class DataLossException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    DataLossException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
