// SPDX-License-Identifier: Apache-2.0
// Transports that send from every rank to every other.
package io.shardwright.collective;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;

/**
 * A transport that brings each rank what every other has for it, and nothing else. The transports of all ranks offer it,
 * or none does: then the library does it by allGatherV, and every rank receives what is meant for all. A transport may be
 * a {@link RootedHostCollective}, too.
 */
public interface AllToAllHostCollective extends HostCollective {
    /**
     * Sends to each rank its part and receives one of each, back to back in rank order. The sizes are those of the other
     * ranks: what this one expects of a rank is what that one sends it.
     *
     * @param parts bytes for each rank, this one included
     * @param partSizes how many bytes are for each rank
     * @param received where the bytes of each rank go
     * @param receivedSizes how many bytes come from each rank
     * @param timeout how long the operation may take; null = no limit
     * @throws IOException when it fails
     */
    void allToAllV(ByteBuffer parts, long[] partSizes, ByteBuffer received, long[] receivedSizes, Duration timeout)
            throws IOException;
}
