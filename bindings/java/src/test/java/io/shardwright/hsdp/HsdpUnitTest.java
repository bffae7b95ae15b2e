// SPDX-License-Identifier: Apache-2.0
// What units tell and take.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.DType;
import io.shardwright.HostTensor;
import io.shardwright.Tensor;
import io.shardwright.errors.CancelledException;
import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.layout.Box;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class HsdpUnitTest {
    private static float[] ascending(int count) {
        float[] made = new float[count];
        for (int n = 0; n < count; n++) {
            made[n] = n;
        }
        return made;
    }

    private static HsdpUnit unitOf(Hsdp hsdp, HsdpUnitOptions options) {
        HsdpUnit unit = hsdp.unit("layer", options);
        unit.addParams(List.of(HsdpParam.of("w", HostTensor.of(ascending(6), 3, 2)).aliases("tied"),
                HsdpParam.zeros("b", DType.FLOAT32, 2)));
        unit.seal();
        return unit;
    }

    @Test
    void statesBoxesAndSettingsAreTold() {
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions().lanes(1).device(Device.host(true)))) {
            HsdpUnit unit = unitOf(hsdp, new HsdpUnitOptions());
            assertEquals(List.of(unit), hsdp.units());
            assertEquals(List.of(UnitState.SHARDED, GradState.NONE), List.of(unit.state(), unit.gradState()));
            assertEquals(List.of(2, "b", "layer"), List.of(unit.paramCount(), unit.paramName(1), unit.name()));
            assertEquals(new Box(new long[] {0, 0}, new long[] {3, 2}), unit.box(0));
            assertArrayEquals(new long[] {3, 2}, unit.globalShape(0));
            assertArrayEquals(new long[] {3, 2}, unit.layout(0).localShape(unit.globalShape(0), 0));
            try (Work work = unit.unshardAsync()) {
                assertTrue(work.await(Duration.ofSeconds(30)) && work.isDone());
            }
            assertEquals(UnitState.UNSHARDED, unit.state());
            assertArrayEquals(ascending(6), unit.full(0).toFloats());
            assertArrayEquals(new long[] {3, 2}, unit.full(0).shape());
            assertEquals(1, hsdp.stats(MemoryKind.ALL).unshardedUnits());
            HsdpView whole = unit.full(0);
            unit.reshard(Phase.FORWARD);
            assertThrows(FailedPreconditionException.class, whole::bytes);
            unit.await();
            assertEquals(UnitState.SHARDED, unit.state());
            assertFalse(unit.hasGrad(0));
            hsdp.setPrefetchDepth(0);
            hsdp.setMaxInflightReduce(2);
            unit.setPrefetch(Phase.BACKWARD, List.of(unit));
            unit.setPrefetch(Phase.FORWARD, List.of());
            assertEquals(32, hsdp.stats(MemoryKind.SHARD).currentBytes());
            assertTrue(unit.stats().currentBytes() >= 32);
        }
    }

    @Test
    void settingsOfUnitsAreThoseThatWereSet() {
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            HsdpUnit unit = unitOf(hsdp, new HsdpUnitOptions());
            assertTrue(unit.requiresGradientSync() && unit.requiresAllReduce() && unit.reshardAfterBackward());
            assertTrue(unit.unshardInBackward() && !unit.keepUnsharded());
            assertEquals(List.of(ReduceOp.AVERAGE, UnusedPolicy.ZERO, ReshardAfterForward.AUTO),
                    List.of(unit.reduceOp(), unit.unusedPolicy(), unit.reshardAfterForward()));
            hsdp.setRequiresGradientSync(false);
            hsdp.setRequiresAllReduce(false);
            hsdp.setReshardAfterBackward(false);
            hsdp.setUnshardInBackward(false);
            unit.setKeepUnsharded(true);
            unit.setReduceOp(ReduceOp.SUM);
            unit.setUnusedPolicy(UnusedPolicy.SKIP);
            unit.setReshardAfterForward(ReshardAfterForward.RESHARD);
            assertEquals(0, unit.divideFactor());
            unit.setDivideFactor(2);
            assertEquals(2, unit.divideFactor());
            hsdp.setPrefetchDepth(0);
            hsdp.setMaxInflightReduce(3);
            assertEquals(List.of(0, 3), List.of(hsdp.prefetchDepth(), hsdp.maxInflightReduce()));
            assertFalse(unit.requiresGradientSync() || unit.requiresAllReduce() || unit.reshardAfterBackward());
            assertTrue(!unit.unshardInBackward() && unit.keepUnsharded());
            assertEquals(List.of(ReduceOp.SUM, UnusedPolicy.SKIP, ReshardAfterForward.RESHARD),
                    List.of(unit.reduceOp(), unit.unusedPolicy(), unit.reshardAfterForward()));
            hsdp.setReshardAfterForward(ReshardAfterForward.KEEP);
            assertEquals("keep", unit.reshardAfterForward().toString());
        }
    }

    @Test
    void ranksMayKeepPartsOfGatheredParameters() throws Exception {
        List<Communicator> all = Communicator.threads(4);
        List<List<Communicator>> pairs = List.of(Communicator.threads(2), Communicator.threads(2));
        Worlds.onRanks(4, rank -> {
            HsdpMesh mesh = HsdpMesh.of(rank, new long[] {4}, new int[] {0, 1, 2, 3}, List.of("shard"));
            mesh.setCommunicator(0, all.get(rank));
            mesh.setCommunicator(0, MeshLane.SECONDARY, pairs.get(rank / 2).get(rank % 2));
            try (Hsdp hsdp = Hsdp.create(mesh, new HsdpOptions())) {
                HsdpUnit unit = unitOf(hsdp, new HsdpUnitOptions().reshardAfterForward(ReshardAfterForward.secondary(2)));
                assertEquals(ReshardAfterForward.secondary(2), unit.reshardAfterForward());
                unit.preForward();
                unit.postForward();
                assertEquals(UnitState.SECONDARY, unit.state());
                unit.preBackward();
                assertArrayEquals(ascending(6), unit.full(0).toFloats());
                return null;
            }
        });
        all.forEach(Communicator::close);
        pairs.forEach(each -> each.forEach(Communicator::close));
    }

    @Test
    void theHostOwnsMemoryOfWholeParameters() {
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            HsdpUnit unit = unitOf(hsdp, new HsdpUnitOptions().hostMemory(true));
            ByteBuffer weight = ByteBuffer.allocateDirect(24).order(ByteOrder.LITTLE_ENDIAN);
            unit.setMemory(0, List.of(weight, ByteBuffer.allocateDirect(8)));
            unit.preForward();
            assertEquals(5f, weight.getFloat(20));
            unit.postForward();
        }
    }

    @Test
    void parametersAreReadFromMemoryOfTheLibrary() {
        Tensor tensor = Tensor.zeros(DType.FLOAT32, 2, 2);
        tensor.bytes().putFloat(12, 7);
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions());
            unit.addParams(List.of(HsdpParam.of("w", HostTensor.of(tensor))));
            tensor.close();
            unit.seal();
            assertArrayEquals(new float[] {0, 0, 0, 7}, unit.local(0).toFloats());
        }
    }

    private static float[] gradientOf(Hsdp hsdp, HsdpUnit unit, float... values) {
        unit.preForward();
        unit.postForward();
        unit.preBackward();
        unit.takeGrads(new int[] {0}, List.of(HostTensor.of(values, 3, 2)));
        unit.postBackward();
        hsdp.finalizeBackward();
        return unit.grad(0).toFloats();
    }

    @Test
    void normsAndClippingAreOfAllRanks() throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(2);
        Worlds.onRanks(2, rank -> {
            try (Hsdp hsdp = Hsdp.create(meshes.get(rank), new HsdpOptions())) {
                HsdpUnit unit = unitOf(hsdp, new HsdpUnitOptions());
                hsdp.setReduceOp(ReduceOp.SUM);
                gradientOf(hsdp, unit, 0, 0, rank * 3, 0, rank * 4, 0);
                assertEquals(5, hsdp.globalNorm(2), 1e-12);
                assertEquals(4, hsdp.globalNorm(Double.POSITIVE_INFINITY));
                assertEquals(7, hsdp.globalNorm(1), 1e-12);
                hsdp.scaleGrads(0.5);
                assertEquals(2.5, hsdp.globalNorm(2), 1e-12);
                HsdpView grad = unit.grad(0);
                hsdp.zeroGrads();
                assertFalse(unit.hasGrad(0));
                assertThrows(FailedPreconditionException.class, grad::toFloats);
                return null;
            }
        });
    }

    @Test
    void frozenParametersHaveNoGradientUntilTheyThaw() {
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions());
            unit.addParams(List.of(HsdpParam.of("w", HostTensor.of(ascending(6), 3, 2)).frozen(),
                    HsdpParam.zeros("b", DType.FLOAT32, 2).replicate(), HsdpParam.zeros("out", DType.FLOAT32, 2).ignore()));
            unit.seal();
            assertEquals(2, unit.paramCount());
            unit.setFrozen(0, false);
            assertArrayEquals(ascending(6), gradientOf(hsdp, unit, ascending(6)));
        }
    }

    @Test
    void stepsStandForPhases() {
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            HsdpUnit unit = unitOf(hsdp, new HsdpUnitOptions());
            unit.unshard();
            unit.addGrads(new int[] {0}, List.of(HostTensor.of(ascending(6), 3, 2)));
            unit.addGrads(new int[] {0}, List.of(HostTensor.of(ascending(6), 3, 2)));
            assertEquals(GradState.LOCAL, unit.gradState());
            unit.reduce();
            assertEquals(List.of(UnitState.SHARDED, GradState.READY), List.of(unit.state(), unit.gradState()));
            assertArrayEquals(new float[] {0, 2, 4, 6, 8, 10}, unit.grad(0).toFloats());
            unit.unshard();
            unit.takeGrads(new int[] {0}, List.of(HostTensor.of(ascending(6), 3, 2)));
            try (Work work = unit.reduceAsync()) {
                work.await();
            }
            assertArrayEquals(new float[] {0, 3, 6, 9, 12, 15}, unit.grad(0).toFloats());
            unit.preForward(true);
            unit.postForward(true);
            assertEquals(UnitState.UNSHARDED, unit.state());
        }
    }

    @Test
    void raggedUnitsHaveBoxesAndNoLayout() throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(2);
        List<Box> boxes = Worlds.onRanks(2, rank -> {
            try (Hsdp hsdp = Hsdp.create(meshes.get(rank), new HsdpOptions())) {
                HsdpUnit unit = unitOf(hsdp, new HsdpUnitOptions().layout(UnitLayout.RAGGED));
                assertThrows(UnimplementedException.class, () -> unit.layout(0));
                return unit.box(0);
            }
        });
        assertEquals(3, boxes.get(0).sizes()[0] + boxes.get(1).sizes()[0]);
        assertEquals(boxes.get(0).sizes()[0], boxes.get(1).offsets()[0]);
    }

    @Test
    void anInterruptedGatherGoesOn() throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(2);
        Worlds.onRanks(2, rank -> {
            try (Hsdp hsdp = Hsdp.create(meshes.get(rank), new HsdpOptions())) {
                HsdpUnit unit = unitOf(hsdp, new HsdpUnitOptions());
                if (rank == 0) {
                    Thread.currentThread().interrupt();
                    assertThrows(CancelledException.class, unit::unshard);
                    assertTrue(Thread.interrupted());
                    unit.await();
                } else {
                    unit.unshard();
                }
                assertArrayEquals(ascending(6), unit.full(0).toFloats());
                return null;
            }
        });
    }
}
