// SPDX-License-Identifier: Apache-2.0
// Described jobs and their prices.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class WorldTest {
    private static final String HALVES = "{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {\"dp\": 2}}}, "
            + "\"tensors\": [{\"name\": \"w\", \"dtype\": \"float32\", \"shape\": [8, 4], "
            + "\"placements\": {\"dp\": \"Shard(0)\"}}]}";

    @Test
    void savesAndLoadsArePriced() {
        World world = World.of(HALVES);
        assertEquals(2, world.rankCount());
        String price = world.priceSave(new PriceOptions().owner(Owner.LOWEST_RANK).rankBytesPerSecond(1000));
        assertTrue(price.contains("\"writes\":[1,1]"), price);
        assertTrue(price.contains("\"limit\":\"rank\""), price);
        World target = World.of("{\"schema\": 1, \"ranks\": 4, \"rules\": [{\"match\": \"*\"}]}");
        String load = world.priceLoad(world.layOut(target), new PriceOptions());
        assertTrue(load.contains("\"reads\":[2,2,2,2]"), load);
        assertEquals(4, world.loadPlans(world.layOut(target), new PriceOptions()).size());
        assertEquals(0, Plan.findings(world.loadPlans(null, new PriceOptions()).get(1)).size());
        assertEquals(world.json(), World.of(world.json()).json());
        assertEquals(0, Plan.findings(world.savePlan(new PriceOptions())).size());
    }

    @Test
    void whatIsWrongSaysWhere() {
        ShardwrightException e = assertThrows(InvalidArgumentException.class, () -> World.of("{\"schema\": 1,\n \"mesh\": 1}"));
        assertTrue(e.getMessage().contains("line 2, column 2"), e.getMessage());
    }
}
