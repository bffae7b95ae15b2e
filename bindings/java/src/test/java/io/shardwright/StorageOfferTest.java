// SPDX-License-Identifier: Apache-2.0
// Storages of the host that offer what is optional: free space and locks.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

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
            Shardwright.save(state, "p", new SaveOptions().storage(storage));
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
            GarbageOptions apply = new GarbageOptions().storage(storage).apply(true);
            try (Report report = Shardwright.collectGarbage("p", apply)) {
                assertTrue(report.json().contains("a save is running"), report.json());
            }
            offering.held.set(0);
            try (Report report = Shardwright.collectGarbage("p", apply)) {
                assertFalse(report.json().contains("a save is running"), report.json());
            }
            assertEquals(2, offering.taken.get());
            assertEquals(List.of(LockMode.SHARED, LockMode.EXCLUSIVE, LockMode.EXCLUSIVE), offering.modes);
        }
    }
}
