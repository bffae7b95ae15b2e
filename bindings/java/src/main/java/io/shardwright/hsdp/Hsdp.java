// SPDX-License-Identifier: Apache-2.0
// Units that train together on one rank.
package io.shardwright.hsdp;

import io.shardwright.Context;
import io.shardwright.State;
import io.shardwright.errors.AbortedException;
import io.shardwright.errors.CancelledException;
import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.LongList;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * The units that train together on one rank: hybrid sharded data parallel training. Calls come from any thread, one at a time,
 * and in the same order on all ranks.
 *
 * <pre>{@code
 * HsdpMesh mesh = HsdpMesh.of(rank, 4);
 * mesh.setCommunicator(0, Communicator.over(collective));
 * try (Hsdp hsdp = Hsdp.create(mesh, new HsdpOptions())) {
 *     HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions());
 *     unit.addParams(List.of(HsdpParam.of("weight", HostTensor.of(weight, 4096, 1024))));
 *     unit.seal();
 * }
 * }</pre>
 *
 * <p>Gradients are summed over the shard axis in rank order, then over the replicas in rank order, scaled, cast and added to the
 * gradient of the shard, so that a run has the bits of one process that adds in the same order.
 *
 * <p>A wait that fails ends the context on all ranks: what is pending throws the first cause, other calls
 * {@link FailedPreconditionException} with it, until {@link #reset} with new communicators in the mesh. An exception of a callback
 * of the host comes out of the call of its rank as itself.
 *
 * <p>A thread that is interrupted stays so, and gets {@link CancelledException}. The wait for one operation ({@link Work#await()},
 * {@link HsdpUnit#unshard}) ends alone, and what it waited for goes on. Of phases and other calls that wait for other ranks an
 * interrupt ends the context on all ranks, like a failure.
 */
public final class Hsdp extends HsdpSettings {
    private final List<HsdpUnit> units = new CopyOnWriteArrayList<>();
    private final HsdpMesh mesh;
    private final boolean isOnHost;
    private final List<Lent> lent;

    /** `ofMesh` keeps the communicators, also those of a mesh that is closed. */
    private Hsdp(long handle, HsdpMesh mesh, boolean isOnHost, Uses ofMesh, List<Lent> lent) {
        super(handle, Leak.WARN, h -> {
            shw_nativeJNI.shw_hsdp_release(h);
            lent.forEach(Lent::forget);
            ofMesh.close();
        });
        this.mesh = mesh;
        this.isOnHost = isOnHost;
        this.lent = lent;
    }

    /**
     * Makes a context of units.
     *
     * @param mesh with its communicators; may be closed afterwards
     * @param options the options
     * @return the context
     * @throws InvalidArgumentException for an axis that the mesh has not
     * @throws FailedPreconditionException when an axis of several ranks has no communicator, or one that does not sum in rank order
     */
    public static Hsdp create(HsdpMesh mesh, HsdpOptions options) {
        Context context = options.contextOrShared();
        boolean isOnHost = options.isOnHost();
        Uses ofMesh = new Uses();
        try (Uses uses = new Uses()) {
            Structs.HsdpOptions struct = options.struct(uses);
            struct.mesh = ofMesh.of(mesh);
            long handle = shw_nativeJNI.shw_hsdp_create(uses.of(context), struct);
            return new Hsdp(handle, mesh, isOnHost, ofMesh, new CopyOnWriteArrayList<>());
        } catch (Throwable e) {
            ofMesh.close();
            throw e;
        }
    }

    /**
     * Makes a unit.
     *
     * @param name for messages, equal on all ranks
     * @param options the options
     * @return the unit
     * @throws InvalidArgumentException for options that are none
     */
    public HsdpUnit unit(String name, HsdpUnitOptions options) {
        Structs.HsdpUnitOptions struct = options.struct();
        byte[] text = Text.bytes(name);
        Lent given = new Lent();
        Lent taken = new Lent();
        HsdpUnit made = with(h -> new HsdpUnit(shw_nativeJNI.shw_hsdp_unit_create(h, text, struct), name, this, given, taken));
        lent.addAll(List.of(given, taken));
        units.add(made);
        return made;
    }

    /**
     * The units.
     *
     * @return in the order in which they were made
     */
    public List<HsdpUnit> units() {
        return List.copyOf(units);
    }

    /**
     * The backward is over: reduces what was not reduced yet. In the last backward of an iteration also waits for all reductions,
     * drops what was gathered in vain, and in the first iterations compares with the other ranks in which order units ran.
     *
     * @throws AbortedException naming the first unit that ranks ran in different orders, and both ranks
     */
    public void finalizeBackward() {
        waitFor(shw_nativeJNI::shw_hsdp_finalize_backward);
        forgetTaken();
    }

    /**
     * Parameters of the shards have changed (an optimizer step, a load): what was gathered before is of no use. Shards of a unit
     * that is being gathered stay as they are, so a host that may have asked for that calls this before the change, too.
     *
     * @throws FailedPreconditionException naming a unit whose gradients still wait for the replicas
     */
    public void stepEvent() {
        waitFor(h -> shw_nativeJNI.shw_hsdp_step_event(h, 0));
        forgetTaken();
    }

    /**
     * Recovery, on all ranks: gives up what is under way, and drops all gradients and all that was gathered. After a failure the
     * mesh needs new communicators first.
     *
     * @throws FailedPreconditionException naming a communicator that has failed
     */
    public void reset() {
        waitFor(shw_nativeJNI::shw_hsdp_reset);
        forgetTaken();
    }

    private void forgetTaken() {
        units.forEach(HsdpUnit::forgetTaken);
    }

    /**
     * Norm of the gradients of all shards, replicas counted once; equal on all ranks. Clipping to a norm is
     * {@code scaleGrads(Math.min(1, limit / (globalNorm(2) + 1e-6)))}.
     *
     * @param p order of the norm, positive; infinity = the largest
     * @return the norm
     */
    public double globalNorm(double p) {
        double[] norm = new double[1];
        waitFor(h -> norm[0] = shw_nativeJNI.hsdpGlobalNorm(h, p));
        return norm[0];
    }

    /**
     * Multiplies all gradients of the shards.
     *
     * @param factor finite
     */
    public void scaleGrads(double factor) {
        waitFor(h -> shw_nativeJNI.shw_hsdp_scale_grads(h, factor));
    }

    /** Drops all gradients of the shards. */
    public void zeroGrads() {
        waitFor(shw_nativeJNI::shw_hsdp_zero_grads);
    }

    /**
     * Packed gradients that live at once, as in the options.
     *
     * @param value units
     */
    public void setMaxInflightReduce(int value) {
        set(shw_nativeConstants.SHW_HSDP_MAX_INFLIGHT_REDUCE, (long) value);
    }

    /**
     * What {@link #setMaxInflightReduce} sets.
     *
     * @return the value
     */
    public int maxInflightReduce() {
        return (int) get(shw_nativeConstants.SHW_HSDP_MAX_INFLIGHT_REDUCE);
    }

    /**
     * What {@link #setPrefetchDepth} sets.
     *
     * @return the value; 0 = none
     */
    public int prefetchDepth() {
        return (int) get(shw_nativeConstants.SHW_HSDP_PREFETCH_DEPTH);
    }

    private long get(int key) {
        return with(h -> shw_nativeJNI.shw_hsdp_get_i64(h, key));
    }

    /**
     * Units that are gathered ahead, as in the options.
     *
     * @param value their number; 0 = none
     */
    public void setPrefetchDepth(int value) {
        set(shw_nativeConstants.SHW_HSDP_PREFETCH_DEPTH, value == 0 ? -1L : value);
    }

    /**
     * Whether no backward follows in this iteration: of several micro-batches the last one.
     *
     * @param value true at first
     */
    public void setIsLastBackward(boolean value) {
        set(shw_nativeConstants.SHW_HSDP_IS_LAST_BACKWARD, value ? 1L : 0L);
    }

    /** Whether whole parameters may lie in buffers. */
    boolean isOnHost() {
        return isOnHost;
    }

    @Override
    HsdpMesh mesh() {
        return mesh;
    }

    @Override
    void set(int key, long value) {
        run(h -> shw_nativeJNI.shw_hsdp_set_i64(h, key, value));
    }

    @Override
    void set(int key, double value) {
        run(h -> shw_nativeJNI.shw_hsdp_set_f64(h, key, value));
    }

    /**
     * Adds what this rank holds of all sealed units to a state, under a prefix followed by the names of the parameters; aliases are
     * one entry. Memory is that of the units, and the state keeps the context alive. Entries have the layout of their shards, so
     * that saves plan without communication, and any other number of ranks loads them. After a load into the state call
     * {@link #stepEvent}.
     *
     * @param state gets the entries; {@link State#tensor} does not give them
     * @param prefix in front of the names, empty = none
     * @param what parameters or gradients
     * @throws FailedPreconditionException naming a unit whose gradients still travel or wait for the replicas
     */
    public void addToState(State state, String prefix, ShardContent what) {
        byte[] text = Text.bytes(prefix);
        try (Uses uses = new Uses()) {
            shw_nativeJNI.shw_hsdp_add_to_state(uses.of(this), text, what.number(), uses.of(state));
        }
    }

    /**
     * Memory that is and was held in all units.
     *
     * @param kind what it is for
     * @return the memory
     */
    public HsdpMemory stats(MemoryKind kind) {
        return HsdpMemory.of(with(h -> shw_nativeJNI.shw_hsdp_stats(h, kind.number())));
    }

    /**
     * What {@link #stats} of one rank would say after iterations in which units run forward in this order and backward in the
     * reverse one, and gradients are dropped before the next: exactly, but for padding, and without what a transport allocates.
     * Nothing is allocated.
     *
     * @param units the units
     * @param world ranks along the axes
     * @param options as for {@link #create}; their axes count as far as they are -1, context and device not at all
     * @param kind what the memory is for
     * @return the memory
     * @throws InvalidArgumentException for what {@link HsdpUnit#seal} would refuse
     */
    public static HsdpMemory estimate(List<EstimatedUnit> units, EstimatedWorld world, HsdpOptions options, MemoryKind kind) {
        NativeLoader.load();
        LongList facts = new LongList();
        ParamColumns columns = new ParamColumns();
        try (Uses uses = new Uses()) {
            for (EstimatedUnit unit : units) {
                facts.addAll(unit.facts());
                columns.addUnit(unit.params(), uses);
            }
            Structs.HsdpOptions struct = options.struct(uses);
            struct.device = 0;
            struct.shardAxis = world.shards() == 1 ? -1 : 0;
            struct.replicateAxis = world.replicas() == 1 ? -1 : 1;
            return HsdpMemory.of(shw_nativeJNI.shw_java_hsdp_estimate(units.size(), facts.toArray(), columns.names(),
                    columns.nameOffsets(), columns.facts(), columns.shapes(), columns.aliases(), columns.aliasOffsets(),
                    columns.aliasRanges(), world.struct(), struct, kind.number()));
        }
    }

    /** Releases the context: what is under way is given up, and other ranks that wait for it are told. May be called again. */
    @Override
    public void close() {
        units.forEach(HsdpUnit::close);
        super.close();
    }

    @Override
    protected String facts() {
        return units.size() + (units.size() == 1 ? " unit" : " units");
    }
}
