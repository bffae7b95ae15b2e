// SPDX-License-Identifier: Apache-2.0
// Layouts: a mesh of ranks and one placement per mesh axis.
package io.shardwright;

import java.util.ArrayList;
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
     * @param placements one per mesh axis
     * @return the layout
     */
    public static Layout of(long[] mesh, int[] ranks, Placement... placements) {
        if (mesh.length != placements.length) {
            throw ShardwrightException.invalid("placements",
                    placements.length + " placements for a mesh of " + mesh.length + " axes");
        }
        NativeLoader.load();
        int[] kinds = Arrays.stream(placements).mapToInt(Placement::kind).toArray();
        int[] dims = Arrays.stream(placements).mapToInt(Placement::dim).toArray();
        return new Layout(shw_nativeJNI.shw_java_layout_create(mesh, mesh.length, ranks, ranks.length, kinds, dims));
    }

    /**
     * The boxes that a rank holds of a tensor.
     *
     * @param shape extents of the whole tensor
     * @param rank global rank
     * @return the boxes; none when the rank is not in the mesh
     */
    public List<Box> boxes(long[] shape, int rank) {
        long count = with(h -> shw_nativeJNI.shw_layout_box_count(h, shape, shape.length, rank));
        long[] values = with(h -> shw_nativeJNI.layoutBoxes(h, shape, rank));
        List<Box> boxes = new ArrayList<>();
        int ndim = shape.length;
        for (int i = 0; i < count; i++) {
            int at = i * 2 * ndim;
            boxes.add(new Box(Arrays.copyOfRange(values, at, at + ndim), Arrays.copyOfRange(values, at + ndim, at + 2 * ndim)));
        }
        return boxes;
    }
}
