// SPDX-License-Identifier: Apache-2.0
// What a rank holds or wants, in flat columns.
package io.shardwright.planning;

import io.shardwright.DType;
import io.shardwright.Kind;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.LongList;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.layout.Box;
import io.shardwright.layout.Layout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Entries with their boxes; the library reads all of them in one call. Boxes are numbered through all entries in their
 * order; a byte object has one box of no dimensions. Names that come twice are refused where the batch is used. Not
 * thread-safe while it is being filled.
 */
public final class EntryBatch {
    private static final int DIGEST_BYTES = 16;

    private final List<Entry> entries = new ArrayList<>();
    private final LongList boxRanges = new LongList();
    /** Where the boxes of each entry begin in the two columns below. */
    private final LongList valueOffsets = new LongList();
    private final LongList boxOffsets = new LongList();
    private final LongList boxSizes = new LongList();
    private long[] numbers;
    private long[] order;
    private boolean[] secondary;

    /** A batch without entries. */
    public EntryBatch() {
        boxRanges.add(0);
        valueOffsets.add(0);
    }

    /**
     * Adds a byte object, or a tensor that is held as a whole.
     *
     * @param entry what it is
     * @return this
     */
    public EntryBatch add(Entry entry) {
        if (entry.dtype != null) {
            boxOffsets.addAll(new long[entry.shape.length]);
            boxSizes.addAll(entry.shape);
        }
        return push(entry, 1);
    }

    /**
     * Adds a tensor of which boxes are held.
     *
     * @param entry what it is
     * @param boxes its boxes; {@link Layout#boxes} gives such
     * @return this
     * @throws InvalidArgumentException for a box of other dimensions than the tensor; nothing is added
     */
    public EntryBatch add(Entry entry, List<Box> boxes) {
        int ndim = entry.shape.length;
        for (Box box : boxes) {
            if (box.sizes().length != ndim) {
                throw Invalid.parameter("boxes", "box " + box + " of " + entry.name + " does not have "
                        + ndim + " dimensions");
            }
        }
        for (Box box : boxes) {
            boxOffsets.addAll(box.offsets());
            boxSizes.addAll(box.sizes());
        }
        return push(entry, boxes.size());
    }

    /**
     * Adds a tensor without boxes: its layout gives them ({@link GlobalPlan#describe}).
     *
     * @param entry what it is
     * @return this
     */
    public EntryBatch addLaidOut(Entry entry) {
        return push(entry, 0);
    }

    private EntryBatch push(Entry entry, int boxes) {
        boxRanges.add(boxRanges.get(entries.size()) + boxes);
        valueOffsets.add(boxOffsets.size());
        entries.add(entry);
        return this;
    }

    /**
     * One number per box, below 2^32 - 1. Local plans: number of the piece in its entry; merged plans: rank that writes.
     *
     * @param values the numbers, copied; null = 0, 1, 2, ... in each entry of a local plan, 0 in merged ones
     * @return this
     */
    public EntryBatch numbers(long[] values) {
        numbers = values == null ? null : values.clone();
        return this;
    }

    /**
     * All boxes in the order in which the host lists them.
     *
     * @param values numbers of boxes, copied; null = as they stand
     * @return this
     */
    public EntryBatch order(long[] values) {
        order = values == null ? null : values.clone();
        return this;
    }

    /**
     * Marks of the boxes that are no main replicas, only wanted by others: preset megatron with owner exact chooses those
     * last.
     *
     * @param values one per box, copied; null = no box is marked
     * @return this
     */
    public EntryBatch secondary(boolean[] values) {
        secondary = values == null ? null : values.clone();
        return this;
    }

    /**
     * Number of entries.
     *
     * @return at least 0
     */
    public int size() {
        return entries.size();
    }

    /**
     * Number of boxes of all entries.
     *
     * @return at least 0
     */
    public int boxCount() {
        return firstBox(entries.size());
    }

    /**
     * One entry.
     *
     * @param index its number
     * @return the entry
     */
    public Entry entry(int index) {
        return entries.get(index);
    }

    /**
     * All entries.
     *
     * @return a copy of the list, in the order in which they were added
     */
    public List<Entry> entries() {
        return List.copyOf(entries);
    }

    /**
     * Names of the entries.
     *
     * @return in the order in which they were added
     */
    public List<String> names() {
        return entries.stream().map(Entry::name).collect(Collectors.toList());
    }

    /**
     * Number of the first box of an entry among all boxes.
     *
     * @param index number of the entry; {@link #size} gives {@link #boxCount}
     * @return the number; boxes of one entry follow each other
     */
    public int firstBox(int index) {
        return (int) boxRanges.get(index);
    }

    /**
     * Boxes of an entry.
     *
     * @param index number of the entry
     * @return its boxes; a byte object has one of no dimensions
     */
    public List<Box> boxes(int index) {
        List<Box> boxes = new ArrayList<>();
        int ndim = entries.get(index).shape.length;
        int at = (int) valueOffsets.get(index);
        for (long i = boxRanges.get(index); i < boxRanges.get(index + 1); i++) {
            boxes.add(new Box(boxOffsets.slice(at, at + ndim), boxSizes.slice(at, at + ndim)));
            at += ndim;
        }
        return boxes;
    }

    /**
     * Numbers of the boxes of an entry, as {@link #numbers(long[])} says; plans always have them.
     *
     * @param index number of the entry
     * @return one per box; null = not set
     */
    public long[] numbers(int index) {
        return numbers == null ? null
                : Arrays.copyOfRange(numbers, firstBox(index), firstBox(index + 1));
    }

    /**
     * Order in which the host lists the boxes.
     *
     * @return a copy; null = as they stand
     */
    public long[] order() {
        return order == null ? null : order.clone();
    }

