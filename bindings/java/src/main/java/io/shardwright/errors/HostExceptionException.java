// SPDX-License-Identifier: Apache-2.0
// What callers catch for status HOST_EXCEPTION.
package io.shardwright.errors;

import java.util.Map;

/** A callback of the host failed and its own exception is not at hand. */
public final class HostExceptionException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    HostExceptionException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
