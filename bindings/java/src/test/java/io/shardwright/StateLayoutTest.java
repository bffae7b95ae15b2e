// SPDX-License-Identifier: Apache-2.0
// States whose tensors follow layouts.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.layout.Layout;
import io.shardwright.layout.Placement;
import io.shardwright.storage.Storage;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class StateLayoutTest {
    private static final long[] GLOBAL = {5, 2};
    private static final float[] WHOLE = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    private static final int RANKS = 2;

    /** What a rank holds: the first three rows, or the other two. */
    private static HostTensor rows(int rank) {
        int begin = rank == 0 ? 0 : 6;
        int end = rank == 0 ? 6 : 10;
        return HostTensor.of(java.util.Arrays.copyOfRange(WHOLE, begin, end), (end - begin) / 2, 2);
    }

    private static HostTensor byBoxes(int rank) {
        return rows(rank).partOf(GLOBAL, 3 * rank, 0);
    }

    private static Layout halves() {
        return Layout.of(new long[] {RANKS}, Placement.shard(0));
    }

    /** Saves "w" of both ranks; gives their local plans as JSON. */
    private static List<String> save(Storage storage, String path, IntFunction<HostTensor> part) {
        SaveOptions options = new SaveOptions();
        Location location = Location.of(storage, path);
        List<String> plans = new ArrayList<>();
        try (State first = State.builder().add("w", part.apply(0)).build();
                State second = State.builder().add("w", part.apply(1)).build();
                SavePlanner a = SavePlanner.create(first, 0, RANKS, options);
                SavePlanner b = SavePlanner.create(second, 1, RANKS, options)) {
            List<byte[]> locals = List.of(a.localPlan(), b.localPlan());
            locals.forEach(local -> plans.add(Plan.of(local).json(10)));
            List<byte[]> parts = a.globalPlan(locals, location);
            List<byte[]> results = new ArrayList<>();
            for (SavePlanner planner : List.of(a, b)) {
                results.add(planner.execute(planner.finish(parts.get(results.size())), location));
            }
            a.commit(results);
        }
        return plans;
    }

    private static String digest(Storage storage, String path) {
        try (Checkpoint checkpoint = Checkpoint.open(Location.of(storage, path), new OpenOptions())) {
            return checkpoint.digest("w", DigestAlgorithm.SHA256);
        }
    }

    /** Values of a text member in the order of the JSON text. */
    private static List<String> values(String json, String key) {
        Matcher found = Pattern.compile("\"" + key + "\":\"([^\"]*)\"").matcher(json);
        List<String> values = new ArrayList<>();
        while (found.find()) {
            values.add(found.group(1));
        }
        return values;
    }

    @Test
    void savesArePlannedByTheLayoutsOfAState() {
        try (Storage storage = Storage.memory(); Layout layout = halves()) {
            List<String> plans = save(storage, "layout", rank -> rows(rank).partOf(GLOBAL, layout, rank));
            for (String plan : plans) {
                assertEquals(List.of("local_save"), values(plan, "kind").subList(0, 1), plan);
                assertEquals(List.of("layout"), values(plan, "form"), plan);
            }
            assertEquals(values(plans.get(0), "description_digest"), values(plans.get(1), "description_digest"));
            assertFalse(values(plans.get(0), "description_digest").isEmpty(), plans.get(0));
            for (String plan : save(storage, "boxes", StateLayoutTest::byBoxes)) {
                assertEquals(List.of("boxes"), values(plan, "form"), plan);
            }
            assertEquals(digest(storage, "boxes"), digest(storage, "layout"));
            try (Loaded loaded = Shardwright.load(Location.of(storage, "layout"), new LoadOptions())) {
                float[] whole = new float[WHOLE.length];
                loaded.tensors().get("w").bytes().asFloatBuffer().get(whole);
                assertArrayEquals(WHOLE, whole);
            }
        }
    }

    @Test
    void boxesBesideALayoutMustBeItsOwn() {
        try (Storage storage = Storage.memory(); Layout layout = halves()) {
            for (String plan : save(storage, "p", rank -> byBoxes(rank).layout(layout, rank))) {
                assertEquals(List.of("layout"), values(plan, "form"), plan);
            }
            State.Builder wrong = State.builder().add("w", byBoxes(0).layout(layout, 1));
            InvalidArgumentException refused = assertThrows(InvalidArgumentException.class, wrong::build);
            assertTrue(refused.getMessage().contains("'w'"), refused.getMessage());
            assertTrue(refused.getMessage().contains("rank 1 holds [0:3, 0:2] by its boxes and [3:5, 0:2] by its layout"),
                    refused.getMessage());
            State.Builder behind = State.builder().add("a", rows(0).partOf(GLOBAL, layout, 0))
                    .add("w", byBoxes(0).layout(layout, 1));
            refused = assertThrows(InvalidArgumentException.class, behind::build);
            assertTrue(refused.getMessage().contains("w: rank 1 holds"), refused.getMessage());
            assertThrows(InvalidArgumentException.class, () -> HostTensor.of(WHOLE, 5, 2).layout(layout, 0));
            // Other boxes than those of the layout need no layout.
            State.builder().add("w", byBoxes(0).layout(layout, 1).partOf(GLOBAL, 0, 0)).build().close();
        }
    }

    @Test
    void layoutsOfAnotherRankThanTheFirstCountAsTheirBoxes() {
        try (Layout layout = halves(); Layout alike = halves();
                State state = State.builder().add("a", rows(0).partOf(GLOBAL, layout, 0))
                        .add("b", rows(1).partOf(GLOBAL, layout, 1)).add("c", rows(0).partOf(GLOBAL, alike, 0))
                        .add("d", byBoxes(0)).add("e", new float[] {1}).build();
                SavePlanner planner = SavePlanner.create(state, 0, RANKS, new SaveOptions())) {
            assertEquals(List.of("whole", "layout", "boxes", "layout", "boxes"),
                    values(Plan.of(planner.localPlan()).json(10), "form"));
        }
    }

    @Test
    void aStateKeepsItsLayoutsOpen() {
        Layout layout = halves();
        State.Builder late = State.builder().add("w", rows(0).partOf(GLOBAL, layout, 0));
        try (State state = late.build()) {
            layout.close();
            try (SavePlanner planner = SavePlanner.create(state, 0, RANKS, new SaveOptions())) {
                assertEquals(List.of("layout"), values(Plan.of(planner.localPlan()).json(10), "form"));
            }
        }
        assertThrows(IllegalStateException.class, late::build);
    }
}
