// SPDX-License-Identifier: Apache-2.0
// What callers catch for status INTERNAL.
package io.shardwright.errors;

import java.util.Map;

/** A broken invariant of the library. */
public final class InternalException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    InternalException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
