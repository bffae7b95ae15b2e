// SPDX-License-Identifier: Apache-2.0
// What callers catch for status UNKNOWN.
package io.shardwright.errors;

import java.util.Map;

/** A code that this version does not know. */
public final class UnknownException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    UnknownException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
