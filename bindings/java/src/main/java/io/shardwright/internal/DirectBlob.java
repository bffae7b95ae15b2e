// SPDX-License-Identifier: Apache-2.0
// Plan buffers on their way into the library.
package io.shardwright.internal;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.List;

/** Byte arrays one behind the other in a direct buffer, cut by offsets; more than 2 GiB are refused. Immutable. */
public final class DirectBlob {
    private final ByteBuffer bytes;
    private final long[] offsets;

    public DirectBlob(List<byte[]> parts) {
        offsets = new long[parts.size() + 1];
        for (int i = 0; i < parts.size(); i++) {
            offsets[i + 1] = offsets[i] + parts.get(i).length;
        }
        if (offsets[parts.size()] > Integer.MAX_VALUE - 8) {
            throw ShardwrightException.of(StatusCode.RESOURCE_EXHAUSTED,
                    offsets[parts.size()] + " bytes of one call do not fit a buffer");
        }
        bytes = ByteBuffer.allocateDirect(Math.max(1, (int) offsets[parts.size()]));
        parts.forEach(bytes::put);
    }

    /** Valid until {@link #keep}. */
    public long address() {
        return shw_nativeJNI.addressOf(bytes);
    }

    public long[] offsets() {
        return offsets;
    }

    public int count() {
        return offsets.length - 1;
    }

    /** Called behind the native call that uses the address. */
    public void keep() {
        Reference.reachabilityFence(bytes);
    }
}
