// SPDX-License-Identifier: Apache-2.0
// Communicators that a host brings.
package io.shardwright.hsdp;

import io.shardwright.errors.StatusCode;
import io.shardwright.storage.HostStorage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Set;

/**
 * A transport of tensor elements that a host brings; {@link Communicator#host} makes a communicator of it. All ranks call its
 * methods in the same order, on threads of the library, one at a time, apart from abort. An operation is issued without waiting
 * for other ranks where the transport can; its buffers, which are direct, are valid until its work is closed. Sums are made of
 * these operations in rank order, unless the transport is a {@link ReducingHostCommunicator}. Exceptions as in
 * {@link HostStorage}: one that a method throws comes out of the call of this rank as itself, and the library aborts the
 * transport with its message, so that other ranks fail with it.
 */
public interface HostCommunicator {
    /**
     * Rank of this end.
     *
     * @return from 0
     */
    int rank();

    /**
     * Number of ranks.
     *
     * @return the world size
     */
    int size();

    /**
     * What it can beyond memory of the host, which it always can. Sums of the library have an order by themselves.
     *
     * @return the capabilities; none by default
     */
    default Set<CommunicatorCapability> capabilities() {
        return Set.of();
    }

    /**
     * Issues a gather in rank order.
     *
     * @param call the operation
     * @param data {@code count} elements of this rank, read-only
     * @param gathered those of all ranks
     * @return what it is ended by
     * @throws IOException when it fails
     */
    HostWork allGather(CommunicatorCall call, ByteBuffer data, ByteBuffer gathered) throws IOException;

    /**
     * Issues an exchange between all ranks.
     *
     * @param call the operation
     * @param parts {@code count} elements for each rank, read-only
     * @param received {@code count} elements from each rank
     * @return what it is ended by
     * @throws IOException when it fails
     */
    HostWork allToAll(CommunicatorCall call, ByteBuffer parts, ByteBuffer received) throws IOException;

    /**
     * Wakes all ranks that wait in this transport, and ends it: they fail with the code and the message. May come from any
     * thread, and more than once.
     *
     * @param code what the rank that aborts failed with
     * @param message why
     */
    void abort(StatusCode code, String message);
}
