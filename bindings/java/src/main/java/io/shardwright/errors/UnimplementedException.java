// SPDX-License-Identifier: Apache-2.0
// What callers catch for status UNIMPLEMENTED.
package io.shardwright.errors;

import java.util.Map;

/** An optional part is missing, or a newer caller. */
public final class UnimplementedException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    UnimplementedException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
