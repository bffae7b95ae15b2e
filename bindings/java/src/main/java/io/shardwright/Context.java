// SPDX-License-Identifier: Apache-2.0
// Contexts of calls.
package io.shardwright;

import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.ResourceExhaustedException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.time.Duration;
import java.util.Objects;

/** Worker threads, staging memory and log of the library. Thread-safe. */
public final class Context extends Handle {
    private static Context shared;

    private Context(long handle) {
        super(handle, Leak.WARN, shw_nativeJNI::shw_context_release);
    }

    /**
     * A builder with default values.
     *
     * @return the builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * The context that calls without one share; made at the first use, never closed.
     *
     * @return the context
     */
    public static synchronized Context shared() {
        if (shared == null) {
            shared = builder().build();
        }
        return shared;
    }

    /** Releases the context; jobs and checkpoints that use it keep it alive. The shared one stays open. */
    @Override
    public void close() {
        synchronized (Context.class) {
            if (this == shared) {
                return;
            }
        }
        super.close();
    }

    /**
     * Waits for the jobs of the context, cancels what is left when half of the time passed, and takes no new ones.
     *
     * @param timeout limit; null or negative = none
     * @return false when jobs are still running
     */
    public boolean shutdown(Duration timeout) {
        long status = with(h -> shw_nativeJNI.shw_context_shutdown(h, OptionValues.limit(timeout)));
        return status != shw_nativeConstants.SHW_PENDING;
    }

    /**
     * Loads a plugin; twice does nothing.
     *
     * @param path a file when it has a slash, else a name that is looked for in SHW_PLUGIN_PATH and beside the library
     * @throws NotFoundException when there is none
     * @throws ShardwrightException UNIMPLEMENTED for one of another version, INVALID_ARGUMENT, UNAVAILABLE
     */
    public void loadPlugin(String path) {
        byte[] text = Text.terminated(path);
        with(h -> shw_nativeJNI.shw_context_load_plugin(h, text));
    }

    /**
     * Asks a loaded plugin something that its documentation names.
     *
     * @param plugin its name
     * @param question text that the plugin understands; null = none
     * @return the answer
     * @throws NotFoundException when no such plugin was loaded
     * @throws InvalidArgumentException when the plugin does not understand the question
     * @throws ShardwrightException UNIMPLEMENTED for a plugin that answers none, and what the plugin says
     */
    public String askPlugin(String plugin, String question) {
        byte[] name = Text.terminated(plugin);
        byte[] text = question == null ? null : Text.bytes(question);
        return with(h -> Parts.text(shw_nativeJNI.shw_context_ask_plugin(h, name, text)));
    }

    /** Builds a {@link Context}; every value left out is the default of the library. Not thread-safe. */
    public static final class Builder {
        private int threads;
        private long memoryBudget;
        private LogLevel level = LogLevel.OFF;
        private System.Logger logger;
        private String machine = "";

        private Builder() {}

        /**
         * Number of worker threads.
         *
         * @param count threads; 0 = min(cores, 8)
         * @return this
         */
        public Builder threads(int count) {
            threads = OptionValues.count("threads", count);
            return this;
        }

        /**
         * Staging memory.
         *
         * @param bytes the budget; 0 = 256 MiB
         * @return this
         */
        public Builder memoryBudget(long bytes) {
            memoryBudget = OptionValues.count("memoryBudget", bytes);
            return this;
        }

        /**
         * Ranks share memory only with those of their machine that say the same text, so that a job can tell apart
         * containers of one host.
         *
         * @param name the text; empty = with all of the machine
         * @return this
         */
        public Builder machine(String name) {
            if (name.indexOf('\0') >= 0) {
                throw Invalid.parameter("machine", "the machine holds a NUL character");
            }
            machine = name;
            return this;
        }

        /**
         * Sends records of a level and above to the system logger {@code io.shardwright}.
         *
         * @param from lowest level
         * @return this
         */
        public Builder log(LogLevel from) {
            return log(from, System.getLogger("io.shardwright"));
        }

        /**
         * Sends records of a level and above to a logger, on threads of the library. It must not call this library.
         *
         * @param from lowest level
         * @param to the logger; it lives as long as the process
         * @return this
         */
        public Builder log(LogLevel from, System.Logger to) {
            level = Objects.requireNonNull(from, "level");
            logger = Objects.requireNonNull(to, "logger");
            return this;
        }

        /**
         * Starts the threads.
         *
         * @return the context
         * @throws ResourceExhaustedException when the system refuses them
         */
        public Context build() {
            NativeLoader.load();
            long bridge = logger == null ? 0 : LogBridge.reference(logger);
            return new Context(shw_nativeJNI.shw_java_context_create(threads, memoryBudget, level.number(), bridge,
                    Text.terminated(machine)));
        }
    }
}
