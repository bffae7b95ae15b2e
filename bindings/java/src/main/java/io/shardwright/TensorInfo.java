// SPDX-License-Identifier: Apache-2.0
// Facts about stored tensors.
package io.shardwright;

import io.shardwright.internal.Structs;
import java.util.Arrays;

/** One stored tensor. Immutable. */
public final class TensorInfo {
    private final String name;
    private final String path;
    private final DType dtype;
    private final long[] shape;
    private final Kind kind;
    private final int rank;
    private final long byteSize;
    private final long chunkCount;

    TensorInfo(String name, String path, long[] shape, Structs.TensorInfoColumns facts, int i) {
        this.name = name;
        this.path = path;
        this.shape = shape;
        dtype = DType.of(facts.dtype[i]);
        kind = Kind.of(facts.kind[i]);
        rank = facts.rank[i];
        byteSize = facts.byteSize[i];
        chunkCount = facts.chunkCount[i];
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
     * Who holds it.
     *
     * @return the kind
     */
    public Kind kind() {
        return kind;
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
