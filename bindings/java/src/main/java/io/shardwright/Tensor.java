// SPDX-License-Identifier: Apache-2.0
// Tensors in memory of the library.
package io.shardwright;

import io.shardwright.errors.OutOfRangeException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Slices;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * A dense row-major tensor of any size in memory of the library, as reads give it. The memory goes when the tensor was
 * closed, or can no longer be reached, and no view of it can be reached either: a view never points to freed memory.
 */
public final class Tensor extends Handle {
    /** Bytes of all slices but the last. */
    public static final int SLICE_BYTES = 1 << 30;

    private final long address;
    private final long byteSize;
    private final DType dtype;
    private final long[] shape;

    Tensor(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_owned_tensor_release);
        long[] facts = shw_nativeJNI.ownedTensor(handle);
        address = facts[0];
        byteSize = facts[1];
        dtype = DType.of((int) facts[2]);
        shape = Arrays.copyOfRange(facts, 3, facts.length);
    }

    /**
     * A tensor of zeros; memory is taken from the system when it is first touched.
     *
     * @param dtype element type
     * @param shape extents
     * @return the tensor
     */
    public static Tensor zeros(DType dtype, long... shape) {
        NativeLoader.load();
        return new Tensor(shw_nativeJNI.shw_owned_tensor_create(dtype.number(), shape, shape.length));
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
     * Extents.
     *
     * @return a copy
     */
    public long[] shape() {
        return shape.clone();
    }

    /**
     * Size of the packed elements.
     *
     * @return bytes
     */
    public long byteSize() {
        return byteSize;
    }

    /**
     * All bytes, row-major and little-endian, without a copy.
     *
     * @return a little-endian view
     * @throws OutOfRangeException above 2 GiB: use {@link #slices} or {@link #slice}
     */
    public ByteBuffer bytes() {
        return slice(0, Slices.whole(byteSize, "slices() or slice(offset, size)"));
    }

    /**
     * A part of the bytes, without a copy.
     *
     * @param offset first byte
     * @param size number of bytes
     * @return a little-endian view
     * @throws OutOfRangeException when it leaves the tensor
     */
    public ByteBuffer slice(long offset, int size) {
        Slices.check("tensor", byteSize, offset, size);
        // Slices and duplicates of the view keep it reachable, so the loan ends with the last of them.
        return Slices.view(size, () -> lend(h -> (ByteBuffer) shw_nativeJNI.view(address + offset, size)));
    }

    /**
     * All bytes in order, as views of {@link #SLICE_BYTES}, the last one shorter.
     *
     * @return little-endian views
     */
    public Iterable<ByteBuffer> slices() {
        return () -> new Iterator<>() {
            private long at;

            @Override
            public boolean hasNext() {
                return at < byteSize;
            }

            @Override
            public ByteBuffer next() {
                if (!hasNext()) {
                    throw new NoSuchElementException();
                }
                long from = at;
                int size = (int) Math.min(SLICE_BYTES, byteSize - from);
                at += size;
                return slice(from, size);
            }
        };
    }

    /**
     * Copy of all bytes.
     *
     * @return row-major and little-endian
     * @throws OutOfRangeException above 2 GiB
     */
    public byte[] toByteArray() {
        ByteBuffer view = bytes();
        byte[] copy = new byte[view.remaining()];
        view.get(copy);
        return copy;
    }

    /** First byte; for native calls between enter and leave. */
    long address() {
        return address;
    }

    @Override
    protected String facts() {
        return dtype + ", " + Arrays.toString(shape);
    }
}
