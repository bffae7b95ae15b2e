// SPDX-License-Identifier: Apache-2.0
// Mistakes of callers that are found before the library is called, reported as the library does.
package io.shardwright.internal;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.util.Map;

/** Makes exceptions of the status INVALID_ARGUMENT. */
public final class Invalid {
    private Invalid() {}

    /** The caller's mistake in one parameter. */
    public static ShardwrightException parameter(String parameter, String message) {
        return ShardwrightException.of(StatusCode.INVALID_ARGUMENT, message, Map.of("parameter", parameter));
    }

    /** The caller's mistake in one entry of a state. */
    public static ShardwrightException entry(String name, String message) {
        return ShardwrightException.of(StatusCode.INVALID_ARGUMENT, "entry " + name + ": " + message, Map.of("tensor", name));
    }
}
