// SPDX-License-Identifier: Apache-2.0
// Transports that gather to one rank and scatter from it.
package io.shardwright.collective;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;

/**
 * A transport that brings bytes to one rank and away from it, so that no other rank receives what is meant for all. The
 * transports of all ranks offer it, or none does: then the library does it by allGatherV and broadcast.
 */
public interface RootedHostCollective extends HostCollective {
    /**
     * Gathers different sizes back to back in rank order at the root.
     *
     * @param data bytes of this rank
     * @param gathered bytes of all ranks at the root; empty elsewhere
     * @param sizes bytes of each rank at the root; null elsewhere
     * @param root the rank that gets them
     * @param timeout how long the operation may take; null = no limit
     * @throws IOException when it fails
     */
    void gatherV(ByteBuffer data, ByteBuffer gathered, long[] sizes, int root, Duration timeout) throws IOException;

    /**
     * Gives each rank its part.
     *
     * @param parts bytes of all ranks back to back at the root; empty elsewhere
     * @param sizes bytes of each rank at the root; null elsewhere
     * @param data where the bytes of this rank go
     * @param root the rank that has them
     * @param timeout how long the operation may take; null = no limit
     * @throws IOException when it fails
     */
    void scatterV(ByteBuffer parts, long[] sizes, ByteBuffer data, int root, Duration timeout) throws IOException;
}
