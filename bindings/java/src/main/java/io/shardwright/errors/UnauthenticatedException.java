// SPDX-License-Identifier: Apache-2.0
// What callers catch for status UNAUTHENTICATED.
package io.shardwright.errors;

import java.util.Map;

/** Credentials are missing or expired. */
public final class UnauthenticatedException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    UnauthenticatedException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
