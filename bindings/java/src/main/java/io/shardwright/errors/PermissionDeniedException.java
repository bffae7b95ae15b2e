// SPDX-License-Identifier: Apache-2.0
// What callers catch for status PERMISSION_DENIED.
package io.shardwright.errors;

import java.util.Map;

/** Refused by the system, or unsafe content. */
public final class PermissionDeniedException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    PermissionDeniedException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
