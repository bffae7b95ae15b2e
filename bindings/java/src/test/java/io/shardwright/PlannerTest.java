// SPDX-License-Identifier: Apache-2.0
// Layouts, planners and plan buffers.
package io.shardwright;

import io.shardwright.errors.DataLossException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.layout.Box;
import io.shardwright.layout.Layout;
import io.shardwright.layout.Placement;
import io.shardwright.storage.Storage;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class PlannerTest {
    private static final long[] GLOBAL = {5, 2};

    private static State part(Layout layout, int rank) {
        int rows = rank == 0 ? 3 : 2;
        float[] values = new float[2 * rows];
        for (int i = 0; i < values.length; i++) {
            values[i] = 6 * rank + i;
        }
        return State.builder().add("w", HostTensor.of(values, rows, 2).partOf(GLOBAL, layout, rank))
                .add("bias", new float[] {1}).build();
    }

    @Test
    void aLayoutGivesEachRankItsBox() {
        try (Layout layout = Layout.of(new long[] {2}, Placement.shard(0))) {
            assertEquals(List.of(new Box(new long[] {3, 0}, new long[] {2, 2})), layout.boxes(GLOBAL, 1));
            assertTrue(layout.boxes(GLOBAL, 2).isEmpty());
        }
        try (Layout layout = Layout.of(new long[] {2, 2}, new int[] {7, 8, 9, 10}, Placement.REPLICATE,
                Placement.shard(-1))) {
            assertEquals(List.of(new Box(new long[] {0, 1}, new long[] {5, 1})), layout.boxes(GLOBAL, 10));
        }
        assertThrows(InvalidArgumentException.class, () -> Layout.of(new long[] {2}));
    }

    @Test
    void plansThatTheHostMovesMakeACheckpoint() {
        try (Storage storage = Storage.memory(); Layout layout = Layout.of(new long[] {2}, Placement.shard(0));
                State first = part(layout, 0); State second = part(layout, 1);
                SavePlanner a = SavePlanner.create(first, 0, 2, new SaveOptions());
                SavePlanner b = SavePlanner.create(second, 1, 2, new SaveOptions())) {
            Location location = Location.of(storage, "p");
            List<byte[]> parts = a.globalPlan(List.of(a.localPlan(), b.localPlan()), location);
            List<byte[]> results = new ArrayList<>();
            for (SavePlanner planner : List.of(a, b)) {
                Plan plan = planner.finish(parts.get(results.size()));
                assertEquals(results.size(), plan.rank());
                assertTrue(plan.itemCount() > 0);
                assertTrue(plan.json(10).contains("\"schema\""));
                assertTrue(Plan.findings(plan.bytes()).isEmpty());
                results.add(planner.execute(Plan.of(plan.bytes()), location));
            }
            assertEquals(2, a.commit(results).tensorCount());
            loadHalf(storage);
        }
    }

    private static void loadHalf(Storage storage) {
        float[] rows = new float[4];
        HostTensor wanted = HostTensor.of(rows, 2, 2).partOf(GLOBAL, 2, 0);
        try (State into = State.builder().add("w", wanted).build();
                Checkpoint checkpoint = Checkpoint.open(Location.of(storage, "p"), new OpenOptions());
                LoadPlanner planner = LoadPlanner.create(checkpoint, into, 0, new LoadOptions())) {
            assertEquals(List.of("bias"), planner.execute(planner.localPlan()).unexpected());
        }
        assertArrayEquals(new float[] {4, 5, 6, 7}, rows);
    }

    @Test
    void damagedPlansAreRefused() {
        try (State state = State.builder().add("w", new float[1]).build();
                SavePlanner planner = SavePlanner.create(state, 0, 1, new SaveOptions())) {
            byte[] plan = planner.localPlan();
            byte[] cut = java.util.Arrays.copyOf(plan, plan.length - 3);
            assertThrows(DataLossException.class, () -> Plan.of(cut));
            assertFalse(Plan.findings(cut).isEmpty());
            assertThrows(ShardwrightException.class, () -> Plan.of(new byte[0]));
        }
    }
}
