// SPDX-License-Identifier: Apache-2.0
// Described jobs, and what their saves and loads would cost.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class JobDescriptionTest {
    private static final String HALVES = "{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {\"dp\": 2}}}, "
            + "\"tensors\": [{\"name\": \"w\", \"dtype\": \"float32\", \"shape\": [8, 4], "
            + "\"placements\": {\"dp\": \"Shard(0)\"}}]}";

    @Test
    void savesAndLoadsAreEstimated() {
        JobDescription job = JobDescription.of(HALVES);
        assertEquals(2, job.rankCount());
        String estimate = job.estimateSave(new EstimateOptions().owner(Owner.LOWEST_RANK).rankBytesPerSecond(1000));
        assertTrue(estimate.contains("\"writes\":[1,1]"), estimate);
        assertTrue(estimate.contains("\"limit\":\"rank\""), estimate);
        assertTrue(job.estimateSave(new EstimateOptions().chunks(true)).contains("\"chunk_list\""));
        JobDescription target = JobDescription.of("{\"schema\": 1, \"ranks\": 4, \"rules\": [{\"match\": \"*\"}]}");
        String load = job.estimateLoad(job.layOut(target), new EstimateOptions());
        assertTrue(load.contains("\"reads\":[2,2,2,2]"), load);
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
