// SPDX-License-Identifier: Apache-2.0
// Threads of the library that call into the virtual machine.
package io.shardwright;

import io.shardwright.storage.Storage;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

import static org.junit.jupiter.api.Assertions.assertTrue;


@Timeout(60)
class ThreadCountTest {
    private static int threads() {
        return ManagementFactory.getThreadMXBean().getThreadCount();
    }

    /** Large enough for several reads, which go to worker threads. */
    private static State tensors() {
        State.Builder builder = State.builder();
        for (int i = 0; i < 8; i++) {
            builder.add("w" + i, new float[1 << 18]);
        }
        return builder.build();
    }

    @Test
    void threadsOfPastLoadsAreGone() {
        try (Storage storage = Storage.host(new MapStorage()); State state = tensors()) {
            Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
            LoadOptions options = new LoadOptions().threads(3);
            Shardwright.loadInto(state, Location.of(storage, "p"), options);
            int before = threads();
            for (int i = 0; i < 20; i++) {
                Shardwright.loadInto(state, Location.of(storage, "p"), options);
            }
            assertTrue(threads() <= before + 3, before + " threads before, " + threads() + " after 20 loads");
        }
    }
}
