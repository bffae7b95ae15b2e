// SPDX-License-Identifier: Apache-2.0
// What the native part calls for a storage of the host.
package io.shardwright.storage;

import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeConstants;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Numbers open objects and held locks, and turns bytes into text. Methods are bound by name and signature in native/host_storage.c. */
final class HostStorageBridge {
    private final HostStorage storage;
    private final Map<Long, HostStorage.OpenObject> objects = new ConcurrentHashMap<>();
    private final Map<Long, HostStorage.Lock> locks = new ConcurrentHashMap<>();
    private final Map<Long, byte[]> versions = new ConcurrentHashMap<>();
    private final AtomicLong numbers = new AtomicLong();

    HostStorageBridge(HostStorage storage) {
        this.storage = storage;
    }

    private interface Call<T> {
        T run() throws IOException;
    }

    private static <T> T run(Call<T> call) {
        try {
            return call.run();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private interface Action {
        void run() throws IOException;
    }

    private static void act(Action action) {
        run(() -> {
            action.run();
            return null;
        });
    }

    long capabilities() {
        return Capability.bits(storage.capabilities());
    }

    long alignment() {
        return storage.alignment();
    }

    long partBytes() {
        return storage.partBytes();
    }

    long open(byte[] key, int mode) {
        HostStorage.OpenObject object = run(() -> storage.open(Text.of(key), OpenMode.of(mode)));
        long number = numbers.incrementAndGet();
        objects.put(number, object);
        return number;
    }

    void close(long object) {
        objects.remove(object).close();
    }

    long[] stat(byte[] key) {
        ObjectStat found = run(() -> storage.stat(Text.of(key)));
        long number = numbers.incrementAndGet();
        versions.put(number, Text.bytes(found.version()));
        return new long[] {found.size(), found.modifiedNs(), number};
    }

    /** Text of the version of what stat gave, once. */
    byte[] version(long[] stat) {
        return versions.remove(stat[2]);
    }

    byte[][] list(byte[] prefix, int delimiter) {
        boolean level = delimiter != shw_nativeConstants.SHW_STORAGE_NO_DELIMITER;
        List<String> keys = run(() -> level ? storage.listLevel(Text.of(prefix)) : storage.list(Text.of(prefix)));
        return keys.stream().map(Text::bytes).toArray(byte[][]::new);
    }

    long readAt(long object, long offset, ByteBuffer data) {
        return run(() -> objects.get(object).readAt(offset, data));
    }

    void writeAt(long object, long offset, ByteBuffer data) {
        act(() -> objects.get(object).writeAt(offset, data.asReadOnlyBuffer()));
    }

    void truncate(long object, long size) {
        act(() -> objects.get(object).truncate(size));
    }

    void sync(long object) {
        act(() -> objects.get(object).sync());
    }

    void commit(long object, int condition, byte[] version) {
        act(() -> objects.get(object).commit(CommitCondition.of(condition), Text.of(version)));
    }

    void abort(long object) {
        objects.get(object).abort();
    }

    void remove(byte[] key) {
        act(() -> storage.remove(Text.of(key)));
    }

    long space(byte[] key) {
        return run(() -> storage.space(Text.of(key)));
    }

    /** Number of the lock, 0 when somebody else's forbids it. */
    long lock(byte[] key, int mode) {
        Optional<HostStorage.Lock> taken = run(() -> storage.lock(Text.of(key), LockMode.of(mode)));
        if (taken.isEmpty()) {
            return 0;
        }
        long number = numbers.incrementAndGet();
        locks.put(number, taken.get());
        return number;
    }

    void unlock(long lock) {
        locks.remove(lock).release();
    }
}
