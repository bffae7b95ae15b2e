// SPDX-License-Identifier: Apache-2.0
// Nested states and JSON values.
package io.shardwright;

import io.shardwright.errors.DataLossException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Json;
import io.shardwright.storage.Storage;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class TreeTest {
    private static Map<Object, Object> map(Object... pairs) {
        Map<Object, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            made.put(pairs[i], pairs[i + 1]);
        }
        return made;
    }

    private static Object roundTrip(Object value) {
        return Json.decode(new String(Json.encode(value, "x"), StandardCharsets.UTF_8));
    }

    @Test
    void jsonValuesComeBackAsTheyWere() {
        Object value = map("none", null, "yes", true, "int", 7L, "big", BigInteger.ONE.shiftLeft(80), "real", 0.1,
                "text", "a\"\\\n\t\u0001\0\uD83D\uDE00", "list", Arrays.asList(1L, List.of(), map()),
                "inf", Double.NEGATIVE_INFINITY, "nan", Double.NaN, "keys", map(1L, "one", "$x", 2L));
        assertEquals(value, roundTrip(value));
        assertEquals("{\"a\":[1,2.0,null]}", new String(Json.encode(map("a", Arrays.asList(1, 2.0, null)), "x"),
                StandardCharsets.UTF_8));
    }

    @Test
    void damagedJsonIsDataLoss() {
        for (String text : List.of("", "{", "[1,", "{\"a\"}", "01", "1 2", "nul", "\"\\x\"", "\"open", "{\"$map\":[1]}",
                "-", "1.", "[\"\\u12\"]")) {
            assertThrows(DataLossException.class, () -> Json.decode(text), text);
        }
        assertThrows(DataLossException.class, () -> Json.decode("[".repeat(5000)));
    }

    @Test
    void otherLeavesAreRefusedWithTheirPath() {
        InvalidArgumentException e = assertThrows(InvalidArgumentException.class,
                () -> State.of(map("a", map("b", Arrays.asList(1, new Object())))));
        assertTrue(e.getMessage().contains("a.b.1"), e.getMessage());
        Map<Object, Object> self = map("w", new float[1]);
        self.put("self", self);
        assertThrows(InvalidArgumentException.class, () -> State.of(self));
        assertThrows(InvalidArgumentException.class, () -> State.of(map("a", map(1.5, new float[1]))));
    }

    @Test
    void aTreeComesBackWithItsKeysAndEmptyContainers() {
        List<Object> layers = new ArrayList<>(List.of(map("w", new float[] {1, 2}), map("w", new float[] {3})));
        Map<Object, Object> tree = map("model", map("layers", layers, "name", "tiny"), "optim", map(0, new long[] {9}, 1, map()),
                "step", 100, "raw", new byte[] {1, 2}, "config", map("lr", 0.5, "betas", List.of(0.9, 0.99)));
        try (Storage storage = Storage.memory(); State state = State.of(tree)) {
            assertEquals(List.of("model.layers.0.w", "model.layers.1.w", "optim.0"), state.tensorNames());
            assertEquals(List.of("model.name", "optim.1", "raw", "step", "config").stream().sorted().toList(),
                    state.objectNames().stream().sorted().toList());
            Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
            try (Loaded loaded = Shardwright.load(Location.of(storage, "p"), new LoadOptions())) {
                Map<Object, Object> found = loaded.tree();
                assertEquals(100L, found.get("step"));
                assertArrayEquals(new byte[] {1, 2}, (byte[]) found.get("raw"));
                assertEquals(map("lr", 0.5, "betas", List.of(0.9, 0.99)), found.get("config"));
                Map<?, ?> optim = (Map<?, ?>) found.get("optim");
                assertEquals(map(), optim.get(1L));
                assertEquals(9L, ((Tensor) optim.get(0L)).bytes().asLongBuffer().get());
                List<?> list = (List<?>) ((Map<?, ?>) found.get("model")).get("layers");
                assertEquals(3f, ((Tensor) ((Map<?, ?>) list.get(1)).get("w")).bytes().asFloatBuffer().get());
            }
            loadOver(storage);
        }
    }

    private static void loadOver(Storage storage) {
        Map<Object, Object> target = map("model", map("layers", List.of(map("w", new float[2]), map("w", new float[1])),
                "name", "?"), "optim", map(0, new long[1], 1, null), "step", 0, "raw", new byte[0], "config", null);
        try (State into = State.of(target)) {
            Shardwright.loadInto(into, Location.of(storage, "p"), new LoadOptions());
            assertEquals("tiny", into.json("model.name"));
            assertEquals(100L, into.toTree().get("step"));
            assertArrayEquals(new long[] {9}, (long[]) ((Map<?, ?>) target.get("optim")).get(0));
        }
    }
}
