// SPDX-License-Identifier: Apache-2.0
// Parameters that are gathered and reduced together.
package io.shardwright.hsdp;

import io.shardwright.HostTensor;
import io.shardwright.errors.CancelledException;
import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.LongList;
import io.shardwright.internal.Structs;
import io.shardwright.internal.TensorAccess;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import io.shardwright.layout.Box;
import io.shardwright.layout.Layout;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Parameters that are gathered and reduced together. A life: {@link #addParams}, {@link #seal} (all ranks), then iterations of
 * {@link #preForward}, {@link #postForward}, {@link #preBackward}, {@link #addGrads}, {@link #postBackward}. A call that is not
 * legal in the state of the unit is FAILED_PRECONDITION naming both. Calls of one context come from any thread, one at a time, in
 * the same order on all ranks; those that wait for other ranks throw ABORTED, DEADLINE_EXCEEDED or UNAVAILABLE with the first
 * cause, CANCELLED after an interrupt, and end the context (see {@link Hsdp}).
 */
public final class HsdpUnit extends HsdpSettings {
    private final String name;
    private final Hsdp owner; // stays as long as one of its units is used
    private final Lent given;
    private final Lent taken;

    /** The context keeps what is lent, for it may read gradients after a unit was closed. */
    HsdpUnit(long handle, String name, Hsdp owner, Lent given, Lent taken) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_hsdp_unit_release);
        this.name = name;
        this.owner = owner;
        this.given = given;
        this.taken = taken;
    }

    /**
     * Name of the unit.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    // ---- parameters ----

    /**
     * Adds all parameters or none; they are numbered from 0 in the order in which they are added. Their memory is borrowed until
     * the unit is sealed.
     *
     * @param params the parameters
     * @throws InvalidArgumentException naming a parameter that cannot be
     * @throws FailedPreconditionException when the unit is sealed
     * @throws ShardwrightException UNIMPLEMENTED naming a parameter that lies on another device
     */
    public void addParams(List<HsdpParam> params) {
        Uses during = new Uses();
        try {
            ParamColumns columns = new ParamColumns();
            columns.addUnit(params, during);
            run(h -> shw_nativeJNI.shw_java_hsdp_add_params(h, params.size(), columns.names(), columns.nameOffsets(),
                    columns.facts(), columns.shapes(), columns.aliases(), columns.aliasOffsets(), columns.aliasRanges()));
        } catch (Throwable e) {
            during.close();
            throw e;
        }
        given.add(params.stream().map(HsdpParam::tensor).filter(Objects::nonNull).toList(), during);
    }

    /**
     * Lays the unit out, compares that on all ranks, makes the shards and fills them.
     *
     * @throws InvalidArgumentException on all ranks, naming the unit and a rank that differs
     */
    public void seal() {
        waitFor(shw_nativeJNI::shw_hsdp_unit_seal);
        given.forget();
    }

    /**
     * Number of parameters.
     *
     * @return how many were added
     */
    public int paramCount() {
        return Math.toIntExact(with(shw_nativeJNI::shw_hsdp_unit_param_count));
    }

    /**
     * Name of a parameter of a sealed unit.
     *
     * @param index its number
     * @return the name; empty when there is none
     */
    public String paramName(int index) {
        return Text.of(with(h -> shw_nativeJNI.shw_hsdp_unit_param_name(h, index)));
    }

    // ---- phases ----

    /** Before forward: waits for the whole parameters, and gathers what probably comes next. */
    public void preForward() {
        preForward(false);
    }

    /**
     * As {@link #preForward()}.
     *
     * @param recompute forward inside of backward: gathers where needed, and does not count as a run of the unit
     */
    public void preForward(boolean recompute) {
        waitFor(h -> shw_nativeJNI.shw_hsdp_unit_pre_forward(h, phase(recompute)));
    }

    /** After forward: reshards as the policy says. */
    public void postForward() {
        postForward(false);
    }

    /**
     * As {@link #postForward()}.
     *
     * @param recompute forward inside of backward: nothing is resharded
     */
    public void postForward(boolean recompute) {
        waitFor(h -> shw_nativeJNI.shw_hsdp_unit_post_forward(h, phase(recompute)));
    }

    private static Structs.HsdpPhaseOptions phase(boolean recompute) {
        Structs.HsdpPhaseOptions options = new Structs.HsdpPhaseOptions();
        options.flags = recompute ? shw_nativeConstants.SHW_HSDP_RECOMPUTE : 0;
        return options;
    }

    /** Before backward: waits for the whole parameters, and gathers what ran before. */
    public void preBackward() {
        waitFor(shw_nativeJNI::shw_hsdp_unit_pre_backward);
    }

    /**
     * After backward, its gradients were handed in: reduces and reshards as the settings say. A second call within one backward
     * does nothing.
     */
    public void postBackward() {
        waitFor(shw_nativeJNI::shw_hsdp_unit_post_backward);
    }

    // ---- steps ----

    /**
     * Gathers.
     *
     * @throws CancelledException when this thread is interrupted, which it stays: the gather goes on, {@link #await} waits for it
     */
    public void unshard() {
        try (Work work = unshardAsync()) {
            work.await();
        }
    }

    /**
     * Gathers in the background. The shards of all ranks stay as they are until the work was waited for.
     *
     * @return waiting for it makes the unit {@link UnitState#UNSHARDED}
     */
    public Work unshardAsync() {
        return with(h -> new Work(shw_nativeJNI.shw_hsdp_unit_unshard(h), this));
    }

    /** Waits for a gather under way; nothing where there is none. */
    public void await() {
        waitFor(shw_nativeJNI::shw_hsdp_unit_wait);
    }

    /**
     * Reshards. A gather under way is waited for and dropped; its work does nothing then.
     *
     * @param phase after forward the policy decides; after backward always
     */
    public void reshard(Phase phase) {
        waitFor(h -> shw_nativeJNI.shw_hsdp_unit_reshard(h, phase.number()));
    }

    /**
     * Hands in gradients of whole parameters, all or none: copies, which are added to what is there.
     *
     * @param params numbers of the parameters
     * @param grads the gradient of each: dense, of the global shape, of any floating dtype, of the host or on the device of the
     *     context, where what wrote it has ended
     * @throws InvalidArgumentException naming a gradient that does not fit
     * @throws FailedPreconditionException when the whole parameters are not there
     * @throws ShardwrightException UNIMPLEMENTED naming a gradient that lies on another device
     */
    public void addGrads(int[] params, List<HostTensor> grads) {
        try (Uses during = new Uses()) {
            handIn(params, grads, shw_nativeConstants.SHW_HSDP_ADD, during);
        }
    }

    /**
     * As {@link #addGrads}, but gradients are read where they lie: direct memory and that of the device stays as it is until they
     * were reduced. Heap arrays, and on a device all memory of the host, are copied now.
     *
     * @param params numbers of the parameters
     * @param grads the gradient of each
     */
    public void takeGrads(int[] params, List<HostTensor> grads) {
        Uses during = new Uses();
        try {
            handIn(params, grads, shw_nativeConstants.SHW_HSDP_TAKE, during);
        } catch (Throwable e) {
            during.close();
            throw e;
        }
        taken.add(grads, during);
    }

    private void handIn(int[] params, List<HostTensor> grads, int mode, Uses during) {
        if (params.length != grads.size()) {
            throw Invalid.parameter("grads", grads.size() + " gradients for " + params.length + " parameters");
        }
        LongList facts = new LongList();
        LongList shapes = new LongList();
        for (int i = 0; i < params.length; i++) {
            TensorAccess.Dense dense = TensorAccess.read("gradient of parameter " + params[i], grads.get(i), during);
            facts.addAll(new long[] {dense.address(), dense.byteSize(), dense.dtype().number(), dense.shape().length,
                dense.deviceType(), dense.deviceId()});
            shapes.addAll(dense.shape());
        }
        long[] numbers = Arrays.stream(params).asLongStream().toArray();
        run(h -> shw_nativeJNI.shw_java_hsdp_add_grads(h, numbers, facts.toArray(), shapes.toArray(), numbers.length, mode));
    }

    /**
     * Packs what was handed in, reshards, and reduces into the gradient of the shard.
     *
     * @throws CancelledException when this thread is interrupted, which it stays: the reduction is given up
     */
    public void reduce() {
        try (Work work = reduceAsync()) {
            work.await();
        }
        forgetTaken();
    }

    /**
     * As {@link #reduce}, in the background.
     *
     * @return waiting for it brings the sums to the gradient of the shard, or to the partial sum
     */
    public Work reduceAsync() {
        return with(h -> new Work(shw_nativeJNI.shw_hsdp_unit_reduce(h), this));
    }

    // ---- what there is ----

    /**
     * What this rank holds of the parameters.
     *
     * @return the state
     */
    public UnitState state() {
        return UnitState.of(with(shw_nativeJNI::shw_hsdp_unit_state));
    }

    /**
     * How far its gradients are; where several are under way, the furthest.
     *
     * @return the state
     */
    public GradState gradState() {
        return GradState.of(with(shw_nativeJNI::shw_hsdp_unit_grad_state));
    }

    /**
     * What this rank holds of a parameter. It may be changed while no gather is under way (see {@link Hsdp#stepEvent}).
     *
     * @param index number of the parameter
     * @return its memory, valid as long as the unit is open or a buffer of it can be reached
     */
    public HsdpView local(int index) {
        return view(shw_nativeConstants.SHW_HSDP_VIEW_LOCAL, index);
    }

    /**
     * The whole parameter.
     *
     * @param index number of the parameter
     * @return its memory, valid until the state of the unit changes
     * @throws FailedPreconditionException unless the unit is {@link UnitState#UNSHARDED}
     */
    public HsdpView full(int index) {
        return view(shw_nativeConstants.SHW_HSDP_VIEW_FULL, index);
    }

    /**
     * The gradient of the part that this rank holds.
     *
     * @param index number of the parameter
     * @return its memory, valid until the state of the unit changes, or gradients are dropped
     * @throws FailedPreconditionException when there is none
     */
    public HsdpView grad(int index) {
        return view(shw_nativeConstants.SHW_HSDP_VIEW_GRAD, index);
    }

    /**
     * Whether a parameter has a gradient.
     *
     * @param index number of the parameter
     * @return true when {@link #grad} gives it
     */
    public boolean hasGrad(int index) {
        return with(h -> shw_nativeJNI.hsdpView(h, shw_nativeConstants.SHW_HSDP_VIEW_GRAD, index))[2] != 0;
    }

    private HsdpView view(int kind, int index) {
        return new HsdpView(this, kind, index, viewFacts(kind, index));
    }

    /** Address, bytes, dtype, device and extents now. */
    long[] viewFacts(int kind, int index) {
        long[] facts = with(h -> shw_nativeJNI.hsdpView(h, kind, index));
        if (facts[2] == 0) {
            throw ShardwrightException.of(StatusCode.FAILED_PRECONDITION,
                    "parameter '" + paramName(index) + "' of unit '" + name + "' has no gradient");
        }
        return facts;
    }

    /** A buffer over memory of the library, which keeps the unit alive. */
    ByteBuffer memory(long address, int size) {
        return lend(h -> (ByteBuffer) shw_nativeJNI.view(address, size));
    }

    /**
     * What this rank holds of a parameter, padding excluded.
     *
     * @param index number of the parameter
     * @return the box in the whole parameter, with zeros for sizes where it holds nothing
     */
    public Box box(int index) {
        long[] facts = with(h -> shw_nativeJNI.hsdpBox(h, index));
        int ndim = facts.length / 3;
        return new Box(Arrays.copyOfRange(facts, 0, ndim), Arrays.copyOfRange(facts, ndim, 2 * ndim));
    }

    /**
     * Extents of a whole parameter.
     *
     * @param index number of the parameter
     * @return the global shape
     */
    public long[] globalShape(int index) {
        long[] facts = with(h -> shw_nativeJNI.hsdpBox(h, index));
        return Arrays.copyOfRange(facts, 2 * (facts.length / 3), facts.length);
    }

    /**
     * Layout of a parameter over the mesh, for state of the host that is cut as the parameter is, such as that of an optimizer.
     *
     * @param index number of the parameter
     * @return the layout
     * @throws ShardwrightException UNIMPLEMENTED for {@link UnitLayout#RAGGED}, whose cut is no rule of a mesh: use {@link #box}
     */
    public Layout layout(int index) {
        return Layout.of(this, index);
    }

    /**
     * Memory that is and was held for this unit, padding included.
     *
     * @return the memory
     */
    public HsdpMemory stats() {
        return HsdpMemory.of(with(shw_nativeJNI::shw_hsdp_unit_stats));
    }

    // ---- what a host sets ----

    private void checkOnHost() {
        if (!owner.isOnHost()) {
            throw ShardwrightException.of(StatusCode.UNIMPLEMENTED,
                    "whole parameters of unit '" + name + "' lie on a device, and buffers are memory of the host");
        }
    }

    /**
     * Gives memory for whole parameters, used whenever the unit is gathered from now on. The buffers are kept reachable until
     * others are given; their content is of use while the unit is {@link UnitState#UNSHARDED}.
     *
     * @param first number of the first parameter
     * @param buffers a direct buffer for each; its remaining bytes are at least those of the parameter
     * @throws FailedPreconditionException while the memory is in use, or without {@link HsdpUnitOptions#hostMemory}
     * @throws ShardwrightException UNIMPLEMENTED on a device with memory of its own
     */
    public void setMemory(int first, List<ByteBuffer> buffers) {
        checkOnHost();
        long[] addresses = new long[buffers.size()];
        long[] sizes = new long[buffers.size()];
        for (int i = 0; i < sizes.length; i++) {
            ByteBuffer buffer = buffers.get(i);
            if (!buffer.isDirect() || buffer.isReadOnly()) {
                throw Invalid.parameter("buffers", "buffer " + i + " is read-only, or not direct");
            }
            addresses[i] = shw_nativeJNI.addressOf(buffer.slice());
            sizes[i] = buffer.remaining();
        }
        run(h -> shw_nativeJNI.shw_java_hsdp_set_memory(h, first, sizes.length, addresses, sizes));
        given.place(first, buffers);
    }

    /**
     * Whole parameters lie in memory of the host from now on, which is asked for when the unit is gathered.
     *
     * @param allocator lends it; kept reachable as long as the unit's context
     * @throws FailedPreconditionException when the unit is sealed, or made with {@link HsdpUnitOptions#hostMemory}
     * @throws ShardwrightException UNIMPLEMENTED on a device with memory of its own
     */
    public void setAllocator(HostAllocator allocator) {
        Objects.requireNonNull(allocator, "allocator");
        checkOnHost();
        run(h -> shw_nativeJNI.shw_java_hsdp_set_allocator(h, shw_nativeJNI.reference(new HostAllocatorBridge(allocator))));
    }

    /**
     * Units that are gathered ahead when this one runs, in place of what the last iteration foretells.
     *
     * @param phase in which
     * @param units the units; none = what the last iteration foretells
     * @throws InvalidArgumentException for a unit of another context
     */
    public void setPrefetch(Phase phase, List<HsdpUnit> units) {
        int key = phase == Phase.FORWARD ? shw_nativeConstants.SHW_HSDP_FORWARD_PREFETCH
                : shw_nativeConstants.SHW_HSDP_BACKWARD_PREFETCH;
        try (Uses uses = new Uses()) {
            long[] handles = units.stream().mapToLong(uses::of).toArray();
            shw_nativeJNI.shw_java_hsdp_set_units(uses.of(this), key, handles, handles.length);
        }
    }

    /**
     * A parameter gets no gradients, or gets them again, from the next {@link #preForward} on.
     *
     * @param index number of the parameter
     * @param frozen whether it gets none
     */
    public void setFrozen(int index, boolean frozen) {
        run(h -> shw_nativeJNI.shw_hsdp_unit_set_frozen(h, index, (short) (frozen ? 1 : 0)));
    }

    @Override
    HsdpMesh mesh() {
        return owner.mesh();
    }

    @Override
    void set(int key, long value) {
        run(h -> shw_nativeJNI.shw_hsdp_unit_set_i64(h, key, value));
    }

    @Override
    void set(int key, double value) {
        run(h -> shw_nativeJNI.shw_hsdp_unit_set_f64(h, key, value));
    }

    private long get(int key) {
        return with(h -> shw_nativeJNI.shw_hsdp_unit_get_i64(h, key));
    }

    /**
     * What {@link #setRequiresGradientSync} sets.
     *
     * @return the value
     */
    public boolean requiresGradientSync() {
        return get(shw_nativeConstants.SHW_HSDP_REQUIRES_GRADIENT_SYNC) != 0;
    }

    /**
     * What {@link #setRequiresAllReduce} sets.
     *
     * @return the value
     */
    public boolean requiresAllReduce() {
        return get(shw_nativeConstants.SHW_HSDP_REQUIRES_ALL_REDUCE) != 0;
    }

    /**
     * What {@link #setReshardAfterForward} sets.
     *
     * @return the value
     */
    public ReshardAfterForward reshardAfterForward() {
        return ReshardAfterForward.of(get(shw_nativeConstants.SHW_HSDP_RESHARD_AFTER_FORWARD),
                get(shw_nativeConstants.SHW_HSDP_SECONDARY_SIZE));
    }

    /**
     * What {@link #setReshardAfterBackward} sets.
     *
     * @return the value
     */
    public boolean reshardAfterBackward() {
        return get(shw_nativeConstants.SHW_HSDP_RESHARD_AFTER_BACKWARD) != 0;
    }

    /**
     * What {@link #setReduceOp} sets.
     *
     * @return the value
     */
    public ReduceOp reduceOp() {
        return ReduceOp.of(get(shw_nativeConstants.SHW_HSDP_REDUCE_OP));
    }

    /**
     * What {@link #setDivideFactor} sets.
     *
     * @return the value; 0 = the ranks that share data
     */
    public double divideFactor() {
        double[] factor = new double[1];
        run(h -> factor[0] = shw_nativeJNI.hsdpDivideFactor(h));
        return factor[0];
    }

    /**
     * What {@link #setUnshardInBackward} sets.
     *
     * @return the value
     */
    public boolean unshardInBackward() {
        return get(shw_nativeConstants.SHW_HSDP_UNSHARD_IN_BACKWARD) != 0;
    }

    /**
     * What {@link #setKeepUnsharded} sets.
     *
     * @return the value
     */
    public boolean keepUnsharded() {
        return get(shw_nativeConstants.SHW_HSDP_KEEP_UNSHARDED) != 0;
    }

    /**
     * What {@link #setUnusedPolicy} sets.
     *
     * @return the value
     */
    public UnusedPolicy unusedPolicy() {
        return UnusedPolicy.of(get(shw_nativeConstants.SHW_HSDP_UNUSED_POLICY));
    }

    /** Once gradients are not read any more; those of a closed unit go with the context. */
    void forgetTaken() {
        try {
            GradState now = gradState();
            if (now == GradState.NONE || now == GradState.READY || now == GradState.PARTIAL) {
                taken.forget();
            }
        } catch (IllegalStateException e) {
            // Closed.
        }
    }

    /** Releases the unit; it goes on in its context, which keeps its parameters and runs it no more. May be called again. */
    @Override
    public void close() {
        super.close();
    }

    @Override
    protected String facts() {
        return name + ", " + state();
    }
}
