// SPDX-License-Identifier: Apache-2.0
// Planning by descriptions: there and back, the originals' choices, matches, and what is refused.
package io.shardwright;

import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.DataLossException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.layout.Box;
import io.shardwright.planning.Cover;
import io.shardwright.planning.DescribeOptions;
import io.shardwright.planning.Described;
import io.shardwright.planning.Entry;
import io.shardwright.planning.EntryBatch;
import io.shardwright.planning.HeldShards;
import io.shardwright.planning.MatchOptions;
import io.shardwright.planning.MatchOrder;
import io.shardwright.planning.Matches;
import io.shardwright.planning.MergeOptions;
import io.shardwright.planning.Merged;
import io.shardwright.planning.Planning;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class PlanningTest {
    private static long[] longs(long... values) {
        return values;
    }

    private static Box box(long begin, long size) {
        return new Box(longs(begin), longs(size));
    }

    private static EntryBatch whole(String name, long... shape) {
        return new EntryBatch().add(Entry.tensor(name, DType.FLOAT32, shape));
    }

    private static EntryBatch pieces(String name, long extent, Box... boxes) {
        return new EntryBatch().add(Entry.tensor(name, DType.FLOAT32, extent), List.of(boxes));
    }

    private static List<byte[]> plans(EntryBatch... ranks) {
        List<byte[]> plans = new ArrayList<>();
        for (EntryBatch batch : ranks) {
            DescribeOptions options = new DescribeOptions().rank(plans.size()).worldSize(ranks.length);
            plans.add(Planning.describe(batch, options));
        }
        return plans;
    }

    private static EntryBatch entries(byte[] plan) {
        return Planning.entries(Plan.of(plan));
    }

    private static Plan stored(EntryBatch batch) {
        return Plan.of(Planning.describe(batch, new DescribeOptions().kind(Described.MERGED_SAVE)));
    }

    /** By rank the names of the entries of which it keeps a box. */
    private static List<List<String>> keptNames(List<byte[]> plans, Merged merged) {
        List<List<String>> names = new ArrayList<>();
        for (byte[] plan : plans) {
            EntryBatch boxes = entries(plan);
            int[] kept = merged.kept().get(names.size());
            assertEquals(boxes.boxCount(), kept.length);
            names.add(IntStream.range(0, boxes.size())
                    .filter(i -> IntStream.range(boxes.firstBox(i), boxes.firstBox(i + 1))
                            .anyMatch(box -> kept[box] != Planning.NOT_KEPT))
                    .mapToObj(boxes.names()::get).collect(Collectors.toList()));
        }
        return names;
    }

    @Test
    void entriesComeBackAsTheyWereDescribed() {
        byte[] digest = Planning.contentDigest("values".getBytes(StandardCharsets.UTF_8));
        Entry weight = Entry.tensor("w", DType.FLOAT32, 4, 2).path("[\"m\",\"w\"]").attributes(new byte[] {1, 2});
        List<Box> boxes = List.of(new Box(longs(1, 0), longs(2, 2)), new Box(longs(3, 0), longs(1, 2)));
        Entry step = Entry.object("step\uD83D\uDE00", 6).digest(digest);
        EntryBatch given = new EntryBatch().add(weight, boxes).add(step)
                .add(Entry.tensor("scale", DType.BFLOAT16).kind(Kind.RANK_LOCAL)).order(longs(2, 0, 3, 1))
                .secondary(new boolean[] {false, true, false, false});
        DescribeOptions options = new DescribeOptions().rank(1).worldSize(2).agreement("mode=test\n");
        byte[] plan = Planning.describe(given, options);
        assertEquals(1, Plan.of(plan).rank());
        EntryBatch back = entries(plan);
        assertEquals(List.of(weight.kind(Kind.SHARDED), step.kind(Kind.REPLICATED), given.entry(2)), back.entries());
        assertEquals(given.names(), back.names());
        assertEquals(boxes, back.boxes(0));
        assertEquals(List.of(new Box(longs(), longs())), back.boxes(2));
        assertArrayEquals(longs(0, 1), back.numbers(0));
        assertArrayEquals(longs(2, 0, 3, 1), back.order());
        assertArrayEquals(new boolean[] {false, true, false, false}, back.secondary());
        assertArrayEquals(plan, Planning.describe(back, options));
        EntryBatch plain = entries(Planning.describe(whole("w", 3), new DescribeOptions()));
        assertNull(plain.order());
        assertNull(plain.secondary());
        assertNull(plain.entry(0).digest());
        assertEquals(0, entries(Planning.describe(new EntryBatch(), new DescribeOptions())).size());
    }

    @Test
    void globsGiveKinds() {
        EntryBatch batch = new EntryBatch().add(Entry.object("ab", 1)).add(Entry.tensor("b", DType.INT64, 2));
        byte[] plan = Planning.describe(batch, new DescribeOptions().kinds("a*", Kind.RANK_LOCAL).kinds("*", Kind.SHARDED));
        assertEquals(List.of(Kind.RANK_LOCAL, Kind.SHARDED),
                entries(plan).entries().stream().map(Entry::kind).collect(Collectors.toList()));
    }

    @Test
    void presetsChooseAsTheirOriginals() {
        EntryBatch one = new EntryBatch();
        long[] extents = {8, 4, 16, 2};
        for (int i = 0; i < extents.length; i++) {
            one.add(Entry.tensor("abcd".substring(i, i + 1), DType.FLOAT32, extents[i]));
        }
        one.add(Entry.object("o", 0));
        List<byte[]> all = plans(one, one, one, one);
        MergeOptions exact = new MergeOptions().owner(Owner.EXACT).preset(Preset.TORCH);
        assertEquals(List.of(List.of("a"), List.of("b"), List.of("c"), List.of("d", "o")),
                keptNames(all, Planning.merge(all, exact)));
        MergeOptions lowest = new MergeOptions().owner(Owner.LOWEST_RANK);
        assertEquals(List.of("a", "b", "c", "d", "o"), keptNames(all, Planning.merge(all, lowest)).get(0));
        assertEquals("c", keptNames(all, Planning.merge(all, new MergeOptions())).get(0).get(0));
        Merged every = Planning.merge(all, new MergeOptions().owner(Owner.ALL));
        assertArrayEquals(new int[] {3, 3, 3, 3, 0}, every.kept().get(3));
    }

    @Test
    void numbersOfChunksFollowWhatWasKept() {
        Merged merged = Planning.merge(plans(pieces("w", 4, box(2, 2)), pieces("w", 4, box(0, 2))),
                new MergeOptions().owner(Owner.EXACT).preset(Preset.HYPERPARALLEL));
        assertArrayEquals(new int[] {0}, merged.kept().get(0));
        assertArrayEquals(new int[] {1}, merged.kept().get(1));
        EntryBatch stored = entries(merged.plan());
        assertEquals(List.of(box(2, 2), box(0, 2)), stored.boxes(0));
        assertArrayEquals(longs(0, 1), stored.numbers(0));
    }

    @Test
    void whatIsKeptIsSaidBoxByBox() {
        List<byte[]> all = plans(pieces("w", 6, box(0, 2), box(2, 2)), pieces("w", 6, box(4, 2), box(2, 2)),
                new EntryBatch());
        Merged merged = Planning.merge(all, new MergeOptions().owner(Owner.LOWEST_RANK).preset(Preset.MEGATRON));
        assertEquals(-1, Planning.NOT_KEPT);
        assertEquals(3, merged.kept().size());
        assertArrayEquals(new int[] {0, 1}, merged.kept().get(0));
        assertArrayEquals(new int[] {2, Planning.NOT_KEPT}, merged.kept().get(1));
        assertArrayEquals(new int[0], merged.kept().get(2));
        EntryBatch boxes = entries(all.get(1));
        assertEquals(0, boxes.firstBox(0));
        assertEquals(2, boxes.firstBox(boxes.size()));
    }

    @Test
    void conflictsAndCoversAreRefusedByName() {
        InvalidArgumentException conflict = assertThrows(InvalidArgumentException.class,
                () -> Planning.merge(plans(whole("w", 4), whole("w", 5)), new MergeOptions()));
        assertTrue(conflict.getMessage().contains("rank 0") && conflict.getMessage().contains("rank 1"),
                conflict.getMessage());
        List<byte[]> hole = plans(pieces("w", 4, box(0, 1)), pieces("w", 4, box(2, 2)));
        InvalidArgumentException uncovered = assertThrows(InvalidArgumentException.class,
                () -> Planning.merge(hole, new MergeOptions()));
        assertEquals("full", uncovered.details().get("cover"));
        assertEquals(2, Planning.merge(hole, new MergeOptions().cover(Cover.DISJOINT)).kept().size());
        byte[] whole = plans(whole("w", 4)).get(0);
        assertThrows(DataLossException.class,
                () -> Planning.merge(List.of(Arrays.copyOf(whole, whole.length - 8)), new MergeOptions()));
    }

    @Test
    void matchesSayWhereCommonPartsLie() {
        Box[] chunks = new Box[8];
        Arrays.setAll(chunks, i -> box(2 * i, 2));
        Plan stored = stored(pieces("w", 16, chunks).add(Entry.object("o", 0)));
        EntryBatch wanted = pieces("w", 16, box(1, 4), box(15, 1)).add(Entry.object("o", 0));
        Matches found = Planning.match(stored, wanted, new MatchOptions());
        assertArrayEquals(longs(0, 0, 0, 1, 2), found.wanted());
        assertArrayEquals(longs(0, 1, 2, 7, 0), found.chunks());
        assertArrayEquals(longs(0, 1, 3, 0), found.wantedOffsets());
        assertArrayEquals(longs(1, 0, 0, 1), found.storedOffsets());
        assertArrayEquals(longs(1, 2, 1, 1), found.sizes());
        assertArrayEquals(longs(0, 4, 5), found.entryBegins());
        assertEquals(5, Planning.match(stored, wanted, new MatchOptions().order(MatchOrder.SWEEP)).chunks().length);
        NotFoundException missing = assertThrows(NotFoundException.class,
                () -> Planning.match(stored, whole("v", 16), new MatchOptions()));
        assertTrue(missing.getMessage().contains("'v'"), missing.getMessage());
        MatchOptions report = new MatchOptions().missing(Missing.REPORT);
        assertArrayEquals(longs(0, 0), Planning.match(stored, whole("v", 16), report).entryBegins());
    }

    @Test
    void unfilledWantsAreRefusedUnlessAsked() {
        Plan stored = stored(pieces("w", 8, box(0, 4), box(0, 4)));
        EntryBatch inside = pieces("w", 8, box(1, 2));
        EntryBatch beyond = pieces("w", 8, box(2, 4));
        assertThrows(InvalidArgumentException.class, () -> Planning.match(stored, inside, new MatchOptions()));
        MatchOptions first = new MatchOptions().firstReplica(true);
        assertArrayEquals(longs(0), Planning.match(stored, inside, first).chunks());
        assertThrows(InvalidArgumentException.class, () -> Planning.match(stored, beyond, first));
        assertArrayEquals(longs(0, 1), Planning.match(stored, beyond, new MatchOptions().cover(Cover.OFF)).chunks());
    }

    @Test
    void columnsOfWrongLengthsAreRefusedBeforeTheyAreRead() {
        DescribeOptions options = new DescribeOptions();
        for (EntryBatch wrong : List.of(whole("w", 4).numbers(longs()), whole("w", 4).order(longs(0, 1)),
                whole("w", 4).secondary(new boolean[2]))) {
            assertThrows(InvalidArgumentException.class, () -> Planning.describe(wrong, options));
        }
        EntryBatch batch = new EntryBatch();
        assertThrows(InvalidArgumentException.class,
                () -> batch.add(Entry.tensor("w", DType.FLOAT32, 4, 2), List.of(box(0, 4))));
        assertEquals(0, batch.size());
        assertThrows(InvalidArgumentException.class, () -> Entry.object("o", 1).digest(new byte[15]));
        assertThrows(InvalidArgumentException.class, () -> Entry.object("o", -1));
    }

    @Test
    void descriptionsThatAreWrongAreRefused() {
        DescribeOptions options = new DescribeOptions();
        assertThrows(OutOfRangeException.class, () -> Planning.describe(pieces("w", 4, box(3, 2)), options));
        assertThrows(InvalidArgumentException.class, () -> Planning.describe(whole("half \uD83D", 4), options));
        EntryBatch twice = whole("w", 4).add(Entry.tensor("w", DType.FLOAT32, 4));
        assertThrows(AlreadyExistsException.class, () -> Planning.describe(twice, options));
        byte[] local = Planning.describe(whole("w", 4), options);
        assertThrows(InvalidArgumentException.class,
                () -> Planning.match(Plan.of(local), whole("w", 4), new MatchOptions()));
        Plan closed = Plan.of(local);
        closed.close();
        assertThrows(IllegalStateException.class, () -> Planning.entries(closed));
    }

    @Test
    void digestsNameWhatIsDescribed() {
        byte[] one = Planning.contentDigest(new byte[] {1});
        EntryBatch first = new EntryBatch().add(Entry.tensor("w", DType.FLOAT32, 4).digest(one));
        EntryBatch later = new EntryBatch()
                .add(Entry.tensor("w", DType.FLOAT32, 4).digest(Planning.contentDigest(new byte[0])));
        byte[] digest = Planning.digest(Plan.of(plans(first).get(0)));
        assertArrayEquals(digest, Planning.digest(Plan.of(plans(later).get(0))));
        assertFalse(Arrays.equals(digest, Planning.digest(Plan.of(plans(whole("w", 5)).get(0)))));
        List<byte[]> both = plans(first, later);
        assertThrows(InvalidArgumentException.class, () -> Planning.merge(both, new MergeOptions()));
        assertEquals(2, Planning.merge(both, new MergeOptions().verifyReplicas(VerifyReplicas.OFF)).kept().size());
    }

    @Test
    void ownersOfPlainArrays() {
        HeldShards shards = new HeldShards(longs(10, 5, 1, 10), new int[] {0, 1, 2, 0}, longs(0, 3, 5, 6),
                new int[] {0, 1, 2, 1, 2, 2}, null);
        assertArrayEquals(new int[] {0, 1, 2, 2}, Planning.owners(shards, 3));
        HeldShards last = new HeldShards(shards.weights(), shards.sets(), shards.setOffsets(), shards.holders(),
                new boolean[] {true, false, false, false});
        assertEquals(2, Planning.owners(last, 3)[0]);
        HeldShards lacking = new HeldShards(longs(1), new int[] {0}, longs(0, 2), new int[] {0}, null);
        assertThrows(InvalidArgumentException.class, () -> Planning.owners(lacking, 1));
        HeldShards unknown = new HeldShards(longs(1), new int[] {7}, longs(0, 1), new int[] {0}, null);
        assertThrows(InvalidArgumentException.class, () -> Planning.owners(unknown, 1));
    }

    @Test
    void manyEntriesCostOneCall() {
        EntryBatch batch = new EntryBatch();
        for (int i = 0; i < 20_000; i++) {
            batch.add(Entry.tensor("layer." + i + ".weight", DType.BFLOAT16, 64, 64));
        }
        EntryBatch back = entries(Planning.describe(batch, new DescribeOptions()));
        assertEquals(batch.names(), back.names());
        assertArrayEquals(longs(64, 64), back.entry(19_999).shape());
    }
}
