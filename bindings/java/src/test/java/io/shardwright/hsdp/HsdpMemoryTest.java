// SPDX-License-Identifier: Apache-2.0
// Memory that is foretold and measured.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.DType;
import io.shardwright.errors.InvalidArgumentException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class HsdpMemoryTest {
    private static final String[][] ALIASES = {{"tied"}, {}, {"tied.again", "again"}};

    private static Map<MemoryKind, Long> peaks(Function<MemoryKind, HsdpMemory> said) {
        Map<MemoryKind, Long> found = new EnumMap<>(MemoryKind.class);
        for (MemoryKind kind : MemoryKind.values()) {
            found.put(kind, said.apply(kind).peakBytes());
        }
        return found;
    }

    private static List<EstimatedUnit> units(HsdpUnitOptions options) {
        List<EstimatedUnit> made = new ArrayList<>();
        for (int layer = 0; layer < Network.LAYERS; layer++) {
            EstimatedUnit unit = EstimatedUnit.of(List.of(
                    HsdpParam.zeros(layer + ".weight", DType.FLOAT32, Network.outputs(layer), Network.inputs(layer)),
                    HsdpParam.zeros(layer + ".bias", DType.FLOAT32, Network.outputs(layer)).aliases(ALIASES[layer])), options);
            made.add(Trainer.takes(layer) ? unit : unit.addsGrads());
        }
        return made;
    }

    private static void foretells(int shards, int replicas, Supplier<HsdpUnitOptions> options) throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(shards, replicas, Communicator::threads);
        EstimatedWorld world = new EstimatedWorld(shards, replicas, true);
        Map<MemoryKind, Long> foretold =
                peaks(kind -> Hsdp.estimate(units(options.get()), world, new HsdpOptions(), kind));
        assertTrue(foretold.get(MemoryKind.ALL) > 0);
        List<Map<MemoryKind, Long>> measured = Worlds.onRanks(shards * replicas, rank -> {
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, replicas > 1, options.get())) {
                for (int step = 0; step < 3; step++) {
                    trainer.iteration(step, 1, Accumulation.EACH_TIME);
                    trainer.hsdp.stepEvent();
                    trainer.hsdp.zeroGrads();
                }
                return peaks(trainer.hsdp::stats);
            }
        });
        for (Map<MemoryKind, Long> each : measured) {
            assertEquals(foretold, each);
        }
    }

    @Test
    void theMemoryOfAnIterationIsForetold() throws Exception {
        foretells(1, 1, HsdpUnitOptions::new);
        foretells(2, 1, HsdpUnitOptions::new);
        foretells(3, 1, () -> new HsdpUnitOptions().reshardAfterForward(ReshardAfterForward.KEEP));
        foretells(2, 2, () -> new HsdpUnitOptions().reduceDtype(DType.FLOAT64));
        foretells(3, 1, () -> new HsdpUnitOptions().layout(UnitLayout.RAGGED));
    }

    @Test
    void optionsOfUnitsReachTheEstimate() {
        EstimatedWorld two = new EstimatedWorld(2);
        long plain = Hsdp.estimate(units(new HsdpUnitOptions()), two, new HsdpOptions(), MemoryKind.PARAMS).peakBytes();
        HsdpUnitOptions halves = new HsdpUnitOptions().paramDtype(DType.BFLOAT16).outputDtype(DType.FLOAT32);
        assertEquals(plain / 2, Hsdp.estimate(units(halves), two, new HsdpOptions(), MemoryKind.PARAMS).peakBytes());
        HsdpUnitOptions host = new HsdpUnitOptions().hostMemory(true);
        assertEquals(0, Hsdp.estimate(units(host), two, new HsdpOptions(), MemoryKind.PARAMS).peakBytes());
        assertTrue(ahead(2) > ahead(0), "units gathered ahead");
    }

    private static long ahead(int depth) {
        return Hsdp.estimate(units(new HsdpUnitOptions()), new EstimatedWorld(2), new HsdpOptions().prefetchDepth(depth),
                MemoryKind.GATHERED).peakBytes();
    }

    @Test
    void estimatesRefuseWhatUnitsRefuse() {
        List<EstimatedUnit> uneven = List.of(EstimatedUnit.of(
                List.of(HsdpParam.zeros("w", DType.FLOAT32, 3, 2).shardDim(1)), new HsdpUnitOptions()));
        String said = assertThrows(InvalidArgumentException.class,
                () -> Hsdp.estimate(uneven, new EstimatedWorld(4), new HsdpOptions(), MemoryKind.ALL)).getMessage();
        assertTrue(said.contains("w"), said);
        assertThrows(InvalidArgumentException.class,
                () -> Hsdp.estimate(uneven, new EstimatedWorld(0), new HsdpOptions(), MemoryKind.ALL));
        List<EstimatedUnit> secondRoot = List.of(uneven.get(0), uneven.get(0).root());
        assertThrows(InvalidArgumentException.class,
                () -> Hsdp.estimate(secondRoot, new EstimatedWorld(2), new HsdpOptions(), MemoryKind.ALL));
    }
}
