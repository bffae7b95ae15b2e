// SPDX-License-Identifier: Apache-2.0
// What the native part calls for an allocator of the host.
package io.shardwright.hsdp;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.shw_nativeJNI;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;

/** Keeps what the host lends reachable. Methods are bound by name and signature in native/host_allocator.c. */
final class HostAllocatorBridge {
    private static final long ALIGNMENT = 8; // of the widest element

    /** A piece by parameter and address, which may be equal for empty ones. */
    private record Place(int param, long address) {
    }

    private final HostAllocator host;
    private final Map<Place, ByteBuffer> lent = new HashMap<>();

    HostAllocatorBridge(HostAllocator host) {
        this.host = host;
    }

    /** Address of so many bytes. */
    long allocate(long param, long bytes) {
        int index = Math.toIntExact(param);
        if (bytes > Integer.MAX_VALUE) {
            throw ShardwrightException.of(StatusCode.RESOURCE_EXHAUSTED,
                    "parameter " + param + " of " + bytes + " bytes does not fit one buffer of the host");
        }
        ByteBuffer memory = given(index, (int) bytes);
        try {
            long address = addressOf(index, (int) bytes, memory);
            lent.put(new Place(index, address), memory);
            return address;
        } catch (RuntimeException e) {
            if (memory != null) {
                host.deallocate(index, memory);
            }
            throw e;
        }
    }

    private ByteBuffer given(int param, int bytes) {
        try {
            return host.allocate(param, bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static long addressOf(int param, int bytes, ByteBuffer memory) {
        if (memory == null || !memory.isDirect() || memory.isReadOnly() || memory.remaining() != bytes) {
            throw Invalid.parameter("allocate",
                    "memory of the host for parameter " + param + " is " + memory + ", no direct buffer of " + bytes + " bytes");
        }
        long address = shw_nativeJNI.addressOf(memory.slice());
        if (address % ALIGNMENT != 0) {
            throw Invalid.parameter("allocate",
                    "memory of the host for parameter " + param + " begins at no multiple of " + ALIGNMENT);
        }
        return address;
    }

    void deallocate(long param, long address) {
        int index = Math.toIntExact(param);
        ByteBuffer memory = lent.remove(new Place(index, address));
        if (memory != null) {
            host.deallocate(index, memory);
        }
    }
}
