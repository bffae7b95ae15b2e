// SPDX-License-Identifier: Apache-2.0
// What the native part calls for a communicator of the host.
package io.shardwright.hsdp;

import io.shardwright.DType;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Text;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Objects;

/** Turns numbers into enums. Methods are bound by name and signature in native/host_communicator.c. */
final class HostCommunicatorBridge {
    private final HostCommunicator transport;

    HostCommunicatorBridge(HostCommunicator transport) {
        this.transport = transport;
    }

    /** An operation that may fail. */
    private interface Body<T> {
        T run() throws IOException;
    }

    private static <T> T unchecked(Body<T> body) {
        try {
            return body.run();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static HostWork issue(String method, Body<HostWork> body) {
        return Objects.requireNonNull(unchecked(body), () -> method + " of a communicator of the host gave no work");
    }

    private static Duration limit(long timeoutNs) {
        return timeoutNs < 0 ? null : Duration.ofNanos(timeoutNs);
    }

    private static CommunicatorCall call(long sequence, long unit, long count, int dtype, int op, double scale,
            long timeoutNs, int tag) {
        return new CommunicatorCall(sequence, unit, count, DType.of(dtype), TensorReduction.of(op), scale, limit(timeoutNs), tag);
    }

    HostWork allGather(long sequence, long unit, long count, int dtype, int op, double scale, long timeoutNs, int tag,
            ByteBuffer data, ByteBuffer gathered) {
        CommunicatorCall call = call(sequence, unit, count, dtype, op, scale, timeoutNs, tag);
        return issue("allGather", () -> transport.allGather(call, data.asReadOnlyBuffer(), gathered));
    }

    HostWork allToAll(long sequence, long unit, long count, int dtype, int op, double scale, long timeoutNs, int tag,
            ByteBuffer parts, ByteBuffer received) {
        CommunicatorCall call = call(sequence, unit, count, dtype, op, scale, timeoutNs, tag);
        return issue("allToAll", () -> transport.allToAll(call, parts.asReadOnlyBuffer(), received));
    }

    HostWork reduceScatter(long sequence, long unit, long count, int dtype, int op, double scale, long timeoutNs, int tag,
            ByteBuffer parts, ByteBuffer reduced) {
        CommunicatorCall call = call(sequence, unit, count, dtype, op, scale, timeoutNs, tag);
        ReducingHostCommunicator reducing = (ReducingHostCommunicator) transport;
        return issue("reduceScatter", () -> reducing.reduceScatter(call, parts.asReadOnlyBuffer(), reduced));
    }

    HostWork allReduce(long sequence, long unit, long count, int dtype, int op, double scale, long timeoutNs, int tag,
            ByteBuffer data) {
        CommunicatorCall call = call(sequence, unit, count, dtype, op, scale, timeoutNs, tag);
        return issue("allReduce", () -> ((ReducingHostCommunicator) transport).allReduce(call, data));
    }

    HostWork broadcast(long sequence, long unit, long count, int dtype, int op, double scale, long timeoutNs, int tag,
            ByteBuffer data, int root) {
        CommunicatorCall call = call(sequence, unit, count, dtype, op, scale, timeoutNs, tag);
        return issue("broadcast", () -> ((BroadcastingHostCommunicator) transport).broadcast(call, data, root));
    }

    HostWork barrier(long sequence, long unit, long count, int dtype, int op, double scale, long timeoutNs, int tag) {
        CommunicatorCall call = call(sequence, unit, count, dtype, op, scale, timeoutNs, tag);
        return issue("barrier", () -> ((BroadcastingHostCommunicator) transport).barrier(call));
    }

    boolean await(HostWork work, long timeoutNs) {
        return unchecked(() -> work.await(limit(timeoutNs)));
    }

    boolean isDone(HostWork work) {
        return unchecked(work::isDone);
    }

    void close(HostWork work) {
        work.close();
    }

    void abort(int code, byte[] message) {
        transport.abort(StatusCode.of(code), Text.of(message));
    }
}
