// SPDX-License-Identifier: Apache-2.0
// Layouts: a mesh of ranks and what its axes do to a tensor.
package io.shardwright.layout;

import io.shardwright.errors.UnimplementedException;
import io.shardwright.hsdp.HsdpUnit;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.util.Arrays;
import java.util.List;

/** A rule that gives each rank the boxes of a tensor that it holds. Immutable, thread-safe; closing is not necessary. */
public final class Layout extends Handle {
    private Layout(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_layout_release);
    }

    /**
     * A layout of the ranks 0, 1, 2, ... in row-major order.
     *
     * @param mesh extents of the mesh
     * @param placements one per mesh axis
     * @return the layout
     */
    public static Layout of(long[] mesh, Placement... placements) {
        return of(mesh, new int[0], placements);
    }

    /**
     * A layout.
     *
     * @param mesh extents of the mesh
     * @param ranks global ranks in row-major order; empty = 0, 1, 2, ...
     * @param placements one per mesh axis; they cut from the first axis to the last
     * @return the layout
     */
    public static Layout of(long[] mesh, int[] ranks, Placement... placements) {
        if (mesh.length != placements.length) {
            throw Invalid.parameter("placements",
                    placements.length + " placements for a mesh of " + mesh.length + " axes");
        }
        Structs.LayoutSpec spec = specOf(mesh, ranks);
        spec.placementKinds = Arrays.stream(placements).mapToInt(Placement::kind).toArray();
        spec.placementDims = Arrays.stream(placements).mapToInt(Placement::dim).toArray();
        spec.placementFactors = Arrays.stream(placements).mapToInt(Placement::factor).toArray();
        NativeLoader.load();
        return new Layout(shw_nativeJNI.shw_layout_create(spec));
    }

    private static Structs.LayoutSpec specOf(long[] mesh, int[] ranks) {
        Structs.LayoutSpec spec = new Structs.LayoutSpec();
        spec.meshShape = mesh;
        spec.meshNdim = mesh.length;
        if (ranks.length > 0) {
            spec.ranks = ranks;
            spec.rankCount = ranks.length;
        }
        return spec;
    }

    /**
     * A layout in HyperParallel's form, for tensors of as many dimensions as the map has entries.
     *
     * @param mesh extents of the mesh
     * @param ranks global ranks in row-major order; empty = 0, 1, 2, ...
     * @param names names of the mesh axes; empty = unnamed
     * @param map per tensor dimension the mesh axes that split it, the outermost first, counted from the right (0 = last
     *     axis); -1 or none = not split
     * @return the layout
     * @throws UnimplementedException when an axis is called "interleaved_parallel"
     */
    public static Layout ofMap(long[] mesh, int[] ranks, List<String> names, int[]... map) {
        if (!names.isEmpty() && names.size() != mesh.length) {
            throw Invalid.parameter("names", names.size() + " names for a mesh of " + mesh.length + " axes");
        }
        Structs.LayoutSpec spec = specOf(mesh, ranks);
        if (!names.isEmpty()) {
            Text.Blob texts = Text.Blob.ofTexts(names);
            spec.axisNames = texts.bytes;
            spec.axisNameOffsets = texts.offsets;
        }
        spec.tensorMap = Arrays.stream(map).flatMapToInt(Arrays::stream).toArray();
        spec.tensorMapOffsets = new long[map.length + 1];
        for (int i = 0; i < map.length; i++) {
            spec.tensorMapOffsets[i + 1] = spec.tensorMapOffsets[i] + map[i].length;
        }
        spec.tensorNdim = map.length;
        NativeLoader.load();
        return new Layout(shw_nativeJNI.shw_layout_create(spec));
    }

    /**
     * The layout of a parameter that is trained.
     *
     * @param unit its unit, sealed
     * @param index number of the parameter
     * @return the layout
     * @throws UnimplementedException for a ragged unit, whose cut is no rule of a mesh
     */
    public static Layout of(HsdpUnit unit, int index) {
        try (Uses uses = new Uses()) {
            return new Layout(shw_nativeJNI.shw_hsdp_unit_layout(uses.of(unit), index));
        }
    }

    /**
     * The boxes that a rank holds of a tensor.
     *
     * @param shape extents of the whole tensor
     * @param rank global rank
     * @return the boxes; none when the rank is not in the mesh
     */
    public List<Box> boxes(long[] shape, int rank) {
        return pieces(shape, rank).stream().map(Piece::box).toList();
    }

    /**
     * The boxes that a rank holds of a tensor and where they begin in its local tensor.
     *
     * @param shape extents of the whole tensor
     * @param rank global rank
     * @return the pieces; none when the rank is not in the mesh
     */
    public List<Piece> pieces(long[] shape, int rank) {
        return Piece.listOf(with(h -> shw_nativeJNI.layoutPieces(h, shape, rank)), shape.length);
    }

    /**
     * The shape of the local tensor of a rank.
     *
     * @param shape extents of the whole tensor
     * @param rank global rank
     * @return extents, or the number of elements where an axis is flat, or one 0 for a rank outside the mesh
     */
    public long[] localShape(long[] shape, int rank) {
        return with(h -> shw_nativeJNI.layoutLocalShape(h, shape, rank));
    }

    /**
     * Whether a rank is in the mesh.
     *
     * @param rank global rank
     * @return true when it is
     */
    public boolean contains(int rank) {
        return with(h -> shw_nativeJNI.layoutContains(h, rank));
    }
}
