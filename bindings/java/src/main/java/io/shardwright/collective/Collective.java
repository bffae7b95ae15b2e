// SPDX-License-Identifier: Apache-2.0
// Transports between ranks.
package io.shardwright.collective;

import io.shardwright.internal.Handle;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeJNI;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** One rank's end of a transport, used by one call at a time. Jobs that use it keep it alive. */
public final class Collective extends Handle {
    private Collective(long handle) {
        super(handle, Leak.WARN, shw_nativeJNI::shw_collective_release);
    }

    /**
     * A single rank.
     *
     * @return its end
     */
    public static Collective single() {
        NativeLoader.load();
        return new Collective(shw_nativeJNI.shw_collective_create_single());
    }

    /**
     * Ranks in this process, each for a thread of its own. An end that is closed while others wait makes them fail with
     * ABORTED.
     *
     * @param size number of ranks
     * @return their ends, by rank
     */
    public static List<Collective> threads(int size) {
        NativeLoader.load();
        long group = shw_nativeJNI.shw_collective_group_create(size);
        try {
            List<Collective> ends = new ArrayList<>();
            for (int rank = 0; rank < size; rank++) {
                ends.add(new Collective(shw_nativeJNI.shw_collective_group_member(group, rank)));
            }
            return ends;
        } finally {
            shw_nativeJNI.shw_collective_group_release(group);
        }
    }

    /**
     * A transport of the host.
     *
     * @param transport its methods
     * @return this rank's end
     */
    public static Collective host(HostCollective transport) {
        NativeLoader.load();
        int rank = transport.rank();
        int size = transport.size();
        long bridge = shw_nativeJNI.reference(new HostCollectiveBridge(Objects.requireNonNull(transport, "transport")));
        int rooted = transport instanceof RootedHostCollective ? 1 : 0;
        int betweenAll = transport instanceof AllToAllHostCollective ? 1 : 0;
        return new Collective(shw_nativeJNI.shw_java_collective_create(bridge, rank, size, rooted, betweenAll));
    }

    /**
     * The ranks of another transport through the memory of their machine, where all of them run on one (2 to 64 ranks of
     * one user that reach each other's memory); else that transport. An operation takes some microseconds there. All ranks
     * make it together; {@code inner} may be closed afterwards, and is used through this one alone.
     *
     * @param inner this rank's end of the other transport
     * @return this rank's end
     */
    public static Collective node(Collective inner) {
        return inner.with(handle -> new Collective(shw_nativeJNI.shw_java_collective_create_node(handle)));
    }

    /**
     * Rank of this end.
     *
     * @return from 0
     */
    public int rank() {
        return with(shw_nativeJNI::shw_collective_rank);
    }

    /**
     * Number of ranks.
     *
     * @return the world size
     */
    public int size() {
        return with(shw_nativeJNI::shw_collective_size);
    }

    /**
     * Name of the transport.
     *
     * @return e.g. {@code threads}
     */
    public String name() {
        return Text.of(with(shw_nativeJNI::shw_collective_name));
    }
}
