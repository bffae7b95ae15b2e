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
import io.shardwright.internal.shw_nativeJNI;
import java.util.List;

/**
 * What one rank is in the device mesh of its job, and the communicators along the axes. Contexts keep it alive. Used by one
 * thread at a time.
 */
public final class HsdpMesh extends Handle {
    private final int axes;

    private HsdpMesh(long handle, int axes) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_hsdp_mesh_release);
        this.axes = axes;
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
        return new HsdpMesh(shw_nativeJNI.shw_hsdp_mesh_create(spec, rank), shape.length);
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
        try (Uses uses = new Uses()) {
            shw_nativeJNI.shw_hsdp_mesh_set_communicator(uses.of(this), axis, lane.number(), uses.of(communicator));
        }
    }

    @Override
    protected String facts() {
        return axes + (axes == 1 ? " axis" : " axes");
    }
}
