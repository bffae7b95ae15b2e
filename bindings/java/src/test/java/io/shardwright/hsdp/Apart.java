// SPDX-License-Identifier: Apache-2.0
// A device whose memory faults under the host's hands (tests/conformance/device/apart_table.c), and tensors there.
package io.shardwright.hsdp;

import io.shardwright.Context;
import io.shardwright.DType;
import io.shardwright.HostTensor;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/** The device in a context of its own. Thread-safe. */
final class Apart implements AutoCloseable {
    static final int EXTENSION = 12;
    static final int NUMBER = 5;

    final Context context;
    final Device device;

    Apart() {
        context = Context.builder().build();
        context.loadPlugin("apart");
        device = Device.open(context, "apart", null);
    }

    private long ask(String question) {
        return Long.parseLong(context.askPlugin("apart", question));
    }

    /** Where the host reads and writes what lies at an address of the device. */
    FloatBuffer seen(long address, int count) {
        ByteBuffer bytes = (ByteBuffer) shw_nativeJNI.view(ask("behind " + address), count * (long) Float.BYTES);
        return bytes.order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    }

    float[] copy(long address, int count) {
        float[] found = new float[count];
        seen(address, count).get(found);
        return found;
    }

    float[] copy(HsdpView view) {
        return copy(view.address(), (int) (view.byteSize() / Float.BYTES));
    }

    /** Elements in new memory of the device. */
    Floats floats(float... values) {
        return new Floats(values);
    }

    /** Float32 elements there. */
    final class Floats implements AutoCloseable {
        final DeviceMemory memory;
        private final int count;

        private Floats(float[] values) {
            count = values.length;
            memory = device.memory(ask("allocate " + bytes()));
            set(values);
        }

        private int bytes() {
            return count * Float.BYTES;
        }

        void set(float... values) {
            seen(memory.address(), count).put(values);
        }

        float[] get() {
            return copy(memory.address(), count);
        }

        HostTensor tensor(long... shape) {
            return HostTensor.of(DType.FLOAT32, memory, shape);
        }

        @Override
        public void close() {
            ask("release " + memory.address() + " " + bytes());
        }
    }

    @Override
    public void close() {
        device.close();
        context.close();
    }
}
