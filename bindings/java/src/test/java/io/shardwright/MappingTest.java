// SPDX-License-Identifier: Apache-2.0
// States as a mapping stores them, parts of grids, names of cells.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.layout.Box;
import io.shardwright.layout.GridShard;
import io.shardwright.storage.Storage;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class MappingTest {
    private static final String NAME = "layers.0.mlp.linear_fc1.bias";

    private static State fused(float[] values, Mapping mapping) {
        try (State plain = State.builder().add(NAME, values)
                .object("extra", "", "text/plain", "x".getBytes(StandardCharsets.UTF_8), Kind.AUTO).build()) {
            return plain.mapped(mapping); // which keeps the other one
        }
    }

    @Test
    void mappedStateSeesTheMemoryOfTheOther() {
        String rules = "{\"schema\": 1, \"parameters\": [\"axis\"], \"rules\": [{\"match\": \"*.linear_fc1.bias\", \"steps\": ["
                + "{\"split\": {\"axis\": \"$axis\", \"suffixes\": [\"_w\", \"_v\"]}}]}]}";
        float[] loaded = new float[4];
        try (Mapping mapping = Mapping.of(rules, Map.of("axis", 0L)); Storage storage = Storage.memory();
                State state = fused(new float[] {1, 2, 3, 4}, mapping); State target = fused(loaded, mapping)) {
            assertEquals(List.of(NAME + "_w", NAME + "_v"), state.tensorNames());
            Location location = Location.of(storage, "p");
            Shardwright.save(state, location, new SaveOptions());
            Shardwright.loadInto(target, location, new LoadOptions());
            assertEquals("x", new String(target.object("extra").bytes(), StandardCharsets.UTF_8));
        }
        assertArrayEquals(new float[] {1, 2, 3, 4}, loaded);
    }

    @Test
    void replicasAreNotSaved() {
        HostTensor half = HostTensor.of(new float[] {1, 2}, 1, 2).gridPart(new long[] {2, 1}, 1, 0);
        try (Storage storage = Storage.memory(); State state = State.builder().add("w", HostTensor.of(new float[] {5}, 1))
                .add("r", HostTensor.of(new float[] {6}, 1).replica(true)).build();
                State hole = State.builder().add("h", half).build()) {
            Location location = Location.of(storage, "p");
            Shardwright.save(state, location, new SaveOptions());
            try (Checkpoint checkpoint = Checkpoint.open(location, new OpenOptions())) {
                assertEquals(List.of("w"), checkpoint.keys());
            }
            // One half of two.
            assertThrows(InvalidArgumentException.class, () -> Shardwright.save(hole, location, new SaveOptions()));
        }
        assertThrows(InvalidArgumentException.class, () -> HostTensor.of(new float[2], 2).gridPart(new long[] {2}, 0, 0));
    }

    @Test
    void wrongRulesAreNamed() {
        assertThrows(NotFoundException.class, () -> Mapping.shipped("bert", Map.of()));
        InvalidArgumentException missing =
                assertThrows(InvalidArgumentException.class, () -> Mapping.shipped("gpt", Map.of("layers", 2L)));
        assertTrue(missing.getMessage().contains("first_layer"), missing.getMessage());
        try (Mapping mapping = Mapping.of("{\"schema\": 1, \"rules\": [{\"match\": \"w\"}]}", Map.of());
                State state = State.builder().add("v", new float[1]).build()) {
            InvalidArgumentException idle = assertThrows(InvalidArgumentException.class, () -> state.mapped(mapping));
            assertTrue(idle.getMessage().contains("rule 1 ('w')"), idle.getMessage());
            assertEquals(Map.of("rule", "1"), idle.details());
        }
        try (Mapping mapping = Mapping.of("{\"schema\": 1, \"rules\": [{\"match\": \"*\"}, {\"match\": \"v\"}]}", Map.of());
                State state = State.builder().add("v", new float[1]).build()) {
            InvalidArgumentException both = assertThrows(InvalidArgumentException.class, () -> state.mapped(mapping));
            assertEquals(Map.of("tensor", "v", "rule", "1,2"), both.details());
        }
    }

    @Test
    void flatRangesAreSplitAsTheirPart() {
        String rules = "{\"schema\": 1, \"rules\": [{\"match\": \"w\", \"steps\": ["
                + "{\"split\": {\"axis\": 0, \"suffixes\": [\"0\", \"1\"]}}]}]}";
        GridShard part = GridShard.at(new long[] {4, 2}, 0, 0, 1, 2);
        assertArrayEquals(new long[] {2, 1}, part.fragments());
        HostTensor range = HostTensor.of(new float[] {3, 4, 5}).partOf(part.flatRange(3, 6));
        HostTensor said = HostTensor.of(new float[] {3, 4, 5}).partOf(new long[] {8, 2},
                List.of(new Box(new long[] {5, 1}, new long[] {1, 1}), new Box(new long[] {6, 0}, new long[] {1, 2})), 0, 1);
        try (Mapping mapping = Mapping.of(rules, Map.of())) {
            for (HostTensor each : List.of(range, said.fragments(2, 1))) {
                try (State plain = State.builder().add("w", each).build(); State state = plain.mapped(mapping)) {
                    assertEquals(List.of("w0", "w1"), state.tensorNames());
                }
            }
            try (State plain = State.builder().add("w", said).build()) {
                assertThrows(InvalidArgumentException.class, () -> plain.mapped(mapping));
            }
        }
        assertThrows(InvalidArgumentException.class, () -> said.fragments(2));
        assertThrows(InvalidArgumentException.class, () -> said.gridPart(new long[] {2}, 0).fragments(2));
    }

    @Test
    void namesOfCells() {
        ObjectKey key = new ObjectKey("a/shard_b", new long[] {0, 3}, new long[] {1, 8});
        assertEquals("a/shard_b/shard_0.3_1.8", key.name());
        assertEquals(key, ObjectKey.parse(key.name()));
        assertThrows(InvalidArgumentException.class, () -> ObjectKey.parse("a"));
        assertThrows(InvalidArgumentException.class, () -> new ObjectKey("a", new long[] {1}, new long[] {1}).name());
        assertThrows(InvalidArgumentException.class, () -> new ObjectKey("a", new long[0], new long[] {1}).name());
    }

    private static State cells(byte[] own, boolean replica) {
        return State.builder().cell(new ObjectKey("rng", new long[] {0, 1}, new long[] {2, 4}), "text/plain", own, Kind.AUTO, false)
                .cell(new ObjectKey("all", new long[] {0}, new long[] {1}), "text/plain", own, Kind.AUTO, replica).build();
    }

    @Test
    void cellsOfObjectsAreSavedUnderTheirOwnNames() {
        try (Storage storage = Storage.memory(); State state = cells(new byte[] {7}, false);
                State replica = cells(new byte[] {8}, true); State target = cells(new byte[0], true)) {
            assertEquals(List.of("rng/shard_0.1_2.4", "all/shard_0_1"), state.objectNames());
            Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
            Shardwright.loadInto(target, Location.of(storage, "p"), new LoadOptions());
            assertArrayEquals(new byte[] {7}, target.object("rng/shard_0.1_2.4").bytes());
            assertArrayEquals(new byte[] {7}, target.object("all/shard_0_1").bytes());
            Shardwright.save(replica, Location.of(storage, "q"), new SaveOptions());
            try (Checkpoint checkpoint = Checkpoint.open(Location.of(storage, "q"), new OpenOptions())) {
                assertEquals(Set.of("rng/shard_0.1_2.4"), checkpoint.objects().keySet());
            }
        }
        ObjectKey without = new ObjectKey("a", new long[0], new long[0]);
        ObjectKey outside = new ObjectKey("a", new long[] {2}, new long[] {2});
        State.Builder builder = State.builder();
        assertThrows(InvalidArgumentException.class, () -> builder.cell(without, "text/plain", new byte[0], Kind.AUTO, false));
        builder.cell(outside, "text/plain", new byte[0], Kind.AUTO, false);
        assertThrows(InvalidArgumentException.class, builder::build);
    }
}
