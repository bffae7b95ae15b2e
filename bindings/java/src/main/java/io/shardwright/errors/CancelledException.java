// SPDX-License-Identifier: Apache-2.0
// What callers catch for status CANCELLED.
package io.shardwright.errors;

import java.util.Map;

/** A call or job was cancelled by the host. */
public final class CancelledException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    CancelledException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
