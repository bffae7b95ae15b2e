// SPDX-License-Identifier: Apache-2.0
// Communicators between ranks.
package io.shardwright.hsdp;

import io.shardwright.Context;
import io.shardwright.DType;
import io.shardwright.collective.Collective;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.OptionValues;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/**
 * One rank's end of a transport of tensor elements, which HSDP gathers and reduces with: collectives that are asynchronous, in
 * memory of the host. All ranks issue the same operations in the same order, each from one thread at a time, abort aside; ranks
 * out of step get ABORTED. Meshes and works keep it alive.
 *
 * <p>Operations take direct buffers: their remaining bytes, little-endian whatever their order says. Those stay as they are, and
 * are kept reachable, until the work has ended or is closed. A timeout is that of the operation: null = 1,800 s, negative = no
 * limit.
 */
public final class Communicator extends Handle {
    private enum Operation { ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER, ALL_REDUCE, BROADCAST, BARRIER }

    private final AtomicLong sequence = new AtomicLong();

    private Communicator(long handle) {
        super(handle, Leak.WARN, shw_nativeJNI::shw_communicator_release);
    }

    /**
     * Ranks in this process, each for a thread of its own. An end that is closed while others wait for it makes them fail with
     * ABORTED.
     *
     * @param size number of ranks
     * @return their ends, by rank
     * @throws InvalidArgumentException for a size below 1
     */
    public static List<Communicator> threads(int size) {
        NativeLoader.load();
        long group = shw_nativeJNI.shw_communicator_group_create(size);
        try {
            List<Communicator> ends = new ArrayList<>();
            for (int rank = 0; rank < size; rank++) {
                ends.add(new Communicator(shw_nativeJNI.shw_communicator_group_member(group, rank)));
            }
            return ends;
        } finally {
            shw_nativeJNI.shw_communicator_group_release(group);
        }
    }

    /**
     * A communicator over a byte collective, also one of the host. Works everywhere; waits for other ranks where an operation is
     * issued.
     *
     * @param collective this rank's end; may be closed afterwards, and is used through this one alone
     * @return this rank's end
     */
    public static Communicator over(Collective collective) {
        try (Uses uses = new Uses()) {
            return new Communicator(shw_nativeJNI.shw_communicator_create_over(uses.of(collective)));
        }
    }

    /**
     * A communicator of the host.
     *
     * @param transport its methods
     * @return this rank's end
     */
    public static Communicator host(HostCommunicator transport) {
        NativeLoader.load();
        Objects.requireNonNull(transport, "transport");
        int rank = transport.rank();
        int size = transport.size();
        Set<CommunicatorCapability> able = EnumSet.of(CommunicatorCapability.HOST_MEMORY);
        able.addAll(transport.capabilities());
        int reduces = transport instanceof ReducingHostCommunicator ? 1 : 0;
        if (reduces == 0) {
            able.add(CommunicatorCapability.ORDERED_SUM); // the sums of the library are
        }
        long capabilities = CommunicatorCapability.bits(able);
        int broadcasts = transport instanceof BroadcastingHostCommunicator ? 1 : 0;
        long bridge = shw_nativeJNI.reference(new HostCommunicatorBridge(transport));
        return new Communicator(
                shw_nativeJNI.shw_java_communicator_create(bridge, rank, size, capabilities, reduces, broadcasts));
    }

    /**
     * A communicator of a plugin.
     *
     * @param context into which it was loaded ({@link Context#loadPlugin})
     * @param plugin its name
     * @param config text that the plugin understands; null = none
     * @return this rank's end
     * @throws NotFoundException when no such plugin was loaded
     * @throws InvalidArgumentException when the plugin does not understand the text
     * @throws ShardwrightException UNIMPLEMENTED for a plugin without communicators
     */
    public static Communicator open(Context context, String plugin, String config) {
        try (Uses uses = new Uses()) {
            byte[] text = config == null ? null : Text.bytes(config);
            return new Communicator(
                    shw_nativeJNI.shw_context_open_communicator(uses.of(context), Text.terminated(plugin), text));
        }
    }

    /**
     * One rank of several that moves nothing and always succeeds, for checks of what would be issued.
     *
     * @param rank this rank
     * @param size number of ranks
     * @return its end
     * @throws InvalidArgumentException when the rank is none of them
     */
    public static Communicator fake(int rank, int size) {
        NativeLoader.load();
        return new Communicator(shw_nativeJNI.shw_communicator_create_fake(rank, size));
    }

    /**
     * A communicator behind an emulated link of this rank.
     *
     * @param inner the communicator; may be closed afterwards, and is used through this one alone
     * @param latency an operation ends so long after its bytes have come
     * @param bytesPerSecond at which they come; 0 = at once
     * @return this rank's end
     * @throws InvalidArgumentException for a negative latency or rate
     */
    public static Communicator delayed(Communicator inner, Duration latency, double bytesPerSecond) {
        return inner.with(h -> new Communicator(
                shw_nativeJNI.shw_communicator_create_delay(h, latency.toNanos(), bytesPerSecond)));
    }

    /**
     * Rank of this end.
     *
     * @return from 0
     */
    public int rank() {
        return with(shw_nativeJNI::shw_communicator_rank);
    }

    /**
     * Number of ranks.
     *
     * @return the world size
     */
    public int size() {
        return with(shw_nativeJNI::shw_communicator_size);
    }

    /**
     * Name of the transport.
     *
     * @return e.g. {@code threads}
     */
    public String name() {
        return Text.of(with(shw_nativeJNI::shw_communicator_name));
    }

    /**
     * What it can.
     *
     * @return the capabilities
     */
    public Set<CommunicatorCapability> capabilities() {
        return CommunicatorCapability.of(with(shw_nativeJNI::shw_communicator_capabilities));
    }

