// SPDX-License-Identifier: Apache-2.0
// Storages that a host brings.
package io.shardwright.storage;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * A storage that a host brings: keys are text with {@code /}. Methods run on threads of the library, several at the same
 * time. A {@link ShardwrightException} gives the call its status (a missing key is NOT_FOUND); any other exception comes
 * out of the call that caused it, as itself (an {@link IOException} inside an {@link java.io.UncheckedIOException}).
 */
public interface HostStorage {
    /**
     * What the storage can do; asked once. A save needs {@link Capability#ATOMIC_COMMIT}, which is all that this default
     * offers.
     *
     * @return the capabilities
     */
    default Set<Capability> capabilities() {
        return EnumSet.of(Capability.ATOMIC_COMMIT);
    }

    /**
     * Multiple of address, offset and size of writes, for {@link Capability#DIRECT_IO}; asked once.
     *
     * @return bytes, a power of two
     */
    default long alignment() {
        return 1;
    }

    /**
     * Least size of a part but the last, for {@link Capability#MULTIPART}; asked once.
     *
     * @return bytes, 0 without that capability
     */
    default long partBytes() {
        return 0;
    }

    /**
     * Opens an object.
     *
     * @param key the key
     * @param mode for reading or writing
     * @return the open object
     * @throws IOException when it fails
     */
    OpenObject open(String key, OpenMode mode) throws IOException;

    /**
     * Size, time and version of a key. NOT_FOUND when there is none.
     *
     * @param key the key
     * @return the facts
     * @throws IOException when it fails
     */
    ObjectStat stat(String key) throws IOException;

    /**
     * Keys that begin with a prefix.
     *
     * @param prefix the prefix
     * @return keys, ascending by their UTF-8 bytes
     * @throws IOException when it fails
     */
    List<String> list(String prefix) throws IOException;

    /**
     * Keys that begin with a prefix, one level: those that go on behind the next {@code /} after the prefix are given once, as
     * what they begin with up to and with it. The default gives all keys, of which the library takes one of each.
     *
     * @param prefix the prefix
     * @return keys, ascending by their UTF-8 bytes
     * @throws IOException when it fails
     */
    default List<String> listLevel(String prefix) throws IOException {
        return list(prefix);
    }

    /**
     * Removes a key; a missing one is fine.
     *
     * @param key the key
     * @throws IOException when it fails
     */
    void remove(String key) throws IOException;

    /**
     * Free bytes where the key would live; a save that needs more fails before it writes. UNIMPLEMENTED, which is what
     * this default throws, = not offered.
     *
     * @param key the key
     * @return bytes
     * @throws IOException when it fails
     */
    default long space(String key) throws IOException {
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "this storage does not tell its free space");
    }

    /**
     * Takes an advisory lock without waiting. Saves share the lock of a path, garbage collection has it alone.
     * UNIMPLEMENTED, which is what this default throws, = not offered: collection then needs its full grace period.
     *
     * @param key the key
     * @param mode shared or exclusive
     * @return the lock, or none when the lock of somebody else forbids it
     * @throws IOException when it fails
     */
    default Optional<Lock> lock(String key, LockMode mode) throws IOException {
        throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "this storage has no locks");
    }

    /** A lock that a storage gave. */
    @FunctionalInterface
    interface Lock {
        /** Gives the lock back; called once, on any thread. */
        void release();
    }

    /** An open object. Calls on one object are serial but for what the capabilities say. Buffers are valid during the call only. */
    interface OpenObject {
        /**
         * Fills the buffer from an offset on.
         *
         * @param offset in the object
         * @param data what to fill
         * @return bytes that there were; fewer than asked for at the end of the object
         * @throws IOException when it fails
         */
        int readAt(long offset, ByteBuffer data) throws IOException;

        /**
         * Writes all of the buffer; offsets arrive ascending and gap-free unless {@link Capability#POSITIONAL_WRITE} or
         * {@link Capability#MULTIPART} is offered.
         *
         * @param offset in the object
         * @param data what to write
         * @throws IOException when it fails
         */
        void writeAt(long offset, ByteBuffer data) throws IOException;

        /**
         * Sets the length behind the last write, for {@link Capability#DIRECT_IO}.
         *
         * @param size bytes
         * @throws IOException when it fails
         */
        default void truncate(long size) throws IOException {
            throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "this storage does not truncate");
        }

        /**
         * Makes what was written durable.
         *
         * @throws IOException when it fails
         */
        void sync() throws IOException;

        /**
         * Publishes the object under its key, atomically; a lost race is ABORTED.
         *
         * @param condition when to publish
         * @param expectedVersion for IF_VERSION, else empty
         * @throws IOException when it fails
         */
        void commit(CommitCondition condition, String expectedVersion) throws IOException;

        /** Undoes what was written, so that nothing of it is visible; {@link #close} still follows. */
        void abort();

        /**
         * Ends the use of the object. One of {@link OpenMode#CREATE} that was neither committed nor aborted is aborted;
         * one of {@link OpenMode#CREATE_VISIBLE} stays as it was written.
         */
        void close();
    }
}
