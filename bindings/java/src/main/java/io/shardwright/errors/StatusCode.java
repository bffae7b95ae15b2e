// SPDX-License-Identifier: Apache-2.0
// Status numbers of the library as an enum.
package io.shardwright.errors;

/** Status of a call. Numbers are those of the C library; {@link ShardwrightException#status()} keeps unknown ones. */
public enum StatusCode {
    /** Success. */
    OK(0),
    /** A call or job was cancelled by the host. */
    CANCELLED(1),
    /** A code that this version does not know. */
    UNKNOWN(2),
    /** A parameter, option or plan is wrong whatever the state. */
    INVALID_ARGUMENT(3),
    /** A limit given by the host passed. */
    DEADLINE_EXCEEDED(4),
    /** A path, tensor or plugin is missing. */
    NOT_FOUND(5),
    /** The target exists, or a name is doubled. */
    ALREADY_EXISTS(6),
    /** Refused by the system, or unsafe content. */
    PERMISSION_DENIED(7),
    /** Memory, disk, descriptors or a configured limit. */
    RESOURCE_EXHAUSTED(8),
    /** The right call in the wrong state. */
    FAILED_PRECONDITION(9),
    /** A conflict; retry from the start. */
    ABORTED(10),
    /** A short read, or a box outside a tensor. */
    OUT_OF_RANGE(11),
    /** An optional part is missing, or a newer caller. */
    UNIMPLEMENTED(12),
    /** A broken invariant of the library. */
    INTERNAL(13),
    /** A transient failure of storage or transport. */
    UNAVAILABLE(14),
    /** Torn, damaged or unreadable bytes. */
    DATA_LOSS(15),
    /** Credentials are missing or expired. */
    UNAUTHENTICATED(16),
    /** A callback of the host failed. */
    HOST_EXCEPTION(34);

    private final int number;

    StatusCode(int number) {
        this.number = number;
    }

    /**
     * Number in the C library.
     *
     * @return the number
     */
    public int number() {
        return number;
    }

    /**
     * From a number of the C library.
     *
     * @param number the number
     * @return the status; UNKNOWN for numbers that this version does not know
     */
    public static StatusCode of(int number) {
        for (StatusCode code : values()) {
            if (code.number == number) {
                return code;
            }
        }
        return UNKNOWN;
    }
}
