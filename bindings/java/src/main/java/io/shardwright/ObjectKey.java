// SPDX-License-Identifier: Apache-2.0
// Names of byte objects that are cells of grids.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeJNI;
import java.util.Arrays;

/** What the name of such an object says, as in "key/shard_0.3_1.8". Immutable. */
public final class ObjectKey {
    private final String key;
    private final long[] index;
    private final long[] shape;

    /**
     * The cell of a grid.
     *
     * @param key what all cells share
     * @param index the cell
     * @param shape extents of the grid
     */
    public ObjectKey(String key, long[] index, long[] shape) {
        this.key = key;
        this.index = index.clone();
        this.shape = shape.clone();
    }

    /**
     * Takes a name apart; the last "/shard_" counts, so any key comes back.
     *
     * @param name the name
     * @return what it says; the last extent is -1 where older names leave it out
     * @throws InvalidArgumentException for another name
     */
    public static ObjectKey parse(String name) {
        NativeLoader.load();
        byte[] text = Text.bytes(name);
        long[] values = Parts.longsOf(Parts.bytes(shw_nativeJNI.shw_java_object_key_parse(text)));
        int axes = values.length / 2;
        return new ObjectKey(Text.of(Arrays.copyOf(text, (int) values[0])), Arrays.copyOfRange(values, 1, 1 + axes),
                Arrays.copyOfRange(values, 1 + axes, values.length));
    }

    /**
     * The name of the object.
     *
     * @return the text
     * @throws InvalidArgumentException for a cell outside the grid
     */
    public String name() {
        NativeLoader.load();
        if (index.length != shape.length) {
            throw Invalid.parameter("index", index.length + " indices in a grid of " + shape.length + " axes");
        }
        return Parts.text(shw_nativeJNI.shw_object_key(Text.bytes(key), index, shape, index.length));
    }

    /**
     * What all cells share.
     *
     * @return the text
     */
    public String key() {
        return key;
    }

    /**
     * The cell.
     *
     * @return a copy
     */
    public long[] index() {
        return index.clone();
    }

    /**
     * Extents of the grid.
     *
     * @return a copy
     */
    public long[] shape() {
        return shape.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ObjectKey that && key.equals(that.key) && Arrays.equals(index, that.index)
                && Arrays.equals(shape, that.shape);
    }

    @Override
    public int hashCode() {
        return 31 * (31 * key.hashCode() + Arrays.hashCode(index)) + Arrays.hashCode(shape);
    }

    @Override
    public String toString() {
        return key + Arrays.toString(index) + " of " + Arrays.toString(shape);
    }
}
