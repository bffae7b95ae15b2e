// SPDX-License-Identifier: Apache-2.0
// What the native part calls for a transport of the host.
package io.shardwright.collective;

import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Text;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;

/** Turns numbers into enums. Methods are bound by name and signature in native/host_collective.c. */
final class HostCollectiveBridge {
    private final HostCollective transport;

    HostCollectiveBridge(HostCollective transport) {
        this.transport = transport;
    }

    private static Duration limit(long timeoutNs) {
        return timeoutNs < 0 ? null : Duration.ofNanos(timeoutNs);
    }

    void barrier(long timeoutNs) {
        try {
            transport.barrier(limit(timeoutNs));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void broadcast(ByteBuffer data, int root, long timeoutNs) {
        try {
            transport.broadcast(data, root, limit(timeoutNs));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void allGather(ByteBuffer data, ByteBuffer gathered, long timeoutNs) {
        try {
            transport.allGather(data.asReadOnlyBuffer(), gathered, limit(timeoutNs));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void allGatherV(ByteBuffer data, ByteBuffer gathered, long[] sizes, long timeoutNs) {
        try {
            transport.allGatherV(data.asReadOnlyBuffer(), gathered, sizes, limit(timeoutNs));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void gatherV(ByteBuffer data, ByteBuffer gathered, long[] sizes, int root, long timeoutNs) {
        try {
            ((RootedHostCollective) transport)
                    .gatherV(data.asReadOnlyBuffer(), gathered, sizes, root, limit(timeoutNs));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void scatterV(ByteBuffer parts, long[] sizes, ByteBuffer data, int root, long timeoutNs) {
        try {
            ((RootedHostCollective) transport)
                    .scatterV(parts.asReadOnlyBuffer(), sizes, data, root, limit(timeoutNs));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void allToAllV(ByteBuffer parts, long[] partSizes, ByteBuffer received, long[] receivedSizes, long timeoutNs) {
        try {
            ((AllToAllHostCollective) transport)
                    .allToAllV(parts.asReadOnlyBuffer(), partSizes, received, receivedSizes, limit(timeoutNs));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    long[] allReduce(long[] values, int operation, long timeoutNs) {
        long[] reduced;
        try {
            reduced = transport.allReduce(values, Reduction.of(operation), limit(timeoutNs));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        if (reduced.length != values.length) {
            throw new IllegalStateException(
                    "allReduce gave " + reduced.length + " values for " + values.length);
        }
        return reduced;
    }

    void abort(int code, byte[] message) {
        transport.abort(StatusCode.of(code), Text.of(message));
    }
}
