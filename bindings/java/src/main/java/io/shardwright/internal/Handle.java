// SPDX-License-Identifier: Apache-2.0
// Lifetime of native objects. Thread-safe.
package io.shardwright.internal;

import io.shardwright.Kind;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;

/**
 * Base of the classes that own a native object: closed once, explicitly or, as a net, by a cleaner that warns. Use after
 * close is an {@link IllegalStateException}. Native calls go through {@link #with} or a {@link Uses}: both keep the Java
 * object reachable, and the native one alive, until the call is over, even when another thread closes it meanwhile.
 */
public abstract class Handle implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final boolean TRACK = Boolean.getBoolean("shardwright.trackLeaks");

    /** Whether an object that was not closed is worth a warning. */
    protected enum Leak { WARN, QUIET }

    private final Resource resource;
    private final Cleaner.Cleanable cleanable;

    protected Handle(long handle, Leak leak, LongConsumer release) {
        boolean warn = leak == Leak.WARN || TRACK;
        resource = new Resource(getClass().getSimpleName(), handle, release, warn);
        cleanable = CLEANER.register(this, resource);
    }

    /** Runs a native call on the handle. */
    protected final <T> T with(LongFunction<T> call) {
        long handle = enter();
        try {
            return call.apply(handle);
        } finally {
            leave();
        }
    }

    /** The handle for a call that {@link #leave} ends. */
    final long enter() {
        return resource.enter();
    }

    /** Ends what {@link #enter} began. */
    final void leave() {
        resource.leave();
        Reference.reachabilityFence(this);
    }

    /** Keeps the native object alive, even after close, until `view` can no longer be reached. */
    protected final <V> V lend(LongFunction<V> makeView) {
        V view = makeView.apply(enter());
        CLEANER.register(view, resource::leave);
        Reference.reachabilityFence(this);
        return view;
    }

    /** What there is to say of the object while it is open. */
    protected String facts() {
        return "";
    }

    /** Kind and facts; says so when it is closed, and never throws. */
    @Override
    public String toString() {
        String kind = getClass().getSimpleName();
        try {
            return kind + "(" + with(h -> facts()) + ")";
        } catch (IllegalStateException closed) {
            return kind + "(closed)";
        }
    }

    /** Releases the native object as soon as no call uses it. May be called again. */
    @Override
    public void close() {
        resource.explicit = true;
        cleanable.clean();
    }

    private static final class Resource implements Runnable {
        private static final int CLOSED = Integer.MIN_VALUE;

        final String name;
        final long handle;
        final LongConsumer release;
        final Throwable created;
        final boolean warn;
        /** Number of uses, plus CLOSED. */
        final AtomicInteger uses = new AtomicInteger();
        volatile boolean explicit;

        Resource(String name, long handle, LongConsumer release, boolean warn) {
            this.name = name;
            this.handle = handle;
            this.release = release;
            this.warn = warn;
            this.created = TRACK ? new Throwable("created here") : null;
        }

        long enter() {
            if (uses.getAndUpdate(n -> n < 0 ? n : n + 1) < 0) {
                throw new IllegalStateException(name + " is closed");
            }
            return handle;
        }

        void leave() {
            if (uses.decrementAndGet() == CLOSED) {
                release.accept(handle);
            }
        }

        @Override
        public void run() {
            if (!explicit && warn) {
                System.getLogger("io.shardwright").log(System.Logger.Level.WARNING, name + " was not closed", created);
            }
            if (uses.getAndUpdate(n -> n | CLOSED) == 0) {
                release.accept(handle);
            }
        }
    }
}
