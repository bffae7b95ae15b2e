// SPDX-License-Identifier: Apache-2.0
// Places where checkpoints lie.
package io.shardwright.storage;

import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/** A directory, memory, or what a host offers. Thread-safe. Checkpoints and jobs that use it keep it alive. */
public final class Storage extends Handle {
    private Storage(long handle) {
        super(handle, Leak.WARN, shw_nativeJNI::shw_storage_release);
    }

    /**
     * Files below a directory, which need not exist.
     *
     * @param root the directory
     * @return the storage
     */
    public static Storage posix(String root) {
        NativeLoader.load();
        return new Storage(shw_nativeJNI.shw_storage_create_posix(Text.terminated(root)));
    }

    /**
     * Memory of this process.
     *
     * @return an empty storage
     */
    public static Storage memory() {
        NativeLoader.load();
        return new Storage(shw_nativeJNI.shw_storage_create_memory());
    }

    /**
     * A storage of the host.
     *
     * @param storage its methods
     * @return the storage
     */
    public static Storage host(HostStorage storage) {
        NativeLoader.load();
        long bridge = shw_nativeJNI.reference(new HostStorageBridge(Objects.requireNonNull(storage, "storage")));
        return new Storage(shw_nativeJNI.shw_java_storage_create(bridge));
    }

    /**
     * Name of the kind.
     *
     * @return e.g. {@code posix}
     */
    public String name() {
        return Text.of(with(shw_nativeJNI::shw_storage_name));
    }

    /**
     * Keys that begin with a prefix.
     *
     * @param prefix the prefix
     * @return keys, ascending
     */
    public List<String> list(String prefix) {
        byte[] text = Text.bytes(prefix);
        return with(h -> Parts.texts(shw_nativeJNI.shw_storage_list(h, text, shw_nativeConstants.SHW_STORAGE_NO_DELIMITER)));
    }

    /**
     * Keys that begin with a prefix, one level: what lies deeper is given once, up to and with its next {@code /}.
     *
     * @param prefix the prefix
     * @return keys, ascending
     */
    public List<String> listLevel(String prefix) {
        byte[] text = Text.bytes(prefix);
        return with(
                h -> Parts.texts(shw_nativeJNI.shw_storage_list(h, text, shw_nativeConstants.SHW_STORAGE_DELIMITER)));
    }

    /**
     * What the storage can do.
     *
     * @return its capabilities
     */
    public Set<Capability> capabilities() {
        return Capability.of(with(shw_nativeJNI::shw_storage_capabilities));
    }

    /**
     * Reads a part of an object.
     *
     * @param key the key
     * @param offset first byte
     * @param size number of bytes
     * @return the bytes
     * @throws OutOfRangeException when the object ends before
     */
    public byte[] read(String key, long offset, int size) {
        byte[] text = Text.bytes(key);
        ByteBuffer data = ByteBuffer.allocateDirect(OptionValues.count("size", size));
        with(h -> shw_nativeJNI.shw_storage_read(h, text, offset, shw_nativeJNI.addressOf(data), size));
        byte[] bytes = new byte[size];
        data.get(bytes);
        return bytes;
    }

    /**
     * Writes a whole object, durable where the storage is.
     *
     * @param key the key
     * @param data the bytes
     */
    public void put(String key, byte[] data) {
        byte[] text = Text.bytes(key);
        with(h -> shw_nativeJNI.shw_storage_put(h, text, data, shw_nativeConstants.SHW_COMMIT_NONE, null));
    }

    /**
     * Size of an object.
     *
     * @param key the key
     * @return bytes
     * @throws NotFoundException when there is none
     */
    public long size(String key) {
        byte[] text = Text.bytes(key);
        return with(h -> shw_nativeJNI.shw_storage_stat_key(h, text).size);
    }

    /**
     * Removes an object; a missing one is fine.
     *
     * @param key the key
     */
    public void remove(String key) {
        byte[] text = Text.bytes(key);
        with(h -> shw_nativeJNI.shw_storage_remove(h, text));
    }
}
