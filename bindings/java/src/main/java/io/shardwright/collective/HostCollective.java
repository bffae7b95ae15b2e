// SPDX-License-Identifier: Apache-2.0
// Transports that a host brings.
package io.shardwright.collective;

import io.shardwright.errors.DeadlineExceededException;
import io.shardwright.errors.StatusCode;
import io.shardwright.storage.HostStorage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;

/**
 * A transport that a host brings: byte operations that all ranks call in the same order. Methods run on threads of the
 * library, one at a time, apart from abort. Buffers are valid during the call only. Exceptions as in {@link HostStorage}.
 * An operation that takes longer than its timeout (null = no limit) fails with {@link DeadlineExceededException}.
 */
public interface HostCollective {
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
     * Waits until all ranks are here.
     *
     * @param timeout how long the operation may take; null = no limit
     * @throws IOException when it fails
     */
    void barrier(Duration timeout) throws IOException;

    /**
     * Gives the root's bytes to all ranks.
     *
     * @param data equal size on all ranks; read at the root, written elsewhere
     * @param root the rank that has them
     * @param timeout how long the operation may take; null = no limit
     * @throws IOException when it fails
     */
    void broadcast(ByteBuffer data, int root, Duration timeout) throws IOException;

    /**
     * Gathers equal sizes in rank order.
     *
     * @param data bytes of this rank
     * @param gathered bytes of all ranks
     * @param timeout how long the operation may take; null = no limit
     * @throws IOException when it fails
     */
    void allGather(ByteBuffer data, ByteBuffer gathered, Duration timeout) throws IOException;

    /**
     * Gathers different sizes back to back in rank order.
     *
     * @param data bytes of this rank
     * @param gathered bytes of all ranks
     * @param sizes bytes of each rank
     * @param timeout how long the operation may take; null = no limit
     * @throws IOException when it fails
     */
    void allGatherV(ByteBuffer data, ByteBuffer gathered, long[] sizes, Duration timeout) throws IOException;

    /**
     * Reduces element by element over all ranks.
     *
     * @param values numbers of this rank
     * @param operation what to do with them
     * @param timeout how long the operation may take; null = no limit
     * @return as many numbers, equal on all ranks; OUT_OF_RANGE when a sum does not fit
     * @throws IOException when it fails
     */
    long[] allReduce(long[] values, Reduction operation, Duration timeout) throws IOException;

    /**
     * Wakes all ranks that wait in this transport; they fail with the code and the message.
     *
     * @param code what the rank that aborts failed with
     * @param message why
     */
    void abort(StatusCode code, String message);
}
