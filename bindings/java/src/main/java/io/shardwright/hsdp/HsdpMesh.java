// SPDX-License-Identifier: Apache-2.0
// Meshes of ranks.
package io.shardwright.hsdp;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What one rank is in the device mesh of its job, and the communicators along the axes. Contexts keep it alive. Used by one
 * thread at a time.
 */
public final class HsdpMesh extends Handle {
    private static final byte[] CAUSE =
            "cancelled by the host: the thread of a rank was interrupted".getBytes(StandardCharsets.UTF_8);

    private final int axes;
    private final Map<String, Held> communicators;

    /** A communicator that may be closed, and is not released before the mesh has let go of it. */
    private record Held(long handle, Uses uses) {}

    private HsdpMesh(long handle, int axes, Map<String, Held> communicators) {
        super(handle, Leak.QUIET, h -> {
            shw_nativeJNI.shw_hsdp_mesh_release(h);
            communicators.values().forEach(each -> each.uses.close());
        });
        this.axes = axes;
        this.communicators = communicators;
    }

    /**
     * A mesh of the ranks 0, 1, 2, ... in row-major order.
     *
     * @param rank this rank
     * @param shape extents, such as 2, 4 for 2 replicas of 4 shards
     * @return the mesh
     * @throws InvalidArgumentException when the rank is not in it
     */
    public static HsdpMesh of(int rank, long... shape) {
        return of(rank, shape, new int[0], List.of());
    }

    /**
     * A mesh.
     *
     * @param rank this rank, one of {@code ranks}
     * @param shape extents
     * @param ranks global ranks in row-major order; empty = 0, 1, 2, ...
     * @param names names of the axes; empty = unnamed
     * @return the mesh
     * @throws InvalidArgumentException when the rank is not in it, or the ranks or names do not fit the shape
     */
    public static HsdpMesh of(int rank, long[] shape, int[] ranks, List<String> names) {
        Structs.LayoutSpec spec = new Structs.LayoutSpec();
        spec.meshShape = shape;
        spec.meshNdim = shape.length;
        if (ranks.length > 0) {
            spec.ranks = ranks;
            spec.rankCount = ranks.length;
        }
        if (!names.isEmpty()) {
            if (names.size() != shape.length) {
                throw Invalid.parameter("names", names.size() + " names for a mesh of " + shape.length + " axes");
            }
            Text.Blob texts = Text.Blob.ofTexts(names);
            spec.axisNames = texts.bytes;
            spec.axisNameOffsets = texts.offsets;
        }
        NativeLoader.load();
        return new HsdpMesh(shw_nativeJNI.shw_hsdp_mesh_create(spec, rank), shape.length, new ConcurrentHashMap<>());
    }

    /**
     * As {@link #setCommunicator(int, MeshLane, Communicator)} for {@link MeshLane#GATHER}: gathers, and reductions unless they
     * have their own.
     *
     * @param axis the axis
     * @param communicator that of the ranks along the axis
     */
    public void setCommunicator(int axis, Communicator communicator) {
        setCommunicator(axis, MeshLane.GATHER, communicator);
    }

    /**
     * Sets the communicator of an axis, before the context is made, and again between a failure and {@link Hsdp#reset}.
     *
     * @param axis the axis
     * @param lane what it is for
     * @param communicator its ranks are those along the axis in the order of their coordinates; for
     *     {@link MeshLane#SECONDARY} the n neighbours [k n, k n + n) with this rank among them, for each n that units use
     * @throws InvalidArgumentException when its size or rank do not fit the axis
     */
    public void setCommunicator(int axis, MeshLane lane, Communicator communicator) {
        Uses uses = new Uses();
        try {
            long handle = uses.of(communicator);
            with(h -> shw_nativeJNI.shw_hsdp_mesh_set_communicator(h, axis, lane.number(), handle));
            // Of neighbours there is one for each number of them.
            String place = axis + " " + lane + (lane == MeshLane.SECONDARY ? " " + communicator.size() : "");
            Held before = communicators.put(place, new Held(handle, uses));
            if (before != null) {
                before.uses.close();
            }
        } catch (Throwable e) {
            uses.close();
            throw e;
        }
    }

    /** The thread of a rank that waits was interrupted: all ranks that wait along its axes fail with CANCELLED. Any thread. */
    void cancel() {
        for (Held each : communicators.values()) {
            try {
                shw_nativeJNI.shw_communicator_abort(each.handle, shw_nativeConstants.SHW_CANCELLED, CAUSE);
            } catch (RuntimeException e) {
                // A transport that cannot be woken: the call ends with its time-out.
            }
        }
    }

    @Override
    protected String facts() {
        return axes + (axes == 1 ? " axis" : " axes");
    }
}