    /**
     * Gathers elements of all ranks, in rank order.
     *
     * @param dtype element type
     * @param data elements of this rank
     * @param gathered those of all ranks
     * @param timeout of the operation
     * @return the operation
     */
    public Work allGather(DType dtype, ByteBuffer data, ByteBuffer gathered, Duration timeout) {
        return issue(new Call(Operation.ALL_GATHER, dtype, data, gathered, timeout), elements(dtype, data, 1));
    }

    /**
     * Sends each rank its part, and gets what each has for this one. Parts are equal, in rank order.
     *
     * @param dtype element type
     * @param parts elements for all ranks
     * @param received elements from all ranks
     * @param timeout of the operation
     * @return the operation
     */
    public Work allToAll(DType dtype, ByteBuffer parts, ByteBuffer received, Duration timeout) {
        return issue(new Call(Operation.ALL_TO_ALL, dtype, parts, received, timeout), elements(dtype, parts, size()));
    }

    /**
     * Reduces each part over all ranks, in rank order where the transport does not say otherwise; each rank gets its part.
     *
     * @param dtype element type
     * @param parts elements for all ranks
     * @param reduced the part of this rank
     * @param op how
     * @param scale of {@link TensorReduction#SCALED_SUM}
     * @param timeout of the operation
     * @return the operation
     */
    public Work reduceScatter(DType dtype, ByteBuffer parts, ByteBuffer reduced, TensorReduction op, double scale,
            Duration timeout) {
        Call call = new Call(Operation.REDUCE_SCATTER, dtype, parts, reduced, timeout);
        return issue(call.reduced(op, scale), elements(dtype, reduced, 1));
    }

    /**
     * Reduces over all ranks, in place.
     *
     * @param dtype element type
     * @param data elements of this rank, then the result
     * @param op how
     * @param scale of {@link TensorReduction#SCALED_SUM}
     * @param timeout of the operation
     * @return the operation
     */
    public Work allReduce(DType dtype, ByteBuffer data, TensorReduction op, double scale, Duration timeout) {
        Call call = new Call(Operation.ALL_REDUCE, dtype, null, data, timeout);
        return issue(call.reduced(op, scale), elements(dtype, data, 1));
    }

    /**
     * Gives elements of the root to all ranks.
     *
     * @param dtype element type
     * @param data read at the root, written elsewhere
     * @param root the rank that has them
     * @param timeout of the operation
     * @return the operation
     */
    public Work broadcast(DType dtype, ByteBuffer data, int root, Duration timeout) {
        Call call = new Call(Operation.BROADCAST, dtype, null, data, timeout);
        call.root = root;
        return issue(call, elements(dtype, data, 1));
    }

    /**
     * Ends when all ranks have issued it.
     *
     * @param timeout of the operation
     * @return the operation
     */
    public Work barrier(Duration timeout) {
        return issue(new Call(Operation.BARRIER, DType.of(0), null, null, timeout), 0);
    }

    /**
     * Wakes all ranks that wait in this communicator, and ends it: they fail with the code and the message. From any thread.
     *
     * @param code what they fail with
     * @param message why
     */
    public void abort(StatusCode code, String message) {
        with(h -> shw_nativeJNI.shw_communicator_abort(h, code.number(), message.getBytes(StandardCharsets.UTF_8)));
    }

    @Override
    protected String facts() {
        return name() + ", rank " + rank() + " of " + size();
    }

    /** Number of elements of each of `parts` in a buffer. */
    private static long elements(DType dtype, ByteBuffer buffer, int parts) {
        long bytesOfEight = dtype.byteSize(8);
        if (bytesOfEight <= 0) {
            throw Invalid.parameter("dtype", dtype.number() + " is no dtype");
        }
        return Math.multiplyExact((long) buffer.remaining(), 8) / bytesOfEight / parts;
    }

    /** One operation and its memory. */
    private static final class Call {
        final Operation operation;
        final DType dtype;
        final ByteBuffer in;
        final ByteBuffer out;
        final long timeoutNs;
        int root;
        TensorReduction op = TensorReduction.SUM;
        double scale = 1;

        Call(Operation operation, DType dtype, ByteBuffer in, ByteBuffer out, Duration timeout) {
            this.operation = operation;
            this.dtype = dtype;
            this.in = memory("data", in, false);
            this.out = memory("out", out, true);
            this.timeoutNs = OptionValues.deadline(timeout);
        }

        Call reduced(TensorReduction how, double by) {
            op = Objects.requireNonNull(how, "op");
            scale = by;
            return this;
        }

        private static ByteBuffer memory(String parameter, ByteBuffer buffer, boolean isWritten) {
            if (buffer == null) {
                return null;
            }
            if (!buffer.isDirect() || isWritten && buffer.isReadOnly()) {
                throw Invalid.parameter(parameter, parameter + " must be a direct buffer"
                        + (isWritten ? " that can be written" : ""));
            }
            return buffer.slice();
        }

        long[] facts(long sequence, long count) {
            return new long[] {sequence, count, dtype.number(), op.number(), timeoutNs};
        }
    }

    private static long addressOf(ByteBuffer buffer) {
        return buffer == null ? 0 : shw_nativeJNI.addressOf(buffer);
    }

    private static long sizeOf(ByteBuffer buffer) {
        return buffer == null ? 0 : buffer.capacity();
    }

    private Work issue(Call call, long count) {
        long[] facts = call.facts(sequence.incrementAndGet(), count);
        return with(h -> new Work(shw_nativeJNI.shw_java_communicator_issue(h, call.operation.ordinal(), facts, call.scale,
                addressOf(call.in), sizeOf(call.in), addressOf(call.out), sizeOf(call.out), call.root), call));
    }
}
