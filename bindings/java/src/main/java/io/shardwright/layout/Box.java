// SPDX-License-Identifier: Apache-2.0
// Boxes of tensors.
package io.shardwright.layout;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Invalid;
import java.util.Arrays;

/** A box inside a tensor: where it begins and how large it is, in elements per dimension. Immutable. */
public final class Box {
    private final long[] offsets;
    private final long[] sizes;

    /**
     * A box.
     *
     * @param offsets first element per dimension
     * @param sizes extent per dimension
     * @throws InvalidArgumentException when the two differ in length
     */
    public Box(long[] offsets, long[] sizes) {
        if (offsets.length != sizes.length) {
            throw Invalid.parameter("sizes", offsets.length + " offsets but " + sizes.length + " sizes");
        }
        this.offsets = offsets.clone();
        this.sizes = sizes.clone();
    }

    /**
     * First element per dimension.
     *
     * @return a copy
     */
    public long[] offsets() {
        return offsets.clone();
    }

    /**
     * Extent per dimension.
     *
     * @return a copy
     */
    public long[] sizes() {
        return sizes.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Box && Arrays.equals(((Box) other).offsets, offsets)
                && Arrays.equals(((Box) other).sizes, sizes);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(offsets) + Arrays.hashCode(sizes);
    }

    @Override
    public String toString() {
        return Arrays.toString(offsets) + "+" + Arrays.toString(sizes);
    }
}
