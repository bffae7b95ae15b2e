// SPDX-License-Identifier: Apache-2.0
// Facts about stored tensors.
package io.shardwright;

import java.util.Arrays;

/** One stored tensor. Immutable. */
public final class TensorInfo {
    private final String name;
    private final String path;
    private final DType dtype;
    private final long[] shape;
    private final int rank;
    private final long byteSize;
    private final long chunkCount;

    /** facts: those of the native part from `at` on. */
    TensorInfo(String name, String path, long[] shape, long[] facts, int at) {
        this.name = name;
        this.path = path;
        this.shape = shape;
        dtype = DType.packed(facts[at]);
        rank = (int) facts[at + 3];
        byteSize = facts[at + 5];
        chunkCount = facts[at + 7];
    }

    /**
     * Fully qualified name.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * Nested path.
     *
     * @return JSON array text; empty = flat
     */
    public String path() {
        return path;
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
     * Owner of a rank-local tensor.
     *
     * @return the rank, else -1
     */
    public int rank() {
        return rank;
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
     * Stored chunks.
     *
     * @return their number
     */
    public long chunkCount() {
        return chunkCount;
    }

    @Override
    public String toString() {
        return name + ": " + dtype + " " + Arrays.toString(shape);
    }
}
