// SPDX-License-Identifier: Apache-2.0
// The flat arrays of one bulk call.
package io.shardwright;

import io.shardwright.internal.LongList;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import io.shardwright.layout.Box;
import io.shardwright.layout.Layout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Tensors of a state, all of one form. Not thread-safe. */
final class TensorColumns {
    private static final int FACTS = 10;

    /** Whole tensors, boxes of larger ones, parts of grids. */
    enum Form { WHOLE, BOXES, GRIDS }

    private final Form form;
    private final List<String> names = new ArrayList<>();
    private final List<String> paths = new ArrayList<>();
    private final List<HostTensor> tensors = new ArrayList<>();

    TensorColumns(Form form) {
        this.form = form;
    }

    void add(String name, String path, HostTensor tensor) {
        tensor.check(name);
        names.add(name);
        paths.add(path);
        tensors.add(tensor);
    }

    /** Adds all to a native state; `uses` keeps memory of library tensors. */
    void addTo(long state, Uses uses) {
        if (tensors.isEmpty()) {
            return;
        }
        int count = tensors.size();
        long[] facts = new long[count * FACTS];
        LongList shapes = new LongList();
        boolean strided = tensors.stream().anyMatch(HostTensor::isStrided);
        LongList strides = new LongList();
        Layouts layouts = new Layouts();
        for (int i = 0; i < count; i++) {
            HostTensor tensor = tensors.get(i);
            long[] shape = tensor.shape();
            int at = i * FACTS;
            facts[at] = tensor.memory().address(uses);
            facts[at + 1] = tensor.memory().byteSize();
            facts[at + 2] = tensor.dtype().number();
            facts[at + 3] = shape.length;
            facts[at + 4] = tensor.memory().deviceType();
            facts[at + 5] = tensor.memory().deviceId();
            facts[at + 6] = tensor.memory().isReadOnly() ? shw_nativeConstants.SHW_TENSOR_READ_ONLY : 0;
            facts[at + 7] = tensor.kind().number();
            facts[at + 8] = layouts.number(names.get(i), tensor);
            facts[at + 9] = tensor.isReplica() ? 1 : 0;
            shapes.addAll(shape);
            if (strided) {
                strides.addAll(tensor.stridesOrDense());
            }
        }
        Text.Blob nameBlob = Text.Blob.ofTexts(names);
        Text.Blob pathBlob = Text.Blob.ofTexts(paths);
        Boxes boxes = form == Form.BOXES ? new Boxes(tensors) : Boxes.NONE;
        boolean cut = form == Form.GRIDS || tensors.stream().anyMatch(tensor -> tensor.fragments() != null);
        Grids grids = cut ? new Grids(tensors, form) : Grids.NONE;
        try (Uses during = new Uses()) {
            long[] handles = layouts.numbers.keySet().stream().mapToLong(during::of).toArray();
            shw_nativeJNI.shw_java_state_add_tensors(state, count, nameBlob.bytes, nameBlob.offsets, facts,
                    shapes.toArray(), strided ? strides.toArray() : null, boxes.globalShapes, boxes.globalShapeOffsets,
                    boxes.ranges, boxes.offsets, boxes.sizes, boxes.localOffsets, handles, handles.length, layouts.rank,
                    pathBlob.bytes, pathBlob.offsets, grids.fragments, grids.indices, grids.ends);
        }
    }

    /** Layouts beside the boxes of tensors. The library takes those of one rank per call. */
    private static final class Layouts {
        final Map<Layout, Integer> numbers = new LinkedHashMap<>();
        int rank;

        /** From 1 on in the order of the map; 0 for none, or of another rank than the first: its boxes say all. */
        int number(String name, HostTensor tensor) {
            Layout layout = tensor.layout();
            if (layout == null) {
                return 0;
            }
            if (!numbers.isEmpty() && rank != tensor.rank()) {
                tensor.checkLayout(name); // the library, which does not see this one, compares the others
                return 0;
            }
            rank = tensor.rank();
            numbers.putIfAbsent(layout, numbers.size() + 1);
            return numbers.get(layout);
        }
    }

    /** Grids of all tensors, or fragments alone, as flat arrays; all null without. */
    private static final class Grids {
        static final Grids NONE = new Grids();

        final long[] fragments;
        final long[] indices;
        final long[] ends;

        private Grids() {
            fragments = null;
            indices = null;
            ends = null;
        }

        Grids(List<HostTensor> tensors, Form form) {
            LongList counts = new LongList();
            LongList parts = new LongList();
            LongList gridEnds = new LongList();
            gridEnds.add(0);
            for (HostTensor tensor : tensors) {
                if (form == Form.GRIDS) {
                    counts.addAll(tensor.gridFragments());
                    parts.addAll(tensor.gridIndex());
                } else if (tensor.fragments() != null) {
                    counts.addAll(tensor.fragments());
                }
                gridEnds.add(counts.size());
            }
            fragments = counts.toArray();
            indices = form == Form.GRIDS ? parts.toArray() : null;
            ends = gridEnds.toArray();
        }
    }

    /** Boxes of all tensors as flat arrays; all null when tensors are whole. */
    private static final class Boxes {
        static final Boxes NONE = new Boxes();

        final long[] globalShapes;
        final long[] globalShapeOffsets;
        final long[] ranges;
        final long[] offsets;
        final long[] sizes;
        final long[] localOffsets;

        private Boxes() {
            globalShapes = null;
            globalShapeOffsets = null;
            ranges = null;
            offsets = null;
            sizes = null;
            localOffsets = null;
        }

        Boxes(List<HostTensor> tensors) {
            LongList shapes = new LongList();
            LongList shapeEnds = new LongList();
            LongList boxEnds = new LongList();
            LongList starts = new LongList();
            LongList boxOffsets = new LongList();
            LongList boxSizes = new LongList();
            shapeEnds.add(0);
            boxEnds.add(0);
            for (HostTensor tensor : tensors) {
                shapes.addAll(tensor.globalShape());
                shapeEnds.add(shapes.size());
                for (Box box : tensor.boxes()) {
                    boxOffsets.addAll(box.offsets());
                    boxSizes.addAll(box.sizes());
                }
                starts.addAll(tensor.localOffsets());
                boxEnds.add(starts.size());
            }
            globalShapes = shapes.toArray();
            globalShapeOffsets = shapeEnds.toArray();
            ranges = boxEnds.toArray();
            offsets = boxOffsets.toArray();
            sizes = boxSizes.toArray();
            localOffsets = starts.toArray();
        }
    }
}
