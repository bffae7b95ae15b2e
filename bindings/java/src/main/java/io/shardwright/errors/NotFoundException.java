// SPDX-License-Identifier: Apache-2.0
// What callers catch for status NOT_FOUND.
package io.shardwright.errors;

import java.util.Map;

/** A path, tensor or plugin is missing. */
public final class NotFoundException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    NotFoundException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
