// SPDX-License-Identifier: Apache-2.0
// A storage of the host in a map, for tests; what it does at a write can be replaced.
package io.shardwright;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.storage.CommitCondition;
import io.shardwright.storage.HostStorage;
import io.shardwright.storage.ObjectStat;
import io.shardwright.storage.OpenMode;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Whole objects in memory. */
class MapStorage implements HostStorage {
    private final Map<String, byte[]> objects = new TreeMap<>();

    /** Called before each read. */
    void beforeRead() {}

    /** Called before each write. */
    void beforeWrite() {}

    @Override
    public synchronized ObjectStat stat(String key) {
        byte[] found = objects.get(key);
        if (found == null) {
            throw ShardwrightException.of(StatusCode.NOT_FOUND, "no key " + key);
        }
        return new ObjectStat(found.length, 1, "");
    }

    @Override
    public synchronized List<String> list(String prefix) {
        return objects.keySet().stream().filter(k -> k.startsWith(prefix)).collect(Collectors.toList());
    }

    @Override
    public synchronized void remove(String key) {
        objects.remove(key);
    }

    @Override
    public synchronized OpenObject open(String key, OpenMode mode) {
        if (mode == OpenMode.READ) {
            stat(key);
            return new MapObject(key, objects.get(key));
        }
        if (mode == OpenMode.CREATE_VISIBLE && objects.containsKey(key)) {
            throw ShardwrightException.of(StatusCode.ALREADY_EXISTS, "there is a key " + key);
        }
        MapObject made = new MapObject(key, new byte[0]);
        made.visible = mode == OpenMode.CREATE_VISIBLE;
        return made;
    }

    synchronized void publish(MapObject object, CommitCondition condition) {
        if (condition == CommitCondition.IF_ABSENT && objects.containsKey(object.key)) {
            throw ShardwrightException.of(StatusCode.ABORTED, "there is a key " + object.key);
        }
        objects.put(object.key, object.bytes);
    }

    private final class MapObject implements OpenObject {
        private final String key;
        private byte[] bytes;
        private boolean visible;

        MapObject(String key, byte[] bytes) {
            this.key = key;
            this.bytes = bytes;
        }

        @Override
        public int readAt(long offset, ByteBuffer data) {
            beforeRead();
            int count = (int) Math.max(0, Math.min(data.remaining(), bytes.length - offset));
            data.put(bytes, (int) offset, count);
            return count;
        }

        @Override
        public void writeAt(long offset, ByteBuffer data) {
            beforeWrite();
            int size = data.remaining();
            bytes = Arrays.copyOf(bytes, (int) Math.max(bytes.length, offset + size));
            data.get(bytes, (int) offset, size);
            if (visible) {
                publish(this, CommitCondition.NONE);
            }
        }

        @Override
        public void sync() {}

        @Override
        public void commit(CommitCondition condition, String expectedVersion) {
            publish(this, condition);
        }

        @Override
        public void abort() {
            if (visible) {
                remove(key);
            }
        }

        @Override
        public void close() {}
    }
}
