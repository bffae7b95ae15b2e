// SPDX-License-Identifier: Apache-2.0
// Element types.
package io.shardwright;

/** Element type by torch's name. Immutable. */
public final class DType {
    /** 32-bit float. */
    public static final DType FLOAT32 = new DType(2, 32);
    /** 64-bit float. */
    public static final DType FLOAT64 = new DType(2, 64);
    /** Brain float. */
    public static final DType BFLOAT16 = new DType(4, 16);
    /** 32-bit integer. */
    public static final DType INT32 = new DType(0, 32);
    /** 64-bit integer. */
    public static final DType INT64 = new DType(0, 64);
    /** Byte without sign. */
    public static final DType UINT8 = new DType(1, 8);
    /** Byte with sign. */
    public static final DType INT8 = new DType(0, 8);
    /** 16-bit integer. */
    public static final DType INT16 = new DType(0, 16);
    /** 16-bit float. */
    public static final DType FLOAT16 = new DType(2, 16);
    /** One byte, 0 or 1. */
    public static final DType BOOL = new DType(6, 8);

    private final int code;
    private final int bits;

    private DType(int code, int bits) {
        this.code = code;
        this.bits = bits;
    }

    /**
     * From torch's name.
     *
     * @param name e.g. {@code bfloat16}
     * @return the type
     * @throws InvalidArgumentException for other texts
     */
    public static DType named(String name) {
        NativeLoader.load();
        return packed(shw_nativeJNI.shw_dtype_parse(Text.terminated(name)));
    }

    static DType packed(long number) {
        return new DType((int) (number & 0xFF), (int) (number >> 8));
    }

    short code() {
        return (short) code;
    }

    short bits() {
        return (short) bits;
    }

    long packed() {
        return code + 256L * bits;
    }

    /**
     * torch's name.
     *
     * @return the name
     */
    public String dtypeName() {
        NativeLoader.load();
        return Text.of(shw_nativeJNI.shw_dtype_name((short) code, (short) bits));
    }

    /**
     * Bytes of packed elements.
     *
     * @param count number of elements
     * @return bytes, rounded up
     */
    public long byteSize(long count) {
        return count / 8 * bits + (count % 8 * bits + 7) / 8;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DType && ((DType) other).packed() == packed();
    }

    @Override
    public int hashCode() {
        return Long.hashCode(packed());
    }

    @Override
    public String toString() {
        return dtypeName();
    }
}
