// SPDX-License-Identifier: Apache-2.0
// Described jobs, and what their saves and loads would cost.
package io.shardwright;

import java.util.stream.Stream;
import java.util.stream.Collectors;
import java.util.List;
import java.util.Arrays;
import java.time.Duration;
import io.shardwright.layout.Box;
import io.shardwright.estimate.Estimate;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.estimate.EstimateOptions;
import io.shardwright.estimate.JobDescription;
import io.shardwright.estimate.NodeExchange;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class JobDescriptionTest {
    private static final String HALVES = "{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {\"dp\": 2}}}, "
            + "\"tensors\": [{\"name\": \"w\", \"dtype\": \"float32\", \"shape\": [8, 4], "
            + "\"placements\": {\"dp\": \"Shard(0)\"}}]}";

    private static String text(Box box) {
        return Arrays.toString(box.offsets()) + " " + Arrays.toString(box.sizes());
    }

    @Test
    void savesAndLoadsAreEstimated() {
        JobDescription job = JobDescription.of(HALVES);
        assertEquals(2, job.rankCount());
        Estimate estimate = job.estimateSave(new EstimateOptions().owner(Owner.LOWEST_RANK).rankBytesPerSecond(1000));
        assertEquals(List.of(1L, 1L), List.of(estimate.perRank().operations(0), estimate.perRank().operations(1)));
        assertTrue(estimate.time().isLimitedByRank());
        assertEquals(Duration.ofMillis(64), estimate.time().span()); // half of 128 bytes at 1000 per second
        assertEquals(new Estimate.Stored(1, 0, 2, 2, 128), estimate.stored());
        assertEquals(new Estimate.Spread(64, 64, 64, 0, 128), estimate.bytes());
        assertTrue(estimate.planBytes() > 0 && estimate.peakBytes().max() >= 128 && !estimate.isLoad());
        assertTrue(estimate.json().contains("\"schema\":1"), estimate.json());
        Estimate.TensorGroup group = estimate.tensors().get(0);
        assertEquals(List.of(8L, 4L), group.shape());
        assertEquals(List.of("w", DType.FLOAT32, Kind.SHARDED), List.of(group.first(), group.dtype(), group.kind()));
        assertTrue(group.chunks().isEmpty());
        Estimate.TensorGroup listed = job.estimateSave(new EstimateOptions().chunks(true)).tensors().get(0);
        assertEquals(List.of("[4, 0] [4, 4]", "[0, 0] [4, 4]"), Stream.of(1, 0).map(i -> text(listed.chunks().get(i).box()))
                .collect(Collectors.toList()));
        assertEquals(List.of(0, 1), listed.chunks().stream().map(Estimate.Chunk::rank).collect(Collectors.toList()));
        JobDescription target = JobDescription.of("{\"schema\": 1, \"ranks\": 4, \"rules\": [{\"match\": \"*\"}]}");
        Estimate load = job.estimateLoad(job.layOut(target), new EstimateOptions());
        assertTrue(load.isLoad() && load.time() == null && load.rankCount() == 4, load.json());
        assertEquals(new Estimate.Spread(2, 2, 2, 0, 8), load.operations());
        assertEquals(0, estimate.sharedBytes().total() + estimate.perRank().sentBytes(0));
        // Half of 128 bytes is read by a rank of each machine; the other three get it from there.
        EstimateOptions pairs = new EstimateOptions().ranksPerNode(2).exchange(NodeExchange.ALWAYS);
        Estimate exchanged = job.estimateLoad(job.layOut(target), pairs);
        assertEquals(List.of(128L, 128L, 128L, 256L), List.of(exchanged.bytes().total(), exchanged.receivedBytes().total(),
                exchanged.sentBytes().total(), exchanged.sharedBytes().total()));
        assertEquals(List.of(32L, 32L, 64L), List.of(exchanged.perRank().receivedBytes(3), exchanged.perRank().sentBytes(3),
                exchanged.perRank().sharedBytes(3)));
        ShardwrightException e = assertThrows(InvalidArgumentException.class,
                () -> job.estimateLoad(null, new EstimateOptions().exchange(NodeExchange.of("always"))));
        assertEquals("exchange", e.details().get("parameter"));
        assertEquals(4, job.loadPlans(job.layOut(target), new EstimateOptions()).size());
        assertEquals(0, Plan.findings(job.loadPlans(null, new EstimateOptions()).get(1)).size());
        assertEquals(job.json(), JobDescription.of(job.json()).json());
        assertEquals(0, Plan.findings(job.savePlan(new EstimateOptions())).size());
    }

    @Test
    void whatIsWrongSaysWhere() {
        ShardwrightException e = assertThrows(InvalidArgumentException.class, () -> JobDescription.of("{\"schema\": 1,\n \"mesh\": 1}"));
        assertTrue(e.getMessage().contains("line 2, column 2"), e.getMessage());
    }
}
