// SPDX-License-Identifier: Apache-2.0
// Options of contexts of units.
package io.shardwright.hsdp;

import io.shardwright.Context;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import java.time.Duration;

/** Options of {@link Hsdp#create} and {@link Hsdp#estimate}, with the defaults that all languages share. Not thread-safe while
 * it is being filled. */
public final class HsdpOptions {
    private Context context;
    private Device device;
    private int shardAxis;
    private int replicateAxis = -1;
    private int lanes;
    private int maxInflightReduce = 1;
    private int prefetchDepth = 1;
    private long prefetchBytesMax;
    private boolean unordered;
    private int orderGuardSteps = 3;
    private Duration timeout;

    /** All defaults. */
    public HsdpOptions() {}

    /**
     * Memory and log; null = the context that calls without one share.
     *
     * @param value the context
     * @return this
     */
    public HsdpOptions context(Context value) {
        this.context = value;
        return this;
    }

    /**
     * Where all units have their memory, and what work is put on; null = the host. Parameters and gradients are handed in from
     * memory of the host.
     *
     * @param value the device
     * @return this
     */
    public HsdpOptions device(Device value) {
        this.device = value;
        return this;
    }

    /**
     * Axis of the mesh over which parameters are sharded.
     *
     * @param value from 0, which is the default; -1 = whole on each rank
     * @return this
     */
    public HsdpOptions shardAxis(int value) {
        this.shardAxis = value;
        return this;
    }

    /**
     * Axis over which they are replicated.
     *
     * @param value from 0; -1 = none, which is the default
     * @return this
     */
    public HsdpOptions replicateAxis(int value) {
        this.replicateAxis = value;
        return this;
    }

    /**
     * Work beside the caller.
     *
     * @param value 0 = none, 1 = one lane for all, 3 = one each for gathers, reductions and sums over replicas
     * @return this
     */
    public HsdpOptions lanes(int value) {
        this.lanes = value;
        return this;
    }

    /**
     * Packed gradients that live at once.
     *
     * @param value units, 1 by default
     * @return this
     */
    public HsdpOptions maxInflightReduce(int value) {
        this.maxInflightReduce = value;
        return this;
    }

    /**
     * Units that are gathered ahead.
     *
     * @param value their number, 1 by default; 0 = none
     * @return this
     */
    public HsdpOptions prefetchDepth(int value) {
        this.prefetchDepth = OptionValues.count("prefetchDepth", value);
        return this;
    }

    /**
     * Bytes of units that are gathered ahead.
     *
     * @param value bytes; 0 = no limit
     * @return this
     */
    public HsdpOptions prefetchBytesMax(long value) {
        this.prefetchBytesMax = OptionValues.count("prefetchBytesMax", value);
        return this;
    }

    /**
     * Whether communicators may sum in an order of their own; results then depend on it.
     *
     * @param value false by default
     * @return this
     */
    public HsdpOptions unordered(boolean value) {
        this.unordered = value;
        return this;
    }

    /**
     * First iterations after which ranks compare what they issued.
     *
     * @param value their number, 3 by default; 0 = none
     * @return this
     */
    public HsdpOptions orderGuardSteps(int value) {
        this.orderGuardSteps = OptionValues.count("orderGuardSteps", value);
        return this;
    }

    /**
     * What each collective may take.
     *
     * @param value null = 1,800 s, negative = no limit
     * @return this
     */
    public HsdpOptions timeout(Duration value) {
        this.timeout = value;
        return this;
    }

    boolean isOnHost() {
        return device == null || device.isHost();
    }

    Context contextOrShared() {
        return context == null ? Context.shared() : context;
    }

    /** Without the mesh; 0 means a default in the struct, -1 nothing. */
    Structs.HsdpOptions struct(Uses uses) {
        Structs.HsdpOptions struct = new Structs.HsdpOptions();
        struct.flags = unordered ? shw_nativeConstants.SHW_HSDP_UNORDERED : 0;
        struct.device = uses.ofNullable(device);
        struct.shardAxis = shardAxis;
        struct.replicateAxis = replicateAxis;
        struct.lanes = lanes;
        struct.maxInflightReduce = maxInflightReduce;
        struct.prefetchDepth = prefetchDepth == 0 ? -1 : prefetchDepth;
        struct.orderGuardSteps = orderGuardSteps == 0 ? -1 : orderGuardSteps;
        struct.prefetchBytesMax = prefetchBytesMax;
        struct.timeoutNs = OptionValues.deadline(timeout);
        return struct;
    }
}
