// SPDX-License-Identifier: Apache-2.0
// Training has the bits of one process.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class TrainingTest {
    private static final int STEPS = 20;

    static void assertSameBits(float[][] expected, float[][] found) {
        assertEquals(expected.length, found.length);
        for (int i = 0; i < expected.length; i++) {
            assertArrayEquals(bits(expected[i]), bits(found[i]), "parameter " + i);
        }
    }

    private static int[] bits(float[] values) {
        int[] made = new int[values.length];
        for (int n = 0; n < made.length; n++) {
            made[n] = Float.floatToRawIntBits(values[n]);
        }
        return made;
    }

    private static void trains(int shards, int replicas, int microBatches, Accumulation accumulation, HsdpUnitOptions options)
            throws Exception {
        trains(shards, replicas, microBatches, accumulation, options, Communicator::threads);
    }

    private static void trains(int shards, int replicas, int microBatches, Accumulation accumulation, HsdpUnitOptions options,
            Worlds.Transport transport) throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(shards, replicas, transport);
        float[][] expected = Alone.trained(STEPS, shards, replicas, microBatches, accumulation);
        List<float[][]> found = Worlds.onRanks(shards * replicas, rank -> {
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, replicas > 1, options)) {
                for (int step = 0; step < STEPS; step++) {
                    trainer.step(step, microBatches, accumulation);
                }
                return trainer.whole();
            }
        });
        for (float[][] each : found) {
            assertSameBits(expected, each);
        }
    }

    @Test
    void oneRank() throws Exception {
        trains(1, 1, 1, Accumulation.EACH_TIME, new HsdpUnitOptions());
    }

    @Test
    void twoRanksOfOneAxis() throws Exception {
        trains(2, 1, 1, Accumulation.EACH_TIME, new HsdpUnitOptions());
    }

    @Test
    void raggedUnits() throws Exception {
        trains(3, 1, 1, Accumulation.EACH_TIME, new HsdpUnitOptions().layout(UnitLayout.RAGGED));
    }

    @Test
    void unitsThatKeepTheirParametersOrPartsOfThem() throws Exception {
        trains(2, 2, 1, Accumulation.EACH_TIME, new HsdpUnitOptions().reshardAfterForward(ReshardAfterForward.KEEP));
        trains(2, 1, 1, Accumulation.EACH_TIME, new HsdpUnitOptions().reshardAfterForward(ReshardAfterForward.RESHARD));
    }

    @Test
    void microBatchesThatTravelEachTime() throws Exception {
        trains(3, 1, 2, Accumulation.EACH_TIME, new HsdpUnitOptions());
        trains(2, 2, 3, Accumulation.EACH_TIME, new HsdpUnitOptions());
    }

    @Test
    void microBatchesThatMeetTheReplicasOnce() throws Exception {
        trains(2, 2, 3, Accumulation.ONCE_OVER_REPLICAS, new HsdpUnitOptions());
        trains(3, 1, 2, Accumulation.ONCE_OVER_REPLICAS, new HsdpUnitOptions());
    }

    @Test
    void microBatchesThatTravelOnce() throws Exception {
        trains(2, 2, 3, Accumulation.ONCE, new HsdpUnitOptions());
        trains(3, 1, 2, Accumulation.ONCE, new HsdpUnitOptions());
    }

    @Test
    void everyTransport() throws Exception {
        HsdpUnitOptions options = new HsdpUnitOptions();
        trains(2, 2, 2, Accumulation.ONCE_OVER_REPLICAS, options, JavaTeam::ends);
        trains(3, 1, 1, Accumulation.EACH_TIME, options, JavaTeam::completeEnds);
        trains(3, 1, 1, Accumulation.EACH_TIME, options, LoopRunner::overCollectives);
        trains(2, 1, 1, Accumulation.EACH_TIME, options, TrainingTest::delayed);
    }

    private static List<Communicator> delayed(int size) {
        return Communicator.threads(size).stream().map(each -> {
            try (each) {
                return Communicator.delayed(each, Duration.ofNanos(1000), 1e9);
            }
        }).toList();
    }

    @Test
    void lanesBesideTheRanks() throws Exception {
        float[][] expected = Alone.trained(STEPS, 2, 2, 2, Accumulation.ONCE_OVER_REPLICAS);
        for (int lanes : new int[] {1, 3}) {
            List<HsdpMesh> meshes = Worlds.meshes(2, 2, JavaTeam::ends);
            for (float[][] found : Worlds.onRanks(4, rank -> {
                HsdpOptions options = new HsdpOptions().shardAxis(1).replicateAxis(0).lanes(lanes).prefetchDepth(2)
                        .maxInflightReduce(2).orderGuardSteps(0).timeout(Duration.ofSeconds(60));
                try (Trainer trainer = new Trainer(meshes.get(rank), rank, options, new HsdpUnitOptions(),
                        Network.firstParameters())) {
                    for (int step = 0; step < STEPS; step++) {
                        trainer.step(step, 2, Accumulation.ONCE_OVER_REPLICAS);
                    }
                    return trainer.whole();
                }
            })) {
                assertSameBits(expected, found);
            }
        }
    }

    @Test
    void digestsOfEachStepAreThoseOfOneProcess() throws Exception {
        for (int[] world : new int[][] {{2, 1}, {3, 1}, {2, 2}}) {
            List<String> expected = LoopRunner.alone(world[0], world[1], STEPS);
            for (List<String> each : LoopRunner.trained(world[0], world[1], STEPS, JavaTeam::completeEnds)) {
                assertEquals(expected, each);
            }
        }
    }
}
