// SPDX-License-Identifier: Apache-2.0
// Memory of the host for whole parameters.
package io.shardwright.hsdp;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * A host that owns the memory of whole parameters, such as a pool of its own (see {@link HsdpUnit#setAllocator}). Called on the
 * thread that calls the unit, one method at a time. An exception of {@link #allocate} comes out of that call as itself.
 */
public interface HostAllocator {
    /**
     * Memory for a whole parameter, of whatever content. It is kept reachable, and is the library's, until it is given back.
     *
     * @param param number of the parameter
     * @param bytes its bytes
     * @return a direct buffer whose remaining bytes are so many, at a multiple of 8
     * @throws IOException when there is none
     */
    ByteBuffer allocate(int param, int bytes) throws IOException;

    /**
     * Takes memory back; what it holds is the parameter as it was gathered last. Exceptions go to nobody.
     *
     * @param param number of the parameter
     * @param memory what {@link #allocate} gave
     */
    void deallocate(int param, ByteBuffer memory);
}
