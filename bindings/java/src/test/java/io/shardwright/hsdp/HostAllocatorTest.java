// SPDX-License-Identifier: Apache-2.0
// Whole parameters in memory of the host.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.HostTensor;
import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.InvalidArgumentException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class HostAllocatorTest {
    private static final float[] WEIGHT = {0, 1, 2, 3, 4, 5};

    /** Lends one piece over and over. */
    private static class Pool implements HostAllocator {
        final List<String> seen = new ArrayList<>();
        ByteBuffer piece = ByteBuffer.allocateDirect(24);

        @Override
        public ByteBuffer allocate(int param, int bytes) throws IOException {
            seen.add("allocate " + param + " " + bytes);
            return piece;
        }

        @Override
        public void deallocate(int param, ByteBuffer memory) {
            seen.add("deallocate " + param);
            assertSame(piece, memory);
        }
    }

    private static HsdpUnit unitOf(Hsdp hsdp, HostAllocator allocator) {
        HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions());
        unit.addParams(List.of(HsdpParam.of("w", HostTensor.of(WEIGHT, 3, 2))));
        unit.setAllocator(allocator);
        unit.seal();
        return unit;
    }

    private static Hsdp alone() {
        return Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions());
    }

    @Test
    void parametersAreGatheredIntoMemoryOfTheHost() {
        Pool pool = new Pool();
        try (Hsdp hsdp = alone()) {
            HsdpUnit unit = unitOf(hsdp, pool);
            for (int step = 0; step < 2; step++) {
                pool.seen.clear();
                unit.unshard();
                assertEquals(List.of("allocate 0 24"), pool.seen);
                assertArrayEquals(WEIGHT, unit.full(0).toFloats());
                unit.full(0).bytes().putFloat(20, 7 + step);
                assertEquals(7 + step, pool.piece.order(ByteOrder.LITTLE_ENDIAN).getFloat(20)); // the same memory
                unit.reshard(Phase.BACKWARD);
                assertEquals(List.of("allocate 0 24", "deallocate 0"), pool.seen);
            }
        }
    }

    @Test
    void whatIsLentComesBackWithTheContext() {
        Pool pool = new Pool();
        try (Hsdp hsdp = alone(); HsdpUnit unit = unitOf(hsdp, pool)) {
            unit.unshard();
        }
        assertEquals(List.of("allocate 0 24", "deallocate 0"), pool.seen);
    }

    @Test
    void memoryThatDoesNotFitIsRefused() {
        ByteBuffer room = ByteBuffer.allocateDirect(64);
        List<ByteBuffer> wrong = new ArrayList<>(List.of(ByteBuffer.allocate(24), ByteBuffer.allocateDirect(20),
                ByteBuffer.allocateDirect(32), ByteBuffer.allocateDirect(24).asReadOnlyBuffer(), room.slice(4, 24)));
        for (ByteBuffer each : wrong) {
            Pool pool = new Pool();
            pool.piece = each;
            try (Hsdp hsdp = alone()) {
                HsdpUnit unit = unitOf(hsdp, pool);
                String said = assertThrows(InvalidArgumentException.class, unit::unshard).getMessage();
                assertTrue(said.contains("memory of the host for parameter 0"), said);
                assertEquals(List.of("allocate 0 24", "deallocate 0"), pool.seen);
            }
        }
        Pool none = new Pool();
        none.piece = null;
        try (Hsdp hsdp = alone()) {
            assertThrows(InvalidArgumentException.class, unitOf(hsdp, none)::unshard);
        }
    }

    @Test
    void exceptionsOfTheHostComeOutOfTheCall() {
        IOException cause = new IOException("the pool is empty");
        Pool empty = new Pool() {
            @Override
            public ByteBuffer allocate(int param, int bytes) throws IOException {
                throw cause;
            }
        };
        try (Hsdp hsdp = alone()) {
            assertSame(cause, assertThrows(UncheckedIOException.class, unitOf(hsdp, empty)::unshard).getCause());
        }
    }

    @Test
    void allocatorsComeBeforeTheSeal() {
        try (Hsdp hsdp = alone()) {
            HsdpUnit unit = unitOf(hsdp, new Pool());
            assertThrows(FailedPreconditionException.class, () -> unit.setAllocator(new Pool()));
            assertThrows(NullPointerException.class, () -> unit.setAllocator(null));
            HsdpUnit given = hsdp.unit("given", new HsdpUnitOptions().hostMemory(true));
            assertThrows(FailedPreconditionException.class, () -> given.setAllocator(new Pool()));
        }
    }
}
