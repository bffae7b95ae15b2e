// SPDX-License-Identifier: Apache-2.0
// What callers catch for status RESOURCE_EXHAUSTED.
package io.shardwright.errors;

import java.util.Map;

/** Memory, disk, descriptors or a configured limit. */
public final class ResourceExhaustedException extends ShardwrightException {
    private static final long serialVersionUID = 1L;

    ResourceExhaustedException(int status, String message, Map<String, String> details, boolean retryable) {
        super(status, message, details, retryable);
    }
}
