// SPDX-License-Identifier: Apache-2.0
package io.shardwright;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/**
 * Base of the classes that own a native object: closed once, explicitly or, as a net, by a cleaner that warns. Use after
 * close is an {@link IllegalStateException}.
 */
abstract class Handle implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final boolean TRACK = Boolean.getBoolean("shardwright.trackLeaks");

    private final Resource resource;
    private final Cleaner.Cleanable cleanable;

    Handle(long handle, LongConsumer release) {
        resource = new Resource(getClass().getSimpleName(), handle, release, TRACK ? new Throwable("created here") : null);
        cleanable = CLEANER.register(this, resource);
    }

    /** The native handle; the caller keeps this object reachable until its native call is over. */
    final long handle() {
        long handle = resource.handle.get();
        if (handle == 0) {
            throw new IllegalStateException(resource.name + " is closed");
        }
        return handle;
    }

    /** Releases the native object. May be called again. */
    @Override
    public void close() {
        resource.explicit = true;
        cleanable.clean();
    }

    private static final class Resource implements Runnable {
        final String name;
        final AtomicLong handle;
        final LongConsumer release;
        final Throwable created;
        volatile boolean explicit;

        Resource(String name, long handle, LongConsumer release, Throwable created) {
            this.name = name;
            this.handle = new AtomicLong(handle);
            this.release = release;
            this.created = created;
        }

        @Override
        public void run() {
            long value = handle.getAndSet(0);
            if (value == 0) {
                return;
            }
            if (!explicit) {
                System.getLogger("io.shardwright").log(System.Logger.Level.WARNING, name + " was not closed", created);
            }
            release.accept(value);
        }
    }
}
