// SPDX-License-Identifier: Apache-2.0
// Communicators of the host that broadcast.
package io.shardwright.hsdp;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * A transport that has broadcasts and barriers of its own. The transports of all ranks offer it, or none does: then the library
 * makes them of allGather. A transport may be a {@link ReducingHostCommunicator}, too.
 */
public interface BroadcastingHostCommunicator extends HostCommunicator {
    /**
     * Issues a broadcast.
     *
     * @param call the operation
     * @param data {@code count} elements; read at the root, written elsewhere
     * @param root the rank that has them
     * @return what it is ended by
     * @throws IOException when it fails
     */
    HostWork broadcast(CommunicatorCall call, ByteBuffer data, int root) throws IOException;

    /**
     * Issues a barrier, which ends when all ranks have issued it.
     *
     * @param call the operation
     * @return what it is ended by
     * @throws IOException when it fails
     */
    HostWork barrier(CommunicatorCall call) throws IOException;
}
