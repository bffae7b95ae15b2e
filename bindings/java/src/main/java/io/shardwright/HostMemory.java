// SPDX-License-Identifier: Apache-2.0
// Memory behind a tensor of the host program.
package io.shardwright;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.hsdp.DeviceMemory;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * Bytes that native calls can reach. Direct buffers and library tensors are used as they are. Heap arrays and buffers have
 * a direct copy: it is filled before each save and copied back after each load. Of memory that is given by its address, on a
 * device or not, only the address is known.
 */
final class HostMemory {
    /** Of copies: that of buffers of the library, so that vector copies and casts begin on whole cache lines. */
    static final int ALIGNMENT = 64;

    private final ByteBuffer direct;
    private final Tensor tensor;
    private final DeviceMemory place;
    private final boolean readOnly;
    private final Runnable fill;
    private final Runnable giveBack;

    private HostMemory(ByteBuffer direct, Tensor tensor, DeviceMemory place) {
        this(direct, tensor, place, false, null, null);
    }

    private HostMemory(ByteBuffer direct, boolean readOnly, Runnable fill, Runnable giveBack) {
        this(direct, null, null, readOnly, fill, giveBack);
    }

    /** One of the first three is there. */
    private HostMemory(ByteBuffer direct, Tensor tensor, DeviceMemory place, boolean readOnly, Runnable fill,
            Runnable giveBack) {
        this.direct = direct;
        this.tensor = tensor;
        this.place = place;
        this.readOnly = readOnly;
        this.fill = fill;
        this.giveBack = giveBack;
    }

    /** The remaining bytes of a buffer, whatever its byte order. */
    static HostMemory of(ByteBuffer buffer) {
        if (buffer.isDirect()) {
            return new HostMemory(buffer.slice(), buffer.isReadOnly(), null, null);
        }
        ByteBuffer heap = buffer.slice();
        ByteBuffer copy = allocate(heap.remaining());
        Runnable fill = () -> copy.duplicate().put(heap.duplicate());
        Runnable giveBack = () -> heap.duplicate().put(copy.duplicate());
        return new HostMemory(copy, buffer.isReadOnly(), fill, giveBack);
    }

    private static ByteBuffer allocate(int bytes) {
        // A slice loses what lies before the first line and behind the last one.
        ByteBuffer room = ByteBuffer.allocateDirect(Math.addExact(bytes, 2 * ALIGNMENT)).alignedSlice(ALIGNMENT);
        return room.limit(bytes).slice();
    }

    static HostMemory of(Tensor tensor) {
        return new HostMemory(null, tensor, null);
    }

    static HostMemory of(DeviceMemory place) {
        return new HostMemory(null, null, Objects.requireNonNull(place, "memory"));
    }

    /** Element type of an array of byte, short, int, long, float or double; null for anything else. */
    static DType dtypeOf(Object array) {
        if (array instanceof float[]) {
            return DType.FLOAT32;
        } else if (array instanceof double[]) {
            return DType.FLOAT64;
        } else if (array instanceof int[]) {
            return DType.INT32;
        } else if (array instanceof long[]) {
            return DType.INT64;
        } else if (array instanceof short[]) {
            return DType.INT16;
        } else if (array instanceof byte[]) {
            return DType.INT8;
        }
        return null;
    }

    static HostMemory ofArray(Object array) {
        long bytes = dtypeOf(array).byteSize(Array.getLength(array));
        if (bytes > Integer.MAX_VALUE - 2 * ALIGNMENT) {
            throw ShardwrightException.of(StatusCode.RESOURCE_EXHAUSTED,
                    "an array of " + bytes + " bytes has no direct copy; use a library tensor (Tensor.zeros)");
        }
        ByteBuffer copy = allocate((int) bytes).order(ByteOrder.LITTLE_ENDIAN);
        return new HostMemory(copy, false, () -> put(copy, array), () -> get(copy, array));
    }

    private static void put(ByteBuffer copy, Object array) {
        if (array instanceof float[]) {
            copy.asFloatBuffer().put((float[]) array);
        } else if (array instanceof double[]) {
            copy.asDoubleBuffer().put((double[]) array);
        } else if (array instanceof int[]) {
            copy.asIntBuffer().put((int[]) array);
        } else if (array instanceof long[]) {
            copy.asLongBuffer().put((long[]) array);
        } else if (array instanceof short[]) {
            copy.asShortBuffer().put((short[]) array);
        } else {
            copy.duplicate().put((byte[]) array);
        }
    }

    private static void get(ByteBuffer copy, Object array) {
        if (array instanceof float[]) {
            copy.asFloatBuffer().get((float[]) array);
        } else if (array instanceof double[]) {
            copy.asDoubleBuffer().get((double[]) array);
        } else if (array instanceof int[]) {
            copy.asIntBuffer().get((int[]) array);
        } else if (array instanceof long[]) {
            copy.asLongBuffer().get((long[]) array);
        } else if (array instanceof short[]) {
            copy.asShortBuffer().get((short[]) array);
        } else {
            copy.duplicate().get((byte[]) array);
        }
    }

    /** First byte. The memory stays as long as this object, and as the tensor that `uses` enters. */
    long address(Uses uses) {
        if (place != null) {
            return place.address();
        }
        if (tensor == null) {
            return shw_nativeJNI.addressOf(direct);
        }
        uses.of(tensor);
        return tensor.address();
    }

    /** 0 where only the address is known. */
    long byteSize() {
        if (place != null) {
            return 0;
        }
        return tensor != null ? tensor.byteSize() : direct.capacity();
    }

    /** Of memory of which only the address is known; null for all else. */
    DeviceMemory place() {
        return place;
    }

    int deviceType() {
        return place != null ? place.deviceType() : shw_nativeConstants.SHW_DEVICE_CPU;
    }

    int deviceId() {
        return place != null ? place.deviceId() : 0;
    }

    boolean isReadOnly() {
        return readOnly;
    }

    void beforeSave() {
        if (fill != null) {
            fill.run();
        }
    }

    void afterLoad() {
        if (giveBack != null && !readOnly) {
            giveBack.run();
        }
    }

    /** The bytes now; only up to 2 GiB. UNIMPLEMENTED where only the address is known. */
    ByteBuffer bytes() {
        if (place != null) {
            throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "the tensor was given as an address of a device ("
                    + place.deviceType() + ", " + place.deviceId() + "), and has no buffer: use the address there");
        }
        if (tensor != null) {
            return tensor.bytes();
        }
        return direct.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    }
}
