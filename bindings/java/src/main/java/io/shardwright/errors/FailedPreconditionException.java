// SPDX-License-Identifier: Apache-2.0
// What callers catch for status FAILED_PRECONDITION.
package io.shardwright.errors;

import java.util.Map;

/** The right call in the wrong state. */
public final class FailedPreconditionException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    FailedPreconditionException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
