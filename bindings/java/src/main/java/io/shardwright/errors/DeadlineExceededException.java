// SPDX-License-Identifier: Apache-2.0
// What callers catch for status DEADLINE_EXCEEDED.
package io.shardwright.errors;

import java.util.Map;

/** A limit given by the host passed. */
public final class DeadlineExceededException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    DeadlineExceededException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