    /**
     * Marks of the boxes that are no main replicas.
     *
     * @return a copy; null = no box is marked
     */
    public boolean[] secondary() {
        return secondary == null ? null : secondary.clone();
    }

    /** The columns as the native part reads them. */
    Structs.EntryBatch struct() {
        check("numbers", numbers == null ? boxCount() : numbers.length);
        check("order", order == null ? boxCount() : order.length);
        check("secondary", secondary == null ? boxCount() : secondary.length);
        Structs.EntryBatch struct = new Structs.EntryBatch();
        struct.count = entries.size();
        struct.boxRanges = boxRanges.toArray();
        struct.boxOffsets = boxOffsets.toArray();
        struct.boxSizes = boxSizes.toArray();
        struct.numbers = numbers;
        struct.order = order;
        struct.secondary = marks();
        struct.digests = digests();
        addNumbers(struct);
        addTexts(struct);
        return struct;
    }

    private void addNumbers(Structs.EntryBatch struct) {
        LongList shapes = new LongList();
        LongList shapeOffsets = new LongList();
        shapeOffsets.add(0);
        for (Entry entry : entries) {
            shapes.addAll(entry.shape);
            shapeOffsets.add(shapes.size());
        }
        struct.shapes = shapes.toArray();
        struct.shapeOffsets = shapeOffsets.toArray();
        struct.dtypes = entries.stream().mapToInt(entry -> entry.dtype == null ? 0 : entry.dtype.number()).toArray();
        struct.kinds = entries.stream().mapToInt(entry -> entry.kind.number()).toArray();
        struct.objectSizes = entries.stream().mapToLong(entry -> entry.objectSize).toArray();
    }

    private void addTexts(Structs.EntryBatch struct) {
        Text.Blob names = Text.Blob.ofTexts(names());
        struct.names = names.bytes;
        struct.nameOffsets = names.offsets;
        Text.Blob paths = Text.Blob.ofTexts(entries.stream().map(Entry::path).collect(Collectors.toList()));
        struct.paths = paths.bytes;
        struct.pathOffsets = paths.offsets;
        Text.Blob attributes = new Text.Blob(entries.stream().map(e -> e.attributes).collect(Collectors.toList()));
        if (attributes.bytes.length > 0) {
            struct.attributes = attributes.bytes;
            struct.attributeOffsets = attributes.offsets;
        }
    }

    private void check(String column, int length) {
        if (length != boxCount()) {
            throw Invalid.parameter(column, column + " has " + length + " values for " + boxCount() + " boxes");
        }
    }

    private byte[] marks() {
        if (secondary == null) {
            return null;
        }
        byte[] marks = new byte[secondary.length];
        for (int i = 0; i < marks.length; i++) {
            marks[i] = (byte) (secondary[i] ? 1 : 0);
        }
        return marks;
    }

    /** 16 bytes per entry; null when no entry has a digest. */
    private byte[] digests() {
        if (entries.stream().allMatch(entry -> entry.digest == null)) {
            return null;
        }
        byte[] all = new byte[DIGEST_BYTES * entries.size()];
        for (int i = 0; i < entries.size(); i++) {
            byte[] digest = entries.get(i).digest;
            if (digest != null) {
                System.arraycopy(digest, 0, all, DIGEST_BYTES * i, DIGEST_BYTES);
            }
        }
        return all;
    }

    /** What the native part copied of a plan. */
    static EntryBatch of(Structs.EntryBatch from) {
        EntryBatch batch = new EntryBatch();
        if (from.count == 0) {
            return batch;
        }
        for (int i = 0; i < from.count; i++) {
            batch.entries.add(entry(from, i));
            batch.boxRanges.add(from.boxRanges[i + 1]);
            long ndim = from.shapeOffsets[i + 1] - from.shapeOffsets[i];
            batch.valueOffsets.add(batch.valueOffsets.get(i) + (from.boxRanges[i + 1] - from.boxRanges[i]) * ndim);
        }
        batch.boxOffsets.addAll(from.boxOffsets);
        batch.boxSizes.addAll(from.boxSizes);
        batch.numbers = from.numbers;
        batch.order = batch.boxCount() == 0 ? null : from.order;
        batch.secondary = batch.boxCount() == 0 ? null : marked(from.secondary);
        return batch;
    }

    private static Entry entry(Structs.EntryBatch from, int i) {
        byte[] digest = from.digests == null ? null
                : Arrays.copyOfRange(from.digests, DIGEST_BYTES * i, DIGEST_BYTES * (i + 1));
        return new Entry(Text.of(part(from.names, from.nameOffsets, i)),
                from.dtypes[i] == 0 ? null : DType.of(from.dtypes[i]),
                Arrays.copyOfRange(from.shapes, (int) from.shapeOffsets[i], (int) from.shapeOffsets[i + 1]),
                Kind.of(from.kinds[i]), from.objectSizes[i], Text.of(part(from.paths, from.pathOffsets, i)),
                part(from.attributes, from.attributeOffsets, i),
                digest == null || Arrays.equals(digest, new byte[DIGEST_BYTES]) ? null : digest);
    }

    private static boolean[] marked(byte[] marks) {
        if (marks == null) {
            return null;
        }
        boolean[] marked = new boolean[marks.length];
        for (int i = 0; i < marked.length; i++) {
            marked[i] = marks[i] != 0;
        }
        return marked;
    }

    private static byte[] part(byte[] blob, long[] offsets, int i) {
        return offsets == null ? new byte[0] : Arrays.copyOfRange(blob, (int) offsets[i], (int) offsets[i + 1]);
    }
}
