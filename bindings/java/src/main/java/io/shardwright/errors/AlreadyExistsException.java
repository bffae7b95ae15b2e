// SPDX-License-Identifier: Apache-2.0
// What callers catch for status ALREADY_EXISTS.
package io.shardwright.errors;

import java.util.Map;

/** The target exists, or a name is doubled. */
public final class AlreadyExistsException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    AlreadyExistsException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
