// SPDX-License-Identifier: Apache-2.0
// Storages of the host that offer what is optional: free space and locks.
package io.shardwright;

import io.shardwright.errors.ResourceExhaustedException;
import io.shardwright.storage.Capability;
import io.shardwright.storage.LockMode;
import io.shardwright.storage.ObjectStat;
import io.shardwright.storage.Storage;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


@Timeout(60)
class StorageOfferTest {
    /** Has a fixed amount of space and one lock. */
    private static final class Offering extends MapStorage {
        private final long freeBytes;
        private final AtomicInteger held = new AtomicInteger();
        private final AtomicInteger taken = new AtomicInteger();
        private final List<LockMode> modes = new ArrayList<>();

        Offering(long freeBytes) {
            this.freeBytes = freeBytes;
        }

        @Override
        public long space(String key) {
            return freeBytes;
        }

        @Override
        public Optional<Lock> lock(String key, LockMode mode) {
            modes.add(mode);
            if (!held.compareAndSet(0, 1)) {
                return Optional.empty();
            }
            taken.incrementAndGet();
            return Optional.of(held::decrementAndGet);
        }
    }

    private static void save(Storage storage) {
        try (State state = State.builder().add("w", new float[] {1, 2, 3}).build()) {
            Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
        }
    }

    @Test
    void aSaveThatDoesNotFitFailsBeforeItWrites() {
        try (Storage storage = Storage.host(new Offering(100))) {
            ResourceExhaustedException failure =
                    assertThrows(ResourceExhaustedException.class, () -> save(storage));
            assertTrue(failure.getMessage().contains("only 100 bytes are free"), failure.getMessage());
            assertTrue(storage.list("").isEmpty());
        }
    }

    /** Whole objects in parts, under conditions on versions. */
    private static final class Parts extends MapStorage {
        private final List<String> levels = new ArrayList<>();

        @Override
        public Set<Capability> capabilities() {
            return EnumSet.of(Capability.ATOMIC_COMMIT, Capability.MULTIPART, Capability.DURABLE);
        }

        @Override
        public long partBytes() {
            return 1 << 20;
        }

        @Override
        public ObjectStat stat(String key) {
            return new ObjectStat(super.stat(key).size(), 1, "\"etag of " + key + "\"");
        }

        @Override
        public List<String> listLevel(String prefix) {
            levels.add(prefix);
            return HostStorageLevels.of(list(prefix), prefix);
        }
    }

    /** Groups keys as an object store does. */
    private static final class HostStorageLevels {
        static List<String> of(List<String> keys, String prefix) {
            List<String> found = new ArrayList<>();
            for (String key : keys) {
                int slash = key.indexOf('/', prefix.length());
                String level = slash < 0 ? key : key.substring(0, slash + 1);
                if (!found.contains(level)) {
                    found.add(level);
                }
            }
            return found;
        }
    }

    @Test
    void whatAStorageOffersIsWhatItsMethodsSay() {
        Parts parts = new Parts();
        try (Storage storage = Storage.host(parts)) {
            assertEquals(
                    EnumSet.of(Capability.ATOMIC_COMMIT, Capability.MULTIPART, Capability.DURABLE), storage.capabilities());
            try (State state = State.builder().add("w", new float[] {1, 2, 3}).build();
                    Report report = Shardwright.save(state, Location.of(storage, "p"), new SaveOptions())) {
                assertTrue(report.json().contains("\"durability\":\"full\""), report.json());
            }
            assertEquals(List.of("p/"), storage.listLevel(""));
            assertTrue(parts.levels.contains(""), parts.levels.toString());
        }
        try (Storage storage = Storage.host(new MapStorage())) {
            assertEquals(EnumSet.of(Capability.ATOMIC_COMMIT), storage.capabilities());
            assertEquals(List.of(), storage.listLevel(""));
        }
    }

    @Test
    void aSaveHoldsTheLockWhileItRuns() {
        Offering offering = new Offering(Long.MAX_VALUE);
        try (Storage storage = Storage.host(offering)) {
            save(storage);
        }
        assertEquals(1, offering.taken.get());
        assertEquals(0, offering.held.get());
    }

    @Test
    void garbageStaysWhileAnotherHoldsTheLock() {
        Offering offering = new Offering(Long.MAX_VALUE);
        try (Storage storage = Storage.host(offering)) {
            save(storage);
            offering.held.set(1);
            GarbageOptions apply = new GarbageOptions().apply(true);
            try (Report report = Shardwright.collectGarbage(Location.of(storage, "p"), apply)) {
                assertTrue(report.json().contains("a save is running"), report.json());
            }
            offering.held.set(0);
            try (Report report = Shardwright.collectGarbage(Location.of(storage, "p"), apply)) {
                assertFalse(report.json().contains("a save is running"), report.json());
            }
            assertEquals(2, offering.taken.get());
            assertEquals(List.of(LockMode.SHARED, LockMode.EXCLUSIVE, LockMode.EXCLUSIVE), offering.modes);
        }
    }
}
