// SPDX-License-Identifier: Apache-2.0
// Parts of tensors and of views, whose ranges are checked alike.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.DType;
import io.shardwright.Tensor;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.internal.Slices;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class SlicesTest {
    private static final int BYTES = 24;

    private interface Slice {
        ByteBuffer of(long offset, int size);
    }

    private static void check(String noun, Slice slice) {
        for (long[] inside : new long[][] {{0, BYTES}, {8, 16}, {BYTES, 0}, {0, 0}}) {
            ByteBuffer found = slice.of(inside[0], (int) inside[1]);
            assertEquals(inside[1], found.remaining());
            assertEquals(ByteOrder.LITTLE_ENDIAN, found.order());
        }
        for (long[] outside : new long[][] {{-1, 1}, {0, -1}, {0, BYTES + 1}, {1, BYTES}, {BYTES + 1, 0},
            {Long.MAX_VALUE, 1}, {Long.MAX_VALUE, Integer.MAX_VALUE}, {Long.MIN_VALUE, Integer.MAX_VALUE}, {0, Integer.MIN_VALUE}}) {
            String said = assertThrows(OutOfRangeException.class, () -> slice.of(outside[0], (int) outside[1])).getMessage();
            assertTrue(said.contains("of a " + noun + " of " + BYTES + " bytes"), said);
        }
    }

    @Test
    void rangesOfTensorsAndViewsAreCheckedAlike() {
        try (Tensor tensor = Tensor.zeros(DType.FLOAT32, 3, 2); Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            check("tensor", tensor::slice);
            HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions());
            unit.addParams(List.of(HsdpParam.zeros("w", DType.FLOAT32, 3, 2)));
            unit.seal();
            check("view", unit.local(0)::slice);
        }
    }

    @Test
    void whatIsAboveTwoGibibytesNeedsSlices() {
        assertEquals(Integer.MAX_VALUE, Slices.whole(Integer.MAX_VALUE, "slices()"));
        String said = assertThrows(OutOfRangeException.class, () -> Slices.whole(1L << 31, "slices()")).getMessage();
        assertTrue(said.contains("use slices()"), said);
    }
}
