// SPDX-License-Identifier: Apache-2.0
// Failures of ranks that train, and what is refused.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.DType;
import io.shardwright.HostTensor;
import io.shardwright.errors.AbortedException;
import io.shardwright.errors.CancelledException;
import io.shardwright.errors.DeadlineExceededException;
import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

@Timeout(60)
class HsdpFailuresTest {
    /** What each rank failed with. */
    private static List<Throwable> failures(int count, Worlds.Body<?> body) throws Exception {
        return Worlds.onRanks(count, rank -> assertThrows(RuntimeException.class, () -> body.run(rank)));
    }

    private static void assertSays(Throwable failure, String... parts) {
        for (String part : parts) {
            assertTrue(failure.getMessage().contains(part), failure.getMessage());
        }
    }

    private static HsdpUnit sealed(Hsdp hsdp, String name, long... shape) {
        HsdpUnit unit = hsdp.unit(name, new HsdpUnitOptions());
        unit.addParams(List.of(HsdpParam.zeros(name + ".w", DType.FLOAT32, shape)));
        unit.seal();
        return unit;
    }

    @Test
    void ranksThatRunUnitsInAnotherOrderAreToldTheFirst() throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(2);
        for (Throwable each : failures(2, rank -> {
            try (Hsdp hsdp = Hsdp.create(meshes.get(rank), new HsdpOptions().prefetchDepth(0))) {
                List<HsdpUnit> units = List.of(sealed(hsdp, "first", 4), sealed(hsdp, "second", 4));
                units.get(rank).preForward();
                units.get(rank).postForward();
                units.get(1 - rank).preForward();
                units.get(1 - rank).postForward();
                hsdp.finalizeBackward();
                return null;
            }
        })) {
            assertTrue(each instanceof AbortedException, each.toString());
            assertSays(each, "unit");
        }
    }

    @Test
    void ranksThatLayAUnitOutDifferentlyAreToldAtSeal() throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(2);
        for (Throwable each : failures(2, rank -> {
            try (Hsdp hsdp = Hsdp.create(meshes.get(rank), new HsdpOptions())) {
                return sealed(hsdp, "layer", 4 + rank);
            }
        })) {
            assertTrue(each instanceof InvalidArgumentException, each.toString());
            assertSays(each, "layer", "rank");
        }
    }

    /** Fails when its rank gathers for the second time. */
    private static final class Failing implements HostCommunicator {
        private final HostCommunicator inner;
        private final RuntimeException failure;
        private int gathers;

        Failing(HostCommunicator inner, RuntimeException failure) {
            this.inner = inner;
            this.failure = failure;
        }

        @Override
        public int rank() {
            return inner.rank();
        }

        @Override
        public int size() {
            return inner.size();
        }

        @Override
        public HostWork allGather(CommunicatorCall call, ByteBuffer data, ByteBuffer gathered) throws IOException {
            if (failure != null && ++gathers == 2) {
                throw failure;
            }
            return inner.allGather(call, data, gathered);
        }

        @Override
        public HostWork allToAll(CommunicatorCall call, ByteBuffer parts, ByteBuffer received) throws IOException {
            return inner.allToAll(call, parts, received);
        }

        @Override
        public void abort(StatusCode code, String message) {
            inner.abort(code, message);
        }
    }

    private static List<HsdpMesh> failingMeshes(RuntimeException failure) {
        return Worlds.meshes(2, 1, size -> {
            JavaTeam team = new JavaTeam(size);
            List<Communicator> ends = new ArrayList<>();
            for (int rank = 0; rank < size; rank++) {
                ends.add(Communicator.host(new Failing(team.new End(rank), rank == 1 ? failure : null)));
            }
            return ends;
        });
    }

    @Test
    void anExceptionOfACallbackIsTheCauseOnAllRanks() throws Exception {
        RuntimeException failure = new UncheckedIOException(new IOException("the cable was cut"));
        List<HsdpMesh> meshes = failingMeshes(failure);
        List<Throwable> found = failures(2, rank -> {
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, false, new HsdpUnitOptions())) {
                trainer.step(0, 1, Accumulation.EACH_TIME);
                return null;
            }
        });
        assertSame(failure, found.get(1));
        assertSays(found.get(0), "the cable was cut");
    }

    @Test
    void aStatusThatACallbackChoosesIsThatOfTheCall() throws Exception {
        List<HsdpMesh> meshes = failingMeshes(ShardwrightException.of(StatusCode.UNAVAILABLE, "the switch restarts"));
        for (Throwable each : failures(2, rank -> {
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, false, new HsdpUnitOptions())) {
                trainer.step(0, 1, Accumulation.EACH_TIME);
                return null;
            }
        })) {
            assertEquals(StatusCode.UNAVAILABLE, ((ShardwrightException) each).code());
            assertSays(each, "the switch restarts");
        }
    }

    @Test
    void aRankThatFailsTellsTheOthersAndAllGoOn() throws Exception {
        List<Communicator> ends = Communicator.threads(2);
        List<Communicator> fresh = Communicator.threads(2);
        List<float[][]> found = Worlds.onRanks(2, rank -> {
            HsdpMesh mesh = HsdpMesh.of(rank, 2);
            mesh.setCommunicator(0, ends.get(rank));
            try (Trainer trainer = new Trainer(mesh, rank, false, new HsdpUnitOptions())) {
                if (rank == 1) {
                    ends.get(1).abort(StatusCode.ABORTED, "forward raised");
                }
                Executable step = () -> trainer.step(0, 1, Accumulation.EACH_TIME);
                assertSays(assertThrows(AbortedException.class, step), "forward raised");
                assertSays(assertThrows(FailedPreconditionException.class, trainer.hsdp::finalizeBackward), "forward raised");
                mesh.setCommunicator(0, fresh.get(rank));
                trainer.hsdp.reset();
                for (int step2 = 0; step2 < 3; step2++) {
                    trainer.step(step2, 1, Accumulation.EACH_TIME);
                }
                return trainer.whole();
            }
        });
        for (float[][] each : found) {
            TrainingTest.assertSameBits(Alone.trained(3, 2, 1, 1, Accumulation.EACH_TIME), each);
        }
        ends.forEach(Communicator::close);
        fresh.forEach(Communicator::close);
    }

    @Test
    void anInterruptOfAPhaseEndsTheContextOnAllRanks() throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(2);
        CountDownLatch started = new CountDownLatch(1);
        Thread[] threads = new Thread[2];
        for (Throwable each : failures(2, rank -> {
            threads[rank] = Thread.currentThread();
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, false, new HsdpUnitOptions())) {
                if (rank == 1) {
                    started.await();
                    threads[0].interrupt(); // rank 0 waits for this one, or is about to
                    trainer.units.get(0).preForward();
                    trainer.units.get(1).preForward();
                    return null;
                }
                started.countDown();
                try {
                    trainer.step(0, 1, Accumulation.EACH_TIME);
                } finally {
                    assertTrue(Thread.interrupted(), "the interrupt was lost");
                }
                return null;
            }
        })) {
            assertTrue(each instanceof CancelledException, each.toString());
            assertSays(each, "the thread of a rank was interrupted");
        }
    }

    @Test
    void aRankThatDoesNotComeIsADeadline() {
        List<Communicator> ends = Communicator.threads(2);
        HsdpMesh mesh = HsdpMesh.of(0, 2);
        mesh.setCommunicator(0, ends.get(0));
        try (Hsdp hsdp = Hsdp.create(mesh, new HsdpOptions().timeout(Duration.ofMillis(20)))) {
            assertThrows(DeadlineExceededException.class, () -> sealed(hsdp, "layer", 4));
        }
        ends.forEach(Communicator::close);
    }

    @Test
    void sumsInAnOrderOfTheirOwnMustBeWanted() {
        HostCommunicator unordered = new JavaTeam(2).new CompleteEnd(0) {
            @Override
            public Set<CommunicatorCapability> capabilities() {
                return Set.of();
            }
        };
        HsdpMesh mesh = HsdpMesh.of(0, 2);
        try (Communicator end = Communicator.host(unordered)) {
            mesh.setCommunicator(0, end);
        }
        HsdpOptions replicas = new HsdpOptions().shardAxis(-1).replicateAxis(0);
        refused("order of its own", FailedPreconditionException.class, () -> Hsdp.create(mesh, replicas));
        Hsdp.create(mesh, replicas.unordered(true)).close();
    }

    private static void refused(String said, Class<? extends ShardwrightException> type, Executable call) {
        assertSays(assertThrows(type, call), said);
    }

    @Test
    void whatIsWrongIsNamed() {
        Class<InvalidArgumentException> invalid = InvalidArgumentException.class;
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            HsdpUnit open = hsdp.unit("open", new HsdpUnitOptions());
            HostTensor strided = HostTensor.of(new float[6], 3, 2).strides(1, 3);
            refused("dense", invalid, () -> open.addParams(List.of(HsdpParam.of("w", strided))));
            HostTensor part = HostTensor.of(new float[6], 3, 2).partOf(new long[] {6, 2}, 0, 0);
            refused("entry w", invalid, () -> open.addParams(List.of(HsdpParam.of("w", part))));
            refused("dimension", invalid, () -> {
                open.addParams(List.of(HsdpParam.zeros("w", DType.FLOAT32, 3, 2).shardDim(2)));
                open.seal();
            });
            HsdpUnit unit = sealed(hsdp, "layer", 3, 2);
            refused("1 gradients for 2", invalid, () -> unit.addGrads(new int[] {0, 1}, List.of(HostTensor.of(new float[6], 3, 2))));
            refused("read-only, or not direct", invalid, () -> unit.setMemory(0, List.of(ByteBuffer.allocate(24))));
            refused("secondary_size is 3", invalid,
                    () -> hsdp.unit("x", new HsdpUnitOptions().reshardAfterForward(ReshardAfterForward.secondary(3))));
            refused("secondary size of 0", invalid, () -> ReshardAfterForward.secondary(0));
            refused("prefetchDepth", invalid, () -> new HsdpOptions().prefetchDepth(-1));
        }
        refused("rank", invalid, () -> HsdpMesh.of(2, 2));
        refused("2 names", invalid, () -> HsdpMesh.of(0, new long[] {1}, new int[0], List.of("a", "b")));
        try (Communicator of3 = Communicator.fake(0, 3)) {
            refused("rank 0 of 3", invalid, () -> HsdpMesh.of(0, 2).setCommunicator(0, of3));
        }
    }

    @Test
    void callsThatComeTooEarlyAreRefused() {
        Class<FailedPreconditionException> early = FailedPreconditionException.class;
        refused("no communicator", early, () -> Hsdp.create(HsdpMesh.of(0, 2), new HsdpOptions()));
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            HsdpUnit unit = sealed(hsdp, "layer", 3, 2);
            refused("is sealed", early, () -> unit.addParams(List.of(HsdpParam.zeros("x", DType.FLOAT32, 2))));
            refused("SHARDED", early, () -> unit.addGrads(new int[] {0}, List.of(HostTensor.of(new float[6], 3, 2))));
            refused("UNSHARDED", early, () -> unit.full(0));
            refused("has no gradient", early, () -> unit.grad(0));
            refused("SHW_HSDP_UNIT_HOST_MEMORY", early, () -> unit.setMemory(0, List.of(ByteBuffer.allocateDirect(24))));
            unit.unshard();
            HsdpUnit half = hsdp.unit("half", new HsdpUnitOptions());
            half.addParams(List.of(HsdpParam.zeros("h", DType.BFLOAT16, 2)));
            half.seal();
            refused("elements of bfloat16", early, () -> half.local(0).toFloats());
            HsdpView whole = unit.full(0);
            assertThrows(ShardwrightException.class, () -> whole.slice(20, 8));
        }
    }

    @Test
    void closedObjectsSaySo() {
        Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions());
        HsdpUnit unit = sealed(hsdp, "layer", 3, 2);
        assertEquals("HsdpUnit(layer, SHARDED)", unit.toString());
        HsdpView local = unit.local(0);
        ByteBuffer memory = local.bytes();
        hsdp.close();
        hsdp.close();
        assertEquals(0, memory.getFloat(20));
        assertThrows(IllegalStateException.class, unit::state);
        assertThrows(IllegalStateException.class, local::bytes);
        assertThrows(IllegalStateException.class, hsdp::finalizeBackward);
        assertEquals("Hsdp(closed)", hsdp.toString());
    }
}
