// SPDX-License-Identifier: Apache-2.0
// Base of all exceptions of the library, and the meeting point with exceptions of callbacks.
package io.shardwright.errors;

import io.shardwright.internal.Text;
import io.shardwright.planning.Entry;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** A failed call: status, message, details and causes of the C library. Each status has a class of its own below. */
public class ShardwrightException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private static final String HOST_EXCEPTION_KEY = "host_exception";
    private static final int PUT_ASIDE_MAX = 64;
    /** Exceptions of callbacks by key until their call ends; the oldest goes when nobody comes for it. */
    private static final Map<String, Throwable> PUT_ASIDE = new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Throwable> eldest) {
            return size() > PUT_ASIDE_MAX;
        }
    };
    private static final AtomicLong COUNT = new AtomicLong();

    /** Status number; unknown ones are kept. */
    private final int status;

    /** Facts by key; of a class that is serialised with the exception. */
    private final LinkedHashMap<String, String> details;

    /** Whether the same call may succeed later. */
    private final boolean retryable;

    ShardwrightException(int status, String message, Map<String, String> details, boolean retryable) {
        super(message);
        this.status = status;
        this.details = new LinkedHashMap<>(details);
        this.retryable = retryable;
    }

    /**
     * An exception that a callback of the host throws to give its call this status.
     *
     * @param code the status
     * @param message what failed
     * @return the exception, of the class of the status
     */
    public static ShardwrightException of(StatusCode code, String message) {
        return typed(code.number(), message, new LinkedHashMap<>(), false);
    }

    /**
     * As {@link #of(StatusCode, String)}, with facts for programs.
     *
     * @param code the status
     * @param message what failed
     * @param details facts by key, e.g. {@code file}
     * @return the exception, of the class of the status
     */
    public static ShardwrightException of(StatusCode code, String message, Map<String, String> details) {
        return typed(code.number(), message, details, false);
    }

    /**
     * The status.
     *
     * @return the status; UNKNOWN for numbers that this version does not know
     */
    public StatusCode code() {
        return StatusCode.of(status);
    }

    /**
     * The status number.
     *
     * @return the number as the library gave it
     */
    public int status() {
        return status;
    }

    /**
     * Facts by key: rank, tensor, file, offset, expected, found, ...
     *
     * @return an unmodifiable map
     */
    public Map<String, String> details() {
        return Collections.unmodifiableMap(details);
    }

    /**
     * Whether the same call may succeed if it is repeated from its start.
     *
     * @return true when it may
     */
    public boolean isRetryable() {
        return retryable;
    }

    /** Called by the native part: exception of a failed call; details are key, value, key, value, ... */
    static Throwable create(int status, byte[] message, byte[][] details, boolean retryable, byte[][] causes) {
        Map<String, String> map = new LinkedHashMap<>();
        for (int i = 0; i + 1 < details.length; i += 2) {
            map.put(Text.of(details[i]), Text.of(details[i + 1]));
        }
        String key = map.get(HOST_EXCEPTION_KEY);
        Throwable original = key == null ? null : takeBack(key);
        if (original != null) {
            return original;
        }
        String text = Text.of(message);
        if (text.isEmpty()) {
            text = "the library returned " + StatusCode.of(status) + " (" + status + ") without a message";
        }
        ShardwrightException made = typed(status, text, map, retryable);
        Throwable outer = made;
        for (byte[] cause : causes) {
            Throwable inner = new Cause(Text.of(cause));
            outer.initCause(inner);
            outer = inner;
        }
        return made;
    }

    /**
     * Called by the native part for an exception of a callback: status as text, key under which it is found again (empty
     * when the status says it all), message; each ends with a NUL.
     */
    static byte[][] describe(Throwable thrown) {
        int status = StatusCode.HOST_EXCEPTION.number();
        if (thrown instanceof ShardwrightException) {
            status = ((ShardwrightException) thrown).status;
        }
        boolean own = status != StatusCode.HOST_EXCEPTION.number();
        String message = own ? String.valueOf(thrown.getMessage()) : "a callback of the host threw " + thrown;
        String key = own ? "" : putAside(thrown);
        return new byte[][] {closed(Integer.toString(status)), closed(key), closed(message)};
    }

    /** UTF-8 with a NUL behind it; bad surrogates become question marks, because this is text for people. */
    private static byte[] closed(String text) {
        return (text.replace('\0', ' ') + "\0").getBytes(StandardCharsets.UTF_8);
    }

    private static String putAside(Throwable thrown) {
        String key = "java-" + ProcessHandle.current().pid() + "-" + COUNT.incrementAndGet();
        synchronized (PUT_ASIDE) {
            PUT_ASIDE.put(key, thrown);
        }
        return key;
    }

    private static Throwable takeBack(String key) {
        synchronized (PUT_ASIDE) {
            return PUT_ASIDE.remove(key);
        }
    }

    private static ShardwrightException typed(int status, String m, Map<String, String> d, boolean r) {
        switch (StatusCode.of(status)) {
            case CANCELLED: return new CancelledException(status, m, d, r);
            case INVALID_ARGUMENT: return new InvalidArgumentException(status, m, d, r);
            case DEADLINE_EXCEEDED: return new DeadlineExceededException(status, m, d, r);
            case NOT_FOUND: return new NotFoundException(status, m, d, r);
            case ALREADY_EXISTS: return new AlreadyExistsException(status, m, d, r);
            case PERMISSION_DENIED: return new PermissionDeniedException(status, m, d, r);
            case RESOURCE_EXHAUSTED: return new ResourceExhaustedException(status, m, d, r);
            case FAILED_PRECONDITION: return new FailedPreconditionException(status, m, d, r);
            case ABORTED: return new AbortedException(status, m, d, r);
            case OUT_OF_RANGE: return new OutOfRangeException(status, m, d, r);
            case UNIMPLEMENTED: return new UnimplementedException(status, m, d, r);
            case INTERNAL: return new InternalException(status, m, d, r);
            case UNAVAILABLE: return new UnavailableException(status, m, d, r);
            case DATA_LOSS: return new DataLossException(status, m, d, r);
            case UNAUTHENTICATED: return new UnauthenticatedException(status, m, d, r);
            case HOST_EXCEPTION: return new HostExceptionException(status, m, d, r);
            default: return new UnknownException(status, m, d, r);
        }
    }

    /** One cause further down. */
    private static final class Cause extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Cause(String message) {
            super(message);
        }
    }
}
