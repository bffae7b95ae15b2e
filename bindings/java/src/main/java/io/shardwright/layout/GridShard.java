// SPDX-License-Identifier: Apache-2.0
// Shards of grids.
package io.shardwright.layout;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Structs;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

/**
 * One shard of a tensor as Megatron Core describes it: a local shape that lacks some leading axes of the global tensor,
 * where it lies, and into how many equal parts each axis is cut. Nothing is checked before it is asked for boxes. Immutable.
 */
public final class GridShard {
    private final long[] localShape;
    private final int prepended;
    private final long[] globalShape;
    private final long[] offsets;
    private final long[] fragments;
    private final long[] range;
    private final boolean shapeMayDiffer;

    private GridShard(long[] localShape, int prepended, long[][] place, long[] range, boolean shapeMayDiffer) {
        this.localShape = localShape;
        this.prepended = prepended;
        this.globalShape = place[0];
        this.offsets = place[1];
        this.fragments = place[2];
        this.range = range;
        this.shapeMayDiffer = shapeMayDiffer;
    }

    /**
     * A shard that lies anywhere.
     *
     * @param localShape extents of the local tensor
     * @param prepended leading axes of the global tensor that it lacks
     * @param globalShape extents of the whole tensor
     * @param offsets first element per axis
     * @param fragments equal parts per axis; null = irregular grid
     * @return the shard
     * @throws InvalidArgumentException when the lengths do not fit together
     */
    public static GridShard of(long[] localShape, int prepended, long[] globalShape, long[] offsets, long[] fragments) {
        int axes = localShape.length + prepended;
        if (prepended < 0 || globalShape.length != axes || offsets.length != axes
                || (fragments != null && fragments.length != axes)) {
            throw Invalid.parameter("globalShape", localShape.length + " local and " + prepended
                    + " prepended axes do not fit a global shape of " + globalShape.length);
        }
        long[] parts = fragments == null ? null : fragments.clone();
        return new GridShard(localShape.clone(), prepended,
                new long[][] {globalShape.clone(), offsets.clone(), parts}, null, false);
    }

    /**
     * The regular shard at places of the grid.
     *
     * @param localShape extents of the local tensor
     * @param prepended leading axes of the global tensor that it lacks
     * @param places axis, index and count, one behind the other: it is part index of count on that axis; the last place of
     *     an axis counts
     * @return the shard
     * @throws InvalidArgumentException for an axis or a part that is not there
     */
    public static GridShard at(long[] localShape, int prepended, long... places) {
        if (places.length % 3 != 0) {
            throw Invalid.parameter("places", "a place is axis, index and count");
        }
        NativeLoader.load();
        Structs.GridShard shard = new Structs.GridShard();
        shard.localShape = localShape;
        shard.localNdim = localShape.length;
        shard.prepended = prepended;
        long[] made = shw_nativeJNI.gridPlace(shard, places);
        int axes = made.length / 3;
        return new GridShard(localShape.clone(), prepended,
                new long[][] {Arrays.copyOf(made, axes), Arrays.copyOfRange(made, axes, 2 * axes),
                        Arrays.copyOfRange(made, 2 * axes, 3 * axes)}, null, false);
    }

    /**
     * This shard with a flat range only.
     *
     * @param begin first row-major element of the local shape that the rank holds
     * @param end element behind the last one
     * @return a new value
     */
    public GridShard flatRange(long begin, long end) {
        return new GridShard(localShape, prepended, new long[][] {globalShape, offsets, fragments},
                new long[] {begin, end - begin}, shapeMayDiffer);
    }

    /**
     * This shard, whose fragments times local shape need not be the global shape.
     *
     * @return a new value
     */
    public GridShard shapeMayDiffer() {
        return new GridShard(localShape, prepended, new long[][] {globalShape, offsets, fragments}, range, true);
    }

    /**
     * Extents of the whole tensor.
     *
     * @return a copy
     */
    public long[] globalShape() {
        return globalShape.clone();
    }

    /**
     * First element per axis.
     *
     * @return a copy
     */
    public long[] offsets() {
        return offsets.clone();
    }

    /**
     * Equal parts per axis.
     *
     * @return a copy; null for an irregular grid
     */
    public long[] fragments() {
        return fragments == null ? null : fragments.clone();
    }

    /**
     * What the rank holds, after a check of everything: one box, or those of the flat range.
     *
     * @return the pieces
     * @throws InvalidArgumentException for parts that do not agree
     * @throws OutOfRangeException when shard or range leave the tensor
     */
    public List<Piece> pieces() {
        NativeLoader.load();
        return Piece.listOf(shw_nativeJNI.gridPieces(struct()), globalShape.length);
    }

    /**
     * How Megatron Core up to 0.14 stored the flat range: an entry with one axis per part number and one for the elements
     * of a part.
     *
     * @return shape of the entry; the range as a box in it comes from {@link #flatChunk}
     */
    public long[] flatEntryShape() {
        long[] found = flatEntry();
        return Arrays.copyOf(found, found.length / 3);
    }

    /**
     * The flat range as a box in its flattened entry.
     *
     * @return the box
     */
    public Box flatChunk() {
        long[] found = flatEntry();
        int axes = found.length / 3;
        return new Box(Arrays.copyOfRange(found, axes, 2 * axes), Arrays.copyOfRange(found, 2 * axes, 3 * axes));
    }

    /**
     * The boxes of a tensor that a chunk of its flattened entry holds.
     *
     * @param shape extents of the tensor
     * @param entryShape extents of the entry, one more
     * @param chunk box in the entry
     * @return the pieces; local offsets count the chunk's elements
     */
    public static List<Piece> flatEntryPieces(long[] shape, long[] entryShape, Box chunk) {
        if (entryShape.length != shape.length + 1 || chunk.sizes().length != entryShape.length) {
            throw Invalid.parameter("entryShape", "an entry of " + entryShape.length + " axes and a chunk of "
                    + chunk.sizes().length + " do not fit a tensor of " + shape.length);
        }
        long[] box = LongStream.concat(Arrays.stream(chunk.offsets()), Arrays.stream(chunk.sizes())).toArray();
        NativeLoader.load();
        return Piece.listOf(shw_nativeJNI.gridFlatPieces(shape, entryShape, box), shape.length);
    }

    /**
     * Which of equal parts of an axis meet one of other equal parts, exactly.
     *
     * @param stored how many parts are stored
     * @param wanted how many parts are wanted
     * @param index number of the wanted part
     * @return number of the first stored part and how many there are
     */
    public static long[] overlappingParts(long stored, long wanted, long index) {
        NativeLoader.load();
        return shw_nativeJNI.gridOverlap(stored, wanted, index);
    }

    private long[] flatEntry() {
        NativeLoader.load();
        return shw_nativeJNI.gridFlatEntry(struct());
    }

    private Structs.GridShard struct() {
        Structs.GridShard struct = new Structs.GridShard();
        struct.flags = (range == null ? 0 : shw_nativeConstants.SHW_GRID_FLAT)
                | (shapeMayDiffer ? shw_nativeConstants.SHW_GRID_SHAPE_MAY_DIFFER : 0);
        struct.localNdim = localShape.length;
        struct.prepended = prepended;
        struct.localShape = localShape;
        struct.globalShape = globalShape;
        struct.offsets = offsets;
        struct.fragments = fragments;
        if (range != null) {
            struct.flatBegin = range[0];
            struct.flatSize = range[1];
        }
        return struct;
    }
}
