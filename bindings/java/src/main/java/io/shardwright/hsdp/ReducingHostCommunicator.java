// SPDX-License-Identifier: Apache-2.0
// Communicators of the host that reduce.
package io.shardwright.hsdp;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * A transport that reduces by itself. The transports of all ranks offer it, or none does. One that does not sum in rank order
 * (see {@link CommunicatorCapability#ORDERED_SUM}) needs {@link HsdpOptions#unordered}.
 */
public interface ReducingHostCommunicator extends HostCommunicator {
    /**
     * Issues a reduction of which each rank gets its part.
     *
     * @param call the operation
     * @param parts {@code count} elements for each rank, read-only
     * @param reduced {@code count} elements
     * @return what it is ended by
     * @throws IOException when it fails
     */
    HostWork reduceScatter(CommunicatorCall call, ByteBuffer parts, ByteBuffer reduced) throws IOException;

    /**
     * Issues a reduction in place.
     *
     * @param call the operation
     * @param data {@code count} elements
     * @return what it is ended by
     * @throws IOException when it fails
     */
    HostWork allReduce(CommunicatorCall call, ByteBuffer data) throws IOException;
}
