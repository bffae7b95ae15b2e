// SPDX-License-Identifier: Apache-2.0
// Tensors of the host program, as entries of a state.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.hsdp.DeviceMemory;
import io.shardwright.hsdp.HsdpParam;
import io.shardwright.hsdp.HsdpUnit;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.TensorAccess;
import io.shardwright.internal.Uses;
import io.shardwright.layout.Box;
import io.shardwright.layout.GridShard;
import io.shardwright.layout.Layout;
import io.shardwright.layout.Piece;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * A tensor of the host program: memory, element type and shape, and which part of a larger tensor it is. Immutable; the memory
 * is borrowed. Bytes are little-endian whatever the order of the buffer says. Direct buffers and library tensors are used in
 * place; heap arrays and buffers are copied before a save and copied back after a load. Memory of a device is used where it lies,
 * by units that have theirs there ({@link HsdpParam#of}, {@link HsdpUnit#addGrads}) and by states that have shards of such units
 * ({@link State#add}).
 */
public final class HostTensor {
    static {
        TensorAccess.set((name, tensor, uses) -> tensor.dense(name, uses));
    }

    private final HostMemory memory;
    private final DType dtype;
    private final long[] shape;
    private long[] strides;
    private Kind kind = Kind.AUTO;
    private long[] globalShape;
    private List<Box> boxes = Collections.emptyList();
    private long[] localOffsets = {};
    private Layout layout;
    private int rank;
    private long[] gridFragments;
    private long[] gridIndex;
    private long[] fragments;
    private boolean replica;

    private HostTensor(HostMemory memory, DType dtype, long[] shape) {
        this.memory = memory;
        this.dtype = Objects.requireNonNull(dtype, "dtype");
        this.shape = shape.clone();
    }

    private HostTensor(HostTensor other) {
        this(other.memory, other.dtype, other.shape);
        strides = other.strides;
        kind = other.kind;
        globalShape = other.globalShape;
        boxes = other.boxes;
        localOffsets = other.localOffsets;
        layout = other.layout;
        rank = other.rank;
        gridFragments = other.gridFragments;
        gridIndex = other.gridIndex;
        fragments = other.fragments;
        replica = other.replica;
    }

    /**
     * The remaining bytes of a buffer, direct or not. A read-only buffer is refused as the target of a load.
     *
     * @param dtype element type
     * @param buffer the bytes
     * @param shape extents
     * @return a whole row-major tensor
     */
    public static HostTensor of(DType dtype, ByteBuffer buffer, long... shape) {
        return new HostTensor(HostMemory.of(buffer), dtype, shape);
    }

    /**
     * Memory of the library, of any size. The tensor stays open until the state is closed.
     *
     * @param tensor the memory
     * @return a whole row-major tensor of its shape
     */
    public static HostTensor of(Tensor tensor) {
        return new HostTensor(HostMemory.of(tensor), tensor.dtype(), tensor.shape());
    }

    /**
     * Memory by its address, on a device or of the host. What wrote it has ended: streams of a device are not waited for. It is
     * there, and nobody else writes it, as long as it is used: by a unit until that is sealed, or the gradients were reduced; by
     * a state as long as that, or a job with it, is open.
     *
     * @param dtype element type
     * @param memory address and device
     * @param shape extents
     * @return a whole row-major tensor
     */
    public static HostTensor of(DType dtype, DeviceMemory memory, long... shape) {
        return new HostTensor(HostMemory.of(memory), dtype, shape);
    }

    /**
     * An array of float, double, long, int, short or byte (int8).
     *
     * @param array the elements
     * @param shape extents; none = one dimension
     * @return a whole row-major tensor
     * @throws InvalidArgumentException for another type
     */
    public static HostTensor of(Object array, long... shape) {
        DType dtype = HostMemory.dtypeOf(array);
        if (dtype == null) {
            throw Invalid.parameter("array",
                    (array == null ? "null" : array.getClass().getTypeName()) + " is no array of numbers");
        }
        long[] extents = shape.length > 0 ? shape : new long[] {java.lang.reflect.Array.getLength(array)};
        return new HostTensor(HostMemory.ofArray(array), dtype, extents);
    }

    /**
     * The same with strides.
     *
     * @param values distance of neighbours per dimension, in elements
     * @return a new value
     */
    public HostTensor strides(long... values) {
        HostTensor made = new HostTensor(this);
        made.strides = values.clone();
        return made;
    }

    /**
     * The same with another kind.
     *
     * @param value who holds the entry
     * @return a new value
     */
    public HostTensor kind(Kind value) {
        HostTensor made = new HostTensor(this);
        made.kind = Objects.requireNonNull(value, "kind");
        return made;
    }

    /**
     * This tensor as one box of a larger one.
     *
     * @param global extents of the whole tensor
     * @param offsets where this tensor begins in it
     * @return a new value
     */
    public HostTensor partOf(long[] global, long... offsets) {
        return partOf(global, List.of(new Box(offsets, shape)), 0);
    }

    /**
     * The memory as several boxes of a larger tensor.
     *
     * @param global extents of the whole tensor
     * @param parts the boxes
     * @param starts element of the local memory where each box starts, as many as boxes
     * @return a new value
     */
    public HostTensor partOf(long[] global, List<Box> parts, long... starts) {
        if (parts.size() != starts.length) {
            throw Invalid.parameter("starts", starts.length + " starts for " + parts.size() + " boxes");
        }
        HostTensor made = new HostTensor(this);
        made.globalShape = global.clone();
        made.boxes = List.copyOf(parts);
        made.localOffsets = starts.clone();
        made.layout = null;
        made.gridFragments = null;
        made.gridIndex = null;
        made.fragments = null;
        return made;
    }

    /**
     * This tensor as a shard of Megatron Core, which is a flat range where the shard has one.
     *
     * @param shard where it lies
     * @return a new value
     * @throws InvalidArgumentException for a shard that does not fit together
     * @throws io.shardwright.errors.OutOfRangeException when shard or range leave the tensor
     */
    public HostTensor partOf(GridShard shard) {
        List<Piece> held = shard.pieces();
        HostTensor made = partOf(shard.globalShape(), held.stream().map(Piece::box).toList(),
                held.stream().mapToLong(Piece::localOffset).toArray());
        made.fragments = shard.fragments();
        return made;
    }

    /**
     * The same with the parts of which its boxes are cut once more, as flat ranges are; mappings that split each part ask
     * for them.
     *
     * @param counts into how many equal parts each axis of the whole tensor is cut, 0 where it is no regular cut
     * @return a new value
     * @throws InvalidArgumentException for another number of axes, and for a part of a grid
     */
    public HostTensor fragments(long... counts) {
        int axes = globalShape == null ? shape.length : globalShape.length;
        if (gridFragments != null || counts.length != axes) {
            throw Invalid.parameter("fragments",
                    counts.length + " fragments beside a grid, or for " + axes + " dimensions");
        }
        HostTensor made = new HostTensor(this);
        made.fragments = counts.clone();
        return made;
    }

    /**
     * This tensor as what a rank holds of a larger one under a layout; it has {@link Layout#localShape}. The state keeps
     * the layout, by which saves are planned.
     *
     * @param global extents of the whole tensor
     * @param layout the rule; it is open until the state is built
     * @param rank global rank, the one that saves; layouts of another rank than the first of a state count as their boxes
     * @return a new value
     */
    public HostTensor partOf(long[] global, Layout layout, int rank) {
        List<Piece> held = layout.pieces(global, rank);
        return partOf(global, held.stream().map(Piece::box).toList(),
                held.stream().mapToLong(Piece::localOffset).toArray()).layout(layout, rank);
    }

    /**
     * The same boxes of a larger tensor as what a layout gives to a rank; building the state refuses other boxes.
     *
     * @param layout the rule; it is open until the state is built
     * @param rank global rank, as in {@link #partOf(long[], Layout, int)}
     * @return a new value
     * @throws InvalidArgumentException for a whole tensor, which has no boxes
     */
    public HostTensor layout(Layout layout, int rank) {
        if (globalShape == null) {
            throw Invalid.parameter("layout", "the tensor is whole; partOf gives it boxes or a layout");
        }
        HostTensor made = new HostTensor(this);
        made.layout = Objects.requireNonNull(layout, "layout");
        made.rank = rank;
        // Also where a rank holds all of it: the kind must be the same on every rank of the layout.
        made.kind = kind == Kind.AUTO ? Kind.SHARDED : kind;
        return made;
    }

    /**
     * This tensor as one part of a grid, as Megatron Core describes shards.
     *
     * @param fragments into how many equal parts each axis of the whole tensor is cut
     * @param index the part that this tensor is, on each axis; values beyond its dimensions come first and are axes that it
     *     lacks and has extent 1 on
     * @return a new value
     * @throws InvalidArgumentException for counts that do not fit together
     */
    public HostTensor gridPart(long[] fragments, long... index) {
        if (fragments.length != index.length || fragments.length < shape.length) {
            throw Invalid.parameter("index", fragments.length + " fragments and " + index.length + " indices for "
                    + shape.length + " dimensions");
        }
        HostTensor made = new HostTensor(this);
        made.globalShape = null;
        made.boxes = Collections.emptyList();
        made.localOffsets = new long[0];
        made.layout = null;
        made.gridFragments = fragments.clone();
        made.gridIndex = index.clone();
        made.fragments = null;
        return made;
    }

    /**
     * The same as a replica: another rank saves it, loads fill it.
     *
     * @param value whether it is one
     * @return a new value
     */
    public HostTensor replica(boolean value) {
        HostTensor made = new HostTensor(this);
        made.replica = value;
        return made;
    }

    /**
     * Element type.
     *
     * @return the type
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * Extents of the local memory.
     *
     * @return a copy
     */
    public long[] shape() {
        return shape.clone();
    }

    /**
     * The bytes in memory now; for heap arrays those of the last save or load.
     *
     * @return a little-endian view of up to 2 GiB
     * @throws UnimplementedException for memory that was given by its address
     */
    public ByteBuffer bytes() {
        return memory.isReadOnly() ? memory.bytes().asReadOnlyBuffer() : memory.bytes();
    }

    HostMemory memory() {
        return memory;
    }

    Kind kind() {
        return kind;
    }

    private TensorAccess.Dense dense(String name, Uses uses) {
        check(name);
        if (strides != null || globalShape != null || gridFragments != null) {
            throw Invalid.entry(name, "the tensor is strided or part of a larger one; it must be dense and whole");
        }
        memory.beforeSave();
        return new TensorAccess.Dense(memory.address(uses), memory.byteSize(), dtype, shape.clone(),
                memory.deviceType(), memory.deviceId());
    }

    /** Strides, row-major where none were given. */
    long[] stridesOrDense() {
        if (strides != null) {
            return strides;
        }
        long[] dense = new long[shape.length];
        long step = 1;
        for (int d = shape.length - 1; d >= 0; d--) {
            dense[d] = step;
            step *= Math.max(1, shape[d]);
        }
        return dense;
    }

    boolean isStrided() {
        return strides != null;
    }

    TensorColumns.Form form() {
        if (gridFragments != null) {
            return TensorColumns.Form.GRIDS;
        }
        return globalShape == null ? TensorColumns.Form.WHOLE : TensorColumns.Form.BOXES;
    }

    long[] gridFragments() {
        return gridFragments;
    }

    long[] gridIndex() {
        return gridIndex;
    }

    /** null = nobody says. */
    long[] fragments() {
        return fragments;
    }

    boolean isReplica() {
        return replica;
    }

    /** null = whole. */
    long[] globalShape() {
        return globalShape;
    }

    List<Box> boxes() {
        return boxes;
    }

    long[] localOffsets() {
        return localOffsets;
    }

    /** null = the boxes follow no layout. */
    Layout layout() {
        return layout;
    }

    /** Global rank to which the layout gives the boxes. */
    int rank() {
        return rank;
    }

    /** Refuses boxes that the layout does not give to the rank. */
    void checkLayout(String name) {
        List<Box> given = layout.pieces(globalShape, rank).stream().map(Piece::box).toList();
        if (!held(boxes).equals(held(given))) {
            throw Invalid.entry(name,
                    "rank " + rank + " holds " + boxes + " by its boxes and " + given + " by its layout");
        }
    }

    private static Set<Box> held(List<Box> boxes) {
        return boxes.stream().filter(box -> Arrays.stream(box.sizes()).noneMatch(size -> size == 0))
                .collect(Collectors.toSet());
    }

    /** Refuses what native code would read beyond the memory, with the entry's name. */
    void check(String name) {
        if (strides != null && strides.length != shape.length) {
            throw Invalid.entry(name, strides.length + " strides for " + shape.length + " dimensions");
        }
        for (Box box : boxes) {
            if (box.sizes().length != globalShape.length) {
                throw Invalid.entry(name,
                        "box " + box + " does not have the dimensions of " + Arrays.toString(globalShape));
            }
        }
        checkMemory(name);
    }

    private void checkMemory(String name) {
        if (memory.place() != null) {
            if (memory.place().address() == 0 && elements(name) != 0) {
                throw Invalid.entry(name, "address 0 for shape " + Arrays.toString(shape));
            }
            return;
        }
        // To the library no bytes mean as many as the shape needs.
        if (strides != null && memory.byteSize() == 0 && elements(name) != 0) {
            throw Invalid.entry(name, "no memory for shape " + Arrays.toString(shape));
        }
        if (strides == null && dtype.byteSize(elements(name)) != memory.byteSize()) {
            throw Invalid.entry(name, memory.byteSize() + " bytes do not fit shape "
                    + Arrays.toString(shape) + " of " + dtype);
        }
    }

    private long elements(String name) {
        long count = 1;
        for (long extent : shape) {
            if (extent < 0 || extent != 0 && count > Long.MAX_VALUE / 16 / extent) {
                throw Invalid.entry(name, "shape " + Arrays.toString(shape) + " is no shape");
            }
            count *= extent;
        }
        return count;
    }

    @Override
    public String toString() {
        return "HostTensor(" + dtype + ", " + Arrays.toString(shape) + ")";
    }
}
