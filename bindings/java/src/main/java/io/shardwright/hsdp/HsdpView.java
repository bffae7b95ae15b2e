// SPDX-License-Identifier: Apache-2.0
// Memory of units as the host sees it.
package io.shardwright.hsdp;

import io.shardwright.DType;
import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.internal.Slices;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A dense row-major tensor in memory of a unit, padding excluded: the part of a parameter that this rank holds, the gradient of
 * that part, or a whole parameter. Buffers of it keep the unit and its context alive. Memory of parts of this rank is valid as
 * long; that of whole parameters and of gradients until the state of the unit changes next, and buffers of it must not be looked
 * at behind that: take them from the view anew in each phase, which fails where there is nothing to see, or let whole parameters
 * lie in buffers of your own ({@link HsdpUnit#setMemory}). Used as its unit is.
 */
public final class HsdpView {
    private final HsdpUnit unit;
    private final int kind;
    private final int index;
    private final long byteSize;
    private final DType dtype;
    private final int deviceType;
    private final int deviceId;
    private final long[] shape;

    /** kind: SHW_HSDP_VIEW_; facts: address, bytes, dtype, device type, device id, extents. */
    HsdpView(HsdpUnit unit, int kind, int index, long[] facts) {
        this.unit = unit;
        this.kind = kind;
        this.index = index;
        byteSize = facts[1];
        dtype = DType.of((int) facts[2]);
        deviceType = (int) facts[3];
        deviceId = (int) facts[4];
        shape = Arrays.copyOfRange(facts, 5, facts.length);
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
     * Extents; of parts those of the part.
     *
     * @return a copy
     */
    public long[] shape() {
        return shape.clone();
    }

    /**
     * Size of the elements.
     *
     * @return bytes
     */
    public long byteSize() {
        return byteSize;
    }

    /**
     * On which kind of device the memory lies.
     *
     * @return DLPack's number; 1 = the host
     */
    public int deviceType() {
        return deviceType;
    }

    /**
     * Which device of that kind.
     *
     * @return its number, from 0
     */
    public int deviceId() {
        return deviceId;
    }

    /**
     * Where the memory begins, for what reaches the device on which it lies; valid as the memory is.
     *
     * @return an address on that device
     * @throws FailedPreconditionException when the parameter is not whole any more, or the gradient gone
     */
    public long address() {
        return unit.viewFacts(kind, index)[0];
    }

    /**
     * Where the memory lies, as other tensors are given; valid as the memory is.
     *
     * @return address and device
     * @throws FailedPreconditionException as {@link #address}
     */
    public DeviceMemory memory() {
        return new DeviceMemory(address(), deviceType, deviceId);
    }

    /**
     * All bytes without a copy.
     *
     * @return a little-endian view, which may be written where it is a part of this rank or a gradient
     * @throws OutOfRangeException above 2 GiB: use {@link #slice}
     * @throws FailedPreconditionException when the parameter is not whole any more, or the gradient gone
     * @throws UnimplementedException for memory of a device, which {@link #address} is for
     */
    public ByteBuffer bytes() {
        return slice(0, Slices.whole(byteSize, "slice(offset, size)"));
    }

    /**
     * A part of the bytes without a copy.
     *
     * @param offset first byte
     * @param size number of bytes
     * @return a little-endian view
     * @throws OutOfRangeException when it leaves the tensor
     * @throws FailedPreconditionException as {@link #bytes}
     * @throws UnimplementedException as {@link #bytes}
     */
    public ByteBuffer slice(long offset, int size) {
        Slices.check("view", byteSize, offset, size);
        if (!Device.isHost(deviceType)) {
            throw ShardwrightException.of(StatusCode.UNIMPLEMENTED, "the view lies on a device (" + deviceType + ", " + deviceId
                    + "), and buffers reach memory of the host only: use its address there");
        }
        long address = address();
        return Slices.view(size, () -> unit.memory(address + offset, size));
    }

    /**
     * A copy of float32 elements.
     *
     * @return the elements, row-major
     * @throws OutOfRangeException above 2 GiB
     * @throws ShardwrightException FAILED_PRECONDITION for another dtype; UNIMPLEMENTED as {@link #bytes}
     */
    public float[] toFloats() {
        if (!dtype.equals(DType.FLOAT32)) {
            throw ShardwrightException.of(StatusCode.FAILED_PRECONDITION, "the view has elements of " + dtype + ", not float32");
        }
        float[] copy = new float[Math.toIntExact(byteSize / Float.BYTES)];
        bytes().asFloatBuffer().get(copy);
        return copy;
    }

    @Override
    public String toString() {
        return "HsdpView(" + dtype + ", " + Arrays.toString(shape) + ")";
    }
}
