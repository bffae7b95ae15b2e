// SPDX-License-Identifier: Apache-2.0
// Global plans: one description for many ranks, equal to the merge of explicit plans, and what is refused.
package io.shardwright;

import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.layout.Box;
import io.shardwright.layout.Layout;
import io.shardwright.layout.Placement;
import io.shardwright.planning.Cover;
import io.shardwright.planning.DescribeOptions;
import io.shardwright.planning.Description;
import io.shardwright.planning.Entry;
import io.shardwright.planning.EntryBatch;
import io.shardwright.planning.Expanded;
import io.shardwright.planning.GlobalPlan;
import io.shardwright.planning.MergeOptions;
import io.shardwright.planning.Planning;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class GlobalPlanTest {
    private static final String GENERATION = "0123456789abcdef0123456789abcdef";
    private static final int RANKS = 8;

    private static Layout twoByFour() {
        return Layout.of(new long[] {2, 4}, Placement.REPLICATE, Placement.shard(0));
    }

    private static Entry weight(long rows) {
        return Entry.tensor("weight", DType.FLOAT32, rows, 3);
    }

    /** 2 replicas of 4 shards: a sharded weight, a plain scale, a step, a random state per rank. */
    private static List<Description> hybrid(long rows) {
        List<Description> all = new ArrayList<>();
        try (Layout layout = twoByFour()) {
            for (int rank = 0; rank < RANKS; rank++) {
                EntryBatch batch = new EntryBatch().addLaidOut(weight(rows)).add(Entry.tensor("scale", DType.FLOAT32, 5))
                        .add(Entry.object("step", 6)).add(Entry.object("rng", 10 + rank));
                all.add(GlobalPlan.describe(batch, Arrays.asList(layout, null, null, null),
                        new DescribeOptions().rank(rank).worldSize(RANKS).kinds("rng", Kind.RANK_LOCAL)));
            }
        }
        return all;
    }

    private static List<byte[]> digests(List<Description> all) {
        return all.stream().map(Description::digest).collect(Collectors.toList());
    }

    private static GlobalPlan plan(List<Description> all, MergeOptions options) {
        List<byte[]> descriptions = new ArrayList<>();
        for (int rank : GlobalPlan.representatives(digests(all))) {
            descriptions.add(all.get(rank).description());
        }
        return GlobalPlan.create(digests(all), descriptions,
                all.stream().map(Description::part).collect(Collectors.toList()), options);
    }

    private static String items(byte[] plan) {
        String json = Plan.of(plan).json(1000);
        assertTrue(json.contains("\"items\""), json);
        return json.substring(json.indexOf("\"items\""));
    }

    @Test
    void ranksOfAMeshDescribeAlike() {
        List<Description> all = hybrid(16);
        for (Description each : all) {
            assertArrayEquals(all.get(0).digest(), each.digest());
            assertArrayEquals(all.get(0).description(), each.description());
        }
        assertArrayEquals(new int[] {0}, GlobalPlan.representatives(digests(all)));
        assertEquals(3, Plan.of(all.get(3).part()).rank());
        String json = plan(all, new MergeOptions()).json();
        for (String count : List.of("\"ranks\":8", "\"descriptions\":1", "\"items\":32", "\"chunks\":5", "\"objects\":9")) {
            assertTrue(json.contains(count), count + " in " + json);
        }
    }

    @Test
    void ownersAreThoseOfTheExplicitMerge() {
        for (Owner owner : List.of(Owner.BALANCED, Owner.LOWEST_RANK)) {
            List<byte[]> explicit = new ArrayList<>();
            List<Description> all = new ArrayList<>();
            try (Layout layout = twoByFour()) {
                for (int rank = 0; rank < RANKS; rank++) {
                    DescribeOptions options = new DescribeOptions().rank(rank).worldSize(RANKS);
                    Entry weight = weight(14).kind(Kind.SHARDED);
                    explicit.add(Planning.describe(
                            new EntryBatch().add(weight, layout.boxes(new long[] {14, 3}, rank)), options));
                    all.add(GlobalPlan.describe(new EntryBatch().addLaidOut(weight), List.of(layout), options));
                }
            }
            MergeOptions options = new MergeOptions().owner(owner);
            EntryBatch merged = Planning.entries(Plan.of(Planning.merge(explicit, options).plan()));
            int[] owners = plan(all, options).owners("weight");
            assertArrayEquals(merged.numbers(0), Arrays.stream(owners).asLongStream().toArray());
        }
    }

    @Test
    void writeListsAreThoseOfTheExpandedPlan() {
        GlobalPlan plan = plan(hybrid(16), new MergeOptions());
        Expanded expanded = plan.expand(GENERATION);
        assertEquals(RANKS, expanded.writeLists().size());
        assertEquals(5 + 1 + RANKS, Planning.entries(Plan.of(expanded.plan())).boxCount());
        for (int rank = 0; rank < RANKS; rank++) {
            byte[] alone = plan.writeList(rank, GENERATION);
            assertEquals(rank, Plan.of(alone).rank());
            assertEquals(items(expanded.writeLists().get(rank)), items(alone));
        }
        assertFalse(Arrays.equals(plan.writeList(0, GENERATION), plan.writeList(0, GENERATION, new byte[16])));
        assertArrayEquals(plan.writeList(0, GENERATION), plan.writeList(0, GENERATION, plan.digest()));
    }

    @Test
    void boxesWithoutALayoutTravelInParts() {
        List<Description> all = new ArrayList<>();
        long[][] boxes = {{0, 3}, {3, 1}, {4, 6}};
        for (int rank = 0; rank < boxes.length; rank++) {
            Box box = new Box(new long[] {boxes[rank][0]}, new long[] {boxes[rank][1]});
            all.add(GlobalPlan.describe(new EntryBatch().add(Entry.tensor("ragged", DType.FLOAT32, 10), List.of(box)),
                    List.of(), new DescribeOptions().rank(rank).worldSize(3)));
        }
        GlobalPlan plan = plan(all, new MergeOptions());
        assertArrayEquals(new int[] {0, 1, 2}, plan.owners("ragged"));
        assertArrayEquals(new long[] {12, 4, 24}, plan.rankBytes());
    }

    @Test
    void theDigestIsThePlansOwn() {
        byte[] digest = plan(hybrid(16), new MergeOptions()).digest();
        assertArrayEquals(digest, plan(hybrid(16), new MergeOptions()).digest());
        assertFalse(Arrays.equals(digest, plan(hybrid(17), new MergeOptions()).digest()));
        assertFalse(Arrays.equals(digest, plan(hybrid(16), new MergeOptions().owner(Owner.LOWEST_RANK)).digest()));
    }

    @Test
    void refusalsNameRanks() {
        List<Description> all = hybrid(16);
        List<byte[]> one = List.of(all.get(0).description());
        InvalidArgumentException noPart = assertThrows(InvalidArgumentException.class,
                () -> GlobalPlan.create(digests(all), one, List.of(), new MergeOptions()));
        assertTrue(noPart.getMessage().contains("part of rank 0"), noPart.getMessage());
        assertThrows(InvalidArgumentException.class, () -> GlobalPlan.representatives(List.of(new byte[5])));
        assertThrows(InvalidArgumentException.class, () -> GlobalPlan.representatives(List.of()));
        assertThrows(InvalidArgumentException.class, () -> plan(all, new MergeOptions().owner(Owner.ALL)));
        assertThrows(InvalidArgumentException.class, () -> plan(all, new MergeOptions().cover(Cover.OFF)));
        GlobalPlan plan = plan(all, new MergeOptions());
        assertThrows(NotFoundException.class, () -> plan.owners("nothing"));
        InvalidArgumentException absent = assertThrows(InvalidArgumentException.class,
                () -> plan.writeList(RANKS, GENERATION));
        assertTrue(absent.getMessage().contains("rank 8 of 8"), absent.getMessage());
        EntryBatch batch = new EntryBatch().add(Entry.object("o", 1));
        DescribeOptions options = new DescribeOptions().worldSize(1);
        assertThrows(InvalidArgumentException.class,
                () -> GlobalPlan.describe(batch, Arrays.asList(null, null), options));
        assertThrows(AlreadyExistsException.class,
                () -> GlobalPlan.describe(batch.add(Entry.object("o", 1)), List.of(), options));
        plan.close();
        assertThrows(IllegalStateException.class, plan::rankBytes);
    }
}
