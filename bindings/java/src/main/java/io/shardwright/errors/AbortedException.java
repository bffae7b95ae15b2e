// SPDX-License-Identifier: Apache-2.0
// What callers catch for status ABORTED.
package io.shardwright.errors;

import java.util.Map;

/** A conflict; retry from the start. */
public final class AbortedException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    AbortedException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
