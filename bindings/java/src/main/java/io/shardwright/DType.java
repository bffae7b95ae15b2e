// SPDX-License-Identifier: Apache-2.0
// Element types.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;

/** Element type by torch's name. Immutable. */
public final class DType {
    /** One byte, 0 or 1. */
    public static final DType BOOL = new DType(shw_nativeConstants.SHW_BOOL);
    /** 8-bit integer. */
    public static final DType INT8 = new DType(shw_nativeConstants.SHW_INT8);
    /** 16-bit integer. */
    public static final DType INT16 = new DType(shw_nativeConstants.SHW_INT16);
    /** 32-bit integer. */
    public static final DType INT32 = new DType(shw_nativeConstants.SHW_INT32);
    /** 64-bit integer. */
    public static final DType INT64 = new DType(shw_nativeConstants.SHW_INT64);
    /** 8-bit integer without sign. */
    public static final DType UINT8 = new DType(shw_nativeConstants.SHW_UINT8);
    /** 16-bit integer without sign. */
    public static final DType UINT16 = new DType(shw_nativeConstants.SHW_UINT16);
    /** 32-bit integer without sign. */
    public static final DType UINT32 = new DType(shw_nativeConstants.SHW_UINT32);
    /** 64-bit integer without sign. */
    public static final DType UINT64 = new DType(shw_nativeConstants.SHW_UINT64);
    /** 16-bit float. */
    public static final DType FLOAT16 = new DType(shw_nativeConstants.SHW_FLOAT16);
    /** Brain float, 16 bits. */
    public static final DType BFLOAT16 = new DType(shw_nativeConstants.SHW_BFLOAT16);
    /** 32-bit float. */
    public static final DType FLOAT32 = new DType(shw_nativeConstants.SHW_FLOAT32);
    /** 64-bit float. */
    public static final DType FLOAT64 = new DType(shw_nativeConstants.SHW_FLOAT64);
    /** Complex number of two 16-bit floats. */
    public static final DType COMPLEX32 = new DType(shw_nativeConstants.SHW_COMPLEX32);
    /** Complex number of two 32-bit floats. */
    public static final DType COMPLEX64 = new DType(shw_nativeConstants.SHW_COMPLEX64);
    /** Complex number of two 64-bit floats. */
    public static final DType COMPLEX128 = new DType(shw_nativeConstants.SHW_COMPLEX128);
    /** 8-bit float, 3 bits of exponent and 4 of mantissa. */
    public static final DType FLOAT8_E3M4 = new DType(shw_nativeConstants.SHW_FLOAT8_E3M4);
    /** 8-bit float, 4 bits of exponent and 3 of mantissa. */
    public static final DType FLOAT8_E4M3 = new DType(shw_nativeConstants.SHW_FLOAT8_E4M3);
    /** 8-bit float, 4 bits of exponent and 3 of mantissa, finite, one zero, bias 11. */
    public static final DType FLOAT8_E4M3B11FNUZ = new DType(shw_nativeConstants.SHW_FLOAT8_E4M3B11FNUZ);
    /** 8-bit float, 4 bits of exponent and 3 of mantissa, finite. */
    public static final DType FLOAT8_E4M3FN = new DType(shw_nativeConstants.SHW_FLOAT8_E4M3FN);
    /** 8-bit float, 4 bits of exponent and 3 of mantissa, finite, one zero. */
    public static final DType FLOAT8_E4M3FNUZ = new DType(shw_nativeConstants.SHW_FLOAT8_E4M3FNUZ);
    /** 8-bit float, 5 bits of exponent and 2 of mantissa. */
    public static final DType FLOAT8_E5M2 = new DType(shw_nativeConstants.SHW_FLOAT8_E5M2);
    /** 8-bit float, 5 bits of exponent and 2 of mantissa, finite, one zero. */
    public static final DType FLOAT8_E5M2FNUZ = new DType(shw_nativeConstants.SHW_FLOAT8_E5M2FNUZ);
    /** 8-bit float, 8 bits of exponent and 0 of mantissa, finite, no sign. */
    public static final DType FLOAT8_E8M0FNU = new DType(shw_nativeConstants.SHW_FLOAT8_E8M0FNU);
    /** 6-bit float, 2 bits of exponent and 3 of mantissa, finite. */
    public static final DType FLOAT6_E2M3FN = new DType(shw_nativeConstants.SHW_FLOAT6_E2M3FN);
    /** 6-bit float, 3 bits of exponent and 2 of mantissa, finite. */
    public static final DType FLOAT6_E3M2FN = new DType(shw_nativeConstants.SHW_FLOAT6_E3M2FN);
    /** 4-bit float, 2 bits of exponent and 1 of mantissa, finite. */
    public static final DType FLOAT4_E2M1FN = new DType(shw_nativeConstants.SHW_FLOAT4_E2M1FN);
    /** 4-bit integer. */
    public static final DType INT4 = new DType(shw_nativeConstants.SHW_INT4);
    /** 4-bit integer without sign. */
    public static final DType UINT4 = new DType(shw_nativeConstants.SHW_UINT4);

    private final int number;

    private DType(int number) {
        this.number = number;
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
        return of((int) shw_nativeJNI.shw_dtype_parse(Text.terminated(name)));
    }

    /**
     * From its number.
     *
     * @param number {@link #number}
     * @return the type; its name is empty when the library has no such type
     */
    public static DType of(int number) {
        return new DType(number);
    }

    /**
     * Number of the type, the same in all languages and in files.
     *
     * @return the number
     */
    public int number() {
        return number;
    }

    /**
     * torch's name.
     *
     * @return the name
     */
    public String dtypeName() {
        NativeLoader.load();
        return Text.of(shw_nativeJNI.shw_dtype_name(number));
    }

    /**
     * Bytes of packed elements.
     *
     * @param count number of elements
     * @return bytes, rounded up
     */
    public long byteSize(long count) {
        NativeLoader.load();
        return shw_nativeJNI.shw_dtype_byte_size(number, count);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DType && ((DType) other).number == number;
    }

    @Override
    public int hashCode() {
        return Integer.hashCode(number);
    }

    @Override
    public String toString() {
        return dtypeName();
    }
}
