// SPDX-License-Identifier: Apache-2.0
// Operations of communicators of the host that are under way.
package io.shardwright.hsdp;

import java.io.IOException;
import java.time.Duration;

/** An operation that a {@link HostCommunicator} has issued. Methods run on threads of the library, one at a time. */
public interface HostWork {
    /**
     * Waits until the operation has ended.
     *
     * @param timeout how long to wait; null = no limit but that of the call
     * @return false when the time passed
     * @throws IOException when it has failed
     */
    boolean await(Duration timeout) throws IOException;

    /**
     * The same without waiting, and without issuing anything.
     *
     * @return whether it has ended
     * @throws IOException when it has failed
     */
    boolean isDone() throws IOException;

    /**
     * Gives the operation up or forgets one that has ended; called once. From then on its buffers are not touched any more.
     * Exceptions are dropped.
     */
    void close();
}
