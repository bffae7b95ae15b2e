// SPDX-License-Identifier: Apache-2.0
// From log records of the library to the logging of Java.
package io.shardwright;

import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeJNI;
import java.util.IdentityHashMap;
import java.util.Map;

/** Receives log records on any thread. */
final class LogBridge {
    /** Native references per logger, for ever: jobs and checkpoints may log after their context was closed. */
    private static final Map<System.Logger, Long> REFERENCES = new IdentityHashMap<>();

    private final System.Logger logger;

    private LogBridge(System.Logger logger) {
        this.logger = logger;
    }

    static long reference(System.Logger logger) {
        synchronized (REFERENCES) {
            return REFERENCES.computeIfAbsent(logger, l -> shw_nativeJNI.reference(new LogBridge(l)));
        }
    }

    /** Called by the native part. */
    void write(int level, byte[] component, byte[] message) {
        logger.log(levelOf(LogLevel.of(level)), Text.of(component) + ": " + Text.of(message));
    }

    private static System.Logger.Level levelOf(LogLevel level) {
        switch (level) {
            case TRACE: return System.Logger.Level.TRACE;
            case DEBUG: return System.Logger.Level.DEBUG;
            case INFO: return System.Logger.Level.INFO;
            case WARNING: return System.Logger.Level.WARNING;
            default: return System.Logger.Level.ERROR;
        }
    }
}
