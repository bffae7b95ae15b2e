// SPDX-License-Identifier: Apache-2.0
// Checkpoints of what is trained.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.shardwright.HostTensor;
import io.shardwright.LoadOptions;
import io.shardwright.SaveOptions;
import io.shardwright.Shardwright;
import io.shardwright.State;
import io.shardwright.collective.Collective;
import io.shardwright.errors.FailedPreconditionException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class HsdpCheckpointTest {
    private static final int STEPS = 3;

    @TempDir
    Path folder;

    /** Parameters of the units, and momenta that are cut as they are. */
    private static State stateOf(Trainer trainer, int rank) {
        State.Builder builder = State.builder();
        for (int each = 0; each < trainer.momenta.size(); each++) {
            HsdpUnit unit = trainer.units.get(each / 2);
            int index = each % 2;
            builder.add("momentum." + unit.paramName(index), HostTensor.of(trainer.momenta.get(each), unit.box(index).sizes())
                    .partOf(unit.globalShape(index), unit.layout(index), rank));
        }
        State state = builder.build();
        trainer.hsdp.addToState(state, "model.", ShardContent.PARAMS);
        return state;
    }

    private static float[][] zeros() {
        float[][] made = Network.firstParameters();
        for (float[] each : made) {
            java.util.Arrays.fill(each, 0);
        }
        return made;
    }

    private void save(int count) throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(count);
        List<Collective> ends = Collective.threads(count);
        Worlds.onRanks(count, rank -> {
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, false, new HsdpUnitOptions())) {
                for (int step = 0; step < STEPS; step++) {
                    trainer.step(step, 1, Accumulation.EACH_TIME);
                }
                try (State state = stateOf(trainer, rank)) {
                    assertEquals(4 * Network.LAYERS, state.tensorNames().size());
                    assertEquals("model.layers.2.bias", state.tensorNames().get(4 * Network.LAYERS - 1));
                    Shardwright.save(state, folder.resolve("c"), new SaveOptions().collective(ends.get(rank)));
                }
                return null;
            }
        });
        ends.forEach(Collective::close);
    }

    private void loads(int count, float[][] expected) throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(count);
        List<Collective> ends = Collective.threads(count);
        List<float[][]> found = Worlds.onRanks(count, rank -> {
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, new HsdpOptions(), new HsdpUnitOptions(), zeros())) {
                try (State state = stateOf(trainer, rank)) {
                    Shardwright.loadInto(state, folder.resolve("c"), new LoadOptions().collective(ends.get(rank)));
                }
                trainer.hsdp.stepEvent();
                return trainer.whole();
            }
        });
        ends.forEach(Collective::close);
        for (float[][] each : found) {
            TrainingTest.assertSameBits(expected, each);
        }
    }

    @Test
    void whatTwoRanksSaveOneAndThreeLoad() throws Exception {
        save(2);
        float[][] expected = Alone.trained(STEPS, 2, 1, 1, Accumulation.EACH_TIME);
        loads(1, expected);
        loads(3, expected);
    }

    @Test
    void aStateKeepsTheMemoryOfAContextThatIsClosed() {
        State state = State.builder().build();
        try (Trainer trainer = new Trainer(HsdpMesh.of(0, 1), 0, false, new HsdpUnitOptions())) {
            trainer.hsdp.addToState(state, "", ShardContent.PARAMS);
        }
        Shardwright.save(state, folder.resolve("c"), new SaveOptions());
        state.close();
        try (State part = State.builder().add("layers.2.bias", new float[3]).build()) {
            Shardwright.loadInto(part, folder.resolve("c"), new LoadOptions());
            assertEquals(Network.firstBias(2)[1], part.tensor("layers.2.bias").bytes().getFloat(4));
        }
    }

    @Test
    void gradientsThatWaitForTheReplicasAreNotSaved() throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(1, 2, Communicator::threads);
        Worlds.onRanks(2, rank -> {
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, true, new HsdpUnitOptions());
                    State state = State.builder().build()) {
                Accumulation.ONCE_OVER_REPLICAS.set(trainer.hsdp, false);
                trainer.forwardAndBackward(0, 0);
                trainer.hsdp.finalizeBackward();
                assertThrows(FailedPreconditionException.class,
                        () -> trainer.hsdp.addToState(state, "", ShardContent.GRADS));
                Accumulation.ONCE_OVER_REPLICAS.set(trainer.hsdp, true);
                trainer.forwardAndBackward(0, 1);
                trainer.hsdp.finalizeBackward();
                trainer.hsdp.addToState(state, "grads.", ShardContent.GRADS);
                assertEquals(2 * Network.LAYERS, state.tensorNames().size());
                return null;
            }
        });
    }
}
