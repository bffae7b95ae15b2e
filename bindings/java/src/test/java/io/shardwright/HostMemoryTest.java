// SPDX-License-Identifier: Apache-2.0
// Direct copies of heap memory: where they lie and what they hold.
package io.shardwright;

import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Uses;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

class HostMemoryTest {
    private static void check(HostMemory memory, int bytes) {
        assertEquals(bytes, memory.byteSize());
        try (Uses uses = new Uses()) {
            assertEquals(0, memory.address(uses) % HostMemory.ALIGNMENT, bytes + " bytes");
        }
    }

    @Test
    void copiesLieOnWholeCacheLines() {
        NativeLoader.load();
        for (int count = 0; count < 40; count++) {
            check(HostMemory.ofArray(new float[count]), 4 * count);
            check(HostMemory.of(ByteBuffer.allocate(count)), count);
        }
    }

    @Test
    void copiesGiveBackWhatTheyHold() {
        byte[] bytes = {1, 2, 3};
        HostMemory memory = HostMemory.ofArray(bytes);
        memory.beforeSave();
        assertEquals(3, memory.bytes().remaining());
        memory.bytes().put(1, (byte) 9);
        memory.afterLoad();
        assertArrayEquals(new byte[] {1, 9, 3}, bytes);
    }
}
