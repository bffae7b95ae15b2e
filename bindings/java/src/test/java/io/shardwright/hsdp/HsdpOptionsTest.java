// SPDX-License-Identifier: Apache-2.0
// Options of training on their way into the library.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.shardwright.DType;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Uses;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class HsdpOptionsTest {
    private static long[] numbers(HsdpOptions options) {
        try (Uses uses = new Uses()) {
            Structs.HsdpOptions struct = options.struct(uses);
            return new long[] {struct.flags, struct.shardAxis, struct.replicateAxis, struct.lanes, struct.maxInflightReduce,
                struct.prefetchDepth, struct.orderGuardSteps, struct.prefetchBytesMax, struct.timeoutNs};
        }
    }

    private static long[] numbers(HsdpUnitOptions options) {
        Structs.HsdpUnitOptions struct = options.struct();
        return new long[] {struct.flags, struct.paramDtype, struct.reduceDtype, struct.outputDtype, struct.gradDtype,
            struct.layout, struct.reshardAfterForward, struct.secondarySize, struct.unused};
    }

    @Test
    void optionsOfContextsAreThoseOfTheStruct() {
        assertArrayEquals(new long[] {0, 0, -1, 0, 1, 1, 3, 0, 0}, numbers(new HsdpOptions()));
        HsdpOptions options = new HsdpOptions().unordered(true).shardAxis(1).replicateAxis(0).lanes(3).maxInflightReduce(4)
                .prefetchDepth(5).orderGuardSteps(6).prefetchBytesMax(7).timeout(Duration.ofNanos(8));
        assertArrayEquals(new long[] {1, 1, 0, 3, 4, 5, 6, 7, 8}, numbers(options));
        options.prefetchDepth(0).orderGuardSteps(0).timeout(Duration.ofSeconds(-1));
        assertArrayEquals(new long[] {1, 1, 0, 3, 4, -1, -1, 7, -1}, numbers(options));
    }

    @Test
    void optionsOfUnitsAreThoseOfTheStruct() {
        assertArrayEquals(new long[9], numbers(new HsdpUnitOptions()));
        HsdpUnitOptions options = new HsdpUnitOptions().offload(true).paramDtype(DType.BFLOAT16).reduceDtype(DType.FLOAT32)
                .outputDtype(DType.FLOAT16).gradDtype(DType.FLOAT64).layout(UnitLayout.RAGGED)
                .reshardAfterForward(ReshardAfterForward.secondary(2)).unused(UnusedPolicy.SKIP);
        assertArrayEquals(new long[] {1, DType.BFLOAT16.number(), DType.FLOAT32.number(), DType.FLOAT16.number(),
            DType.FLOAT64.number(), 1, 3, 2, 1}, numbers(options));
        assertEquals(3, numbers(options.hostMemory(true))[0]);
        assertEquals(2, numbers(options.reshardAfterForward(ReshardAfterForward.KEEP).offload(false))[6]);
    }

    @Test
    void numbersBelowZeroAreRefusedWithTheOption() {
        for (String option : List.of("prefetchDepth", "orderGuardSteps", "prefetchBytesMax")) {
            InvalidArgumentException thrown = assertThrows(InvalidArgumentException.class, () -> {
                HsdpOptions options = new HsdpOptions();
                switch (option) {
                    case "prefetchDepth" -> options.prefetchDepth(-1);
                    case "orderGuardSteps" -> options.orderGuardSteps(-1);
                    default -> options.prefetchBytesMax(-1);
                }
            });
            assertEquals(option, thrown.details().get("parameter"));
        }
    }

    @Test
    void policiesAreValues() {
        assertEquals(ReshardAfterForward.secondary(2), ReshardAfterForward.of(3, 2));
        assertEquals(ReshardAfterForward.KEEP, ReshardAfterForward.of(2, 0));
        assertEquals(ReshardAfterForward.secondary(2).hashCode(), ReshardAfterForward.of(3, 2).hashCode());
        assertEquals(List.of("auto", "reshard", "keep", "secondary(2)"), List.of(ReshardAfterForward.AUTO.toString(),
                ReshardAfterForward.RESHARD.toString(), ReshardAfterForward.KEEP.toString(),
                ReshardAfterForward.secondary(2).toString()));
        assertEquals("HsdpParam(w, float32, [3, 2])", HsdpParam.zeros("w", DType.FLOAT32, 3, 2).toString());
    }
}
