// SPDX-License-Identifier: Apache-2.0
// What callers catch for status INVALID_ARGUMENT.
package io.shardwright.errors;

import java.util.Map;

/** A parameter, option or plan is wrong whatever the state. */
public final class InvalidArgumentException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    InvalidArgumentException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
