// SPDX-License-Identifier: Apache-2.0
// Parts of memory as buffers.
package io.shardwright.internal;

import io.shardwright.errors.OutOfRangeException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.function.Supplier;

/** What all views of tensors have: ranges that are checked, and little-endian buffers. */
public final class Slices {
    private Slices() {
    }

    /**
     * Checks a range.
     *
     * @param noun what is looked at, e.g. "tensor"
     * @param byteSize its bytes
     * @param offset first byte
     * @param size number of bytes
     * @throws OutOfRangeException when the range leaves it
     */
    public static void check(String noun, long byteSize, long offset, int size) {
        if (offset < 0 || size < 0 || offset > byteSize - size) {
            throw ShardwrightException.of(StatusCode.OUT_OF_RANGE,
                    "bytes " + offset + " to " + offset + " + " + size + " of a " + noun + " of " + byteSize + " bytes");
        }
    }

    /**
     * The size of one buffer over everything.
     *
     * @param byteSize bytes
     * @param instead what to use where they are too many
     * @return the size
     * @throws OutOfRangeException above 2 GiB
     */
    public static int whole(long byteSize, String instead) {
        if (byteSize > Integer.MAX_VALUE) {
            throw ShardwrightException.of(StatusCode.OUT_OF_RANGE, byteSize + " bytes do not fit one buffer; use " + instead);
        }
        return (int) byteSize;
    }

    /**
     * A little-endian view.
     *
     * @param size number of bytes; 0 has no memory
     * @param memory gives them
     * @return the view
     */
    public static ByteBuffer view(int size, Supplier<ByteBuffer> memory) {
        ByteBuffer bytes = size == 0 ? ByteBuffer.allocateDirect(0) : memory.get();
        return bytes.order(ByteOrder.LITTLE_ENDIAN);
    }
}
