// SPDX-License-Identifier: Apache-2.0
// What callers catch for status UNAVAILABLE.
package io.shardwright.errors;

import java.util.Map;

/** A transient failure of storage or transport. */
public final class UnavailableException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    UnavailableException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
