// SPDX-License-Identifier: Apache-2.0
// What the native part calls for a transport of the host.
package io.shardwright;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;

/** Turns numbers into enums. Methods are bound by name and signature in native/host_collective.c. */
final class HostCollectiveBridge {
    private final HostCollective transport;

    HostCollectiveBridge(HostCollective transport) {
        this.transport = transport;
    }

    void barrier() {
        try {
            transport.barrier();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void broadcast(ByteBuffer data, int root) {
        try {
            transport.broadcast(data, root);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void allGather(ByteBuffer data, ByteBuffer gathered) {
        try {
            transport.allGather(data.asReadOnlyBuffer(), gathered);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void allGatherV(ByteBuffer data, ByteBuffer gathered, long[] sizes) {
        try {
            transport.allGatherV(data.asReadOnlyBuffer(), gathered, sizes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    long[] allReduce(long[] values, int operation) {
        long[] reduced;
        try {
            reduced = transport.allReduce(values, Reduction.of(operation));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        if (reduced.length != values.length) {
            throw new IllegalStateException(
                    "allReduce gave " + reduced.length + " values for " + values.length);
        }
        return reduced;
    }

    void abort(byte[] message) {
        transport.abort(Text.of(message));
    }
}
