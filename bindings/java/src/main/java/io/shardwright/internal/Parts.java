// SPDX-License-Identifier: Apache-2.0
// Results of the library that come as buffers.
package io.shardwright.internal;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** Copies a native buffer and releases it. */
public final class Parts {
    private Parts() {}

    /** All bytes as one array. */
    public static byte[] bytes(long buffer) {
        try {
            return shw_nativeJNI.copy(shw_nativeJNI.shw_buffer_data(buffer), shw_nativeJNI.shw_buffer_size(buffer));
        } finally {
            shw_nativeJNI.shw_buffer_release(buffer);
        }
    }

    /** All bytes as text. */
    public static String text(long buffer) {
        return Text.of(bytes(buffer));
    }

    /** One array per part. */
    public static List<byte[]> all(long buffer) {
        try {
            int count = Math.toIntExact(shw_nativeJNI.shw_buffer_part_count(buffer));
            List<byte[]> parts = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                parts.add(shw_nativeJNI.copy(shw_nativeJNI.shw_buffer_part_data(buffer, i),
                        shw_nativeJNI.shw_buffer_part_size(buffer, i)));
            }
            return parts;
        } finally {
            shw_nativeJNI.shw_buffer_release(buffer);
        }
    }

    /** Each part as numbers of 8 bytes. */
    public static List<long[]> longs(long buffer) {
        List<long[]> parts = new ArrayList<>();
        for (byte[] part : all(buffer)) {
            parts.add(longsOf(part));
        }
        return parts;
    }

    /** Bytes as numbers of 8 bytes. */
    public static long[] longsOf(byte[] bytes) {
        long[] values = new long[bytes.length / Long.BYTES];
        ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()).asLongBuffer().get(values);
        return values;
    }

    /** All bytes as numbers of 4 bytes. */
    public static int[] ints(long buffer) {
        return intsOf(bytes(buffer));
    }

    /** Bytes as numbers of 4 bytes. */
    public static int[] intsOf(byte[] bytes) {
        int[] values = new int[bytes.length / Integer.BYTES];
        ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()).asIntBuffer().get(values);
        return values;
    }

    /** One text per part. */
    public static List<String> texts(long buffer) {
        List<String> texts = new ArrayList<>();
        for (byte[] part : all(buffer)) {
            texts.add(Text.of(part));
        }
        return texts;
    }
}
