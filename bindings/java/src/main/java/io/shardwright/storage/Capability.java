// SPDX-License-Identifier: Apache-2.0
// What storages can do.
package io.shardwright.storage;

import io.shardwright.internal.shw_nativeConstants;

import java.util.EnumSet;
import java.util.Set;

/** A capability of a storage. What it lacks is done another way or refused, naming the capability. */
public enum Capability {
    /** Objects that are opened with {@link OpenMode#CREATE_VISIBLE} are written by several threads in any order. */
    POSITIONAL_WRITE(shw_nativeConstants.SHW_STORAGE_POSITIONAL_WRITE),
    /** A commit shows all of an object or nothing; a save without it is refused. */
    ATOMIC_COMMIT(shw_nativeConstants.SHW_STORAGE_ATOMIC_COMMIT),
    /** A commit takes conditions; without it only one writer may save at a path. */
    CONDITIONAL_COMMIT(shw_nativeConstants.SHW_STORAGE_CONDITIONAL_COMMIT),
    /** Several threads read one object at the same time. */
    CONCURRENT_READ(shw_nativeConstants.SHW_STORAGE_CONCURRENT_READ),
    /** Large files are written in blocks at multiples of the alignment, then truncated to their length. */
    DIRECT_IO(shw_nativeConstants.SHW_STORAGE_DIRECT_IO),
    /** Objects that are opened with {@link OpenMode#CREATE} are written in parts of a least size. */
    MULTIPART(shw_nativeConstants.SHW_STORAGE_MULTIPART),
    /** What was synced or committed outlives a power loss. */
    DURABLE(shw_nativeConstants.SHW_STORAGE_DURABLE);

    private final long bit;

    Capability(long bit) {
        this.bit = bit;
    }

    static long bits(Set<Capability> capabilities) {
        long bits = 0;
        for (Capability each : capabilities) {
            bits |= each.bit;
        }
        return bits;
    }

    static Set<Capability> of(long bits) {
        Set<Capability> capabilities = EnumSet.noneOf(Capability.class);
        for (Capability each : values()) {
            if ((bits & each.bit) != 0) {
                capabilities.add(each);
            }
        }
        return capabilities;
    }
}
