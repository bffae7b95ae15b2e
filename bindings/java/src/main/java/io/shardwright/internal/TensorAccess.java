// SPDX-License-Identifier: Apache-2.0
// What other packages of the library see of tensors of the host.
package io.shardwright.internal;

import io.shardwright.DType;
import io.shardwright.HostTensor;

/** Memory of a {@link HostTensor}, which its class gives to this library and not to programs. Thread-safe. */
public final class TensorAccess {
    private static volatile Reader reader;

    private TensorAccess() {}

    /**
     * A dense tensor.
     *
     * @param address first byte; stays as long as the tensor can be reached and `uses` is open
     * @param byteSize 0 where only the address is known
     */
    public record Dense(long address, long byteSize, DType dtype, long[] shape, int deviceType, int deviceId) {}

    /** Part of the class of tensors. */
    public interface Reader {
        Dense read(String name, HostTensor tensor, Uses uses);
    }

    /** Called once, by that class when it is loaded. */
    public static void set(Reader of) {
        reader = of;
    }

    /** Heap arrays are copied to where native code reads them. INVALID_ARGUMENT naming a tensor that is not dense and whole. */
    public static Dense read(String name, HostTensor tensor, Uses uses) {
        return reader.read(name, tensor, uses);
    }
}
