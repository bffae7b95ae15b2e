// SPDX-License-Identifier: Apache-2.0
// Layouts: a mesh of ranks and what its axes do to a tensor.
package io.shardwright;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

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
            throw ShardwrightException.invalid("placements",
                    placements.length + " placements for a mesh of " + mesh.length + " axes");
        }
        int[] columns = IntStream.concat(Arrays.stream(placements).mapToInt(Placement::kind),
                IntStream.concat(Arrays.stream(placements).mapToInt(Placement::dim),
                        Arrays.stream(placements).mapToInt(Placement::factor))).toArray();
        NativeLoader.load();
        return new Layout(shw_nativeJNI.shw_java_layout_create(mesh, mesh.length, null, null, ranks, ranks.length, columns,
                null, null, 0));
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
        long[] offsets = new long[map.length + 1];
        for (int i = 0; i < map.length; i++) {
            offsets[i + 1] = offsets[i] + map[i].length;
        }
        if (!names.isEmpty() && names.size() != mesh.length) {
            throw ShardwrightException.invalid("names", names.size() + " names for a mesh of " + mesh.length + " axes");
        }
        long[] nameOffsets = new long[names.size() + 1];
        for (int i = 0; i < names.size(); i++) {
            nameOffsets[i + 1] = nameOffsets[i] + names.get(i).getBytes(StandardCharsets.UTF_8).length;
        }
        byte[] texts = String.join("", names).getBytes(StandardCharsets.UTF_8);
        int[] axes = Arrays.stream(map).flatMapToInt(Arrays::stream).toArray();
        NativeLoader.load();
        return new Layout(shw_nativeJNI.shw_java_layout_create(mesh, mesh.length, texts,
                names.isEmpty() ? null : nameOffsets, ranks, ranks.length, null, axes, offsets, map.length));
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
