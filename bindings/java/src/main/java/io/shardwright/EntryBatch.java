// SPDX-License-Identifier: Apache-2.0
// What a rank holds or wants, in flat columns.
package io.shardwright;

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
                throw ShardwrightException.invalid("boxes", "box " + box + " of " + entry.name + " does not have "
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

    /** The native columns of one call. */
    OptionStruct struct() {
        check("numbers", numbers == null ? boxCount() : numbers.length);
        check("order", order == null ? boxCount() : order.length);
        check("secondary", secondary == null ? boxCount() : secondary.length);
        int count = entries.size();
        int[] codes = new int[2 * count];
        LongList shapes = new LongList();
        LongList shapeOffsets = new LongList();
        LongList objectSizes = new LongList();
        shapeOffsets.add(0);
        for (int i = 0; i < count; i++) {
            Entry entry = entries.get(i);
            codes[i] = entry.dtype == null ? 0 : (int) entry.dtype.packed();
            codes[count + i] = entry.kind.number();
            shapes.addAll(entry.shape);
            shapeOffsets.add(shapes.size());
            objectSizes.add(entry.objectSize);
        }
        Text.Blob names = Text.Blob.ofTexts(names());
        Text.Blob paths = Text.Blob.ofTexts(entries.stream().map(Entry::path).collect(Collectors.toList()));
        Text.Blob attributes = new Text.Blob(entries.stream().map(e -> e.attributes).collect(Collectors.toList()));
        boolean plain = attributes.bytes.length == 0;
        long address = shw_nativeJNI.shw_java_entry_batch_create(count, names.bytes, names.offsets, codes,
                shapes.toArray(), shapeOffsets.toArray(), boxRanges.toArray(), boxOffsets.toArray(), boxSizes.toArray(),
                numbers, order, marks(), objectSizes.toArray(), paths.bytes, paths.offsets,
                plain ? null : attributes.bytes, plain ? null : attributes.offsets, digests());
        return new OptionStruct(address, shw_nativeJNI::shw_java_entry_batch_release);
    }

    private void check(String column, int length) {
        if (length != boxCount()) {
            throw ShardwrightException.invalid(column, column + " has " + length + " values for " + boxCount() + " boxes");
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

    /** The columns that planEntries of the native part gives, in the order of the C struct; null = no entries. */
    static EntryBatch of(Object[] columns) {
        EntryBatch batch = new EntryBatch();
        if (columns == null) {
            return batch;
        }
        PlanColumns from = new PlanColumns(columns);
        for (int i = 0; i < from.count(); i++) {
            batch.entries.add(from.entry(i));
            batch.boxRanges.add(from.boxRanges[i + 1]);
            long values = (from.boxRanges[i + 1] - from.boxRanges[i]) * from.ndim(i);
            batch.valueOffsets.add(batch.valueOffsets.get(i) + values);
        }
        batch.boxOffsets.addAll(from.boxOffsets);
        batch.boxSizes.addAll(from.boxSizes);
        batch.numbers = from.numbers;
        batch.order = from.order;
        batch.secondary = from.secondary();
        return batch;
    }

    /** What the native part copied of a plan. */
    private static final class PlanColumns {
        private final byte[] names;
        private final long[] nameOffsets;
        private final int[] dtypes;
        private final int[] kinds;
        private final long[] shapes;
        private final long[] shapeOffsets;
        final long[] boxRanges;
        final long[] boxOffsets;
        final long[] boxSizes;
        final long[] numbers;
        final long[] order;
        private final byte[] marks;
        private final long[] objectSizes;
        private final byte[] paths;
        private final long[] pathOffsets;
        private final byte[] attributes;
        private final long[] attributeOffsets;
        private final byte[] digests;

        PlanColumns(Object[] columns) {
            names = (byte[]) columns[0];
            nameOffsets = (long[]) columns[1];
            dtypes = (int[]) columns[2];
            kinds = (int[]) columns[3];
            shapes = (long[]) columns[4];
            shapeOffsets = (long[]) columns[5];
            boxRanges = (long[]) columns[6];
            boxOffsets = (long[]) columns[7];
            boxSizes = (long[]) columns[8];
            numbers = (long[]) columns[9];
            order = (long[]) columns[10];
            marks = (byte[]) columns[11];
            objectSizes = (long[]) columns[12];
            paths = (byte[]) columns[13];
            pathOffsets = (long[]) columns[14];
            attributes = (byte[]) columns[15];
            attributeOffsets = (long[]) columns[16];
            digests = (byte[]) columns[17];
        }

        int count() {
            return dtypes.length;
        }

        int ndim(int i) {
            return (int) (shapeOffsets[i + 1] - shapeOffsets[i]);
        }

        Entry entry(int i) {
            byte[] digest = digests == null ? null
                    : Arrays.copyOfRange(digests, DIGEST_BYTES * i, DIGEST_BYTES * (i + 1));
            return new Entry(Text.of(part(names, nameOffsets, i)), dtypes[i] == 0 ? null : DType.packed(dtypes[i]),
                    Arrays.copyOfRange(shapes, (int) shapeOffsets[i], (int) shapeOffsets[i + 1]), kind(kinds[i]),
                    objectSizes[i], Text.of(part(paths, pathOffsets, i)), part(attributes, attributeOffsets, i),
                    digest == null || Arrays.equals(digest, new byte[DIGEST_BYTES]) ? null : digest);
        }

        boolean[] secondary() {
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

        private static Kind kind(int number) {
            for (Kind kind : Kind.values()) {
                if (kind.number() == number) {
                    return kind;
                }
            }
            throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "kind " + number + " is newer than this binding");
        }
    }
}
