// SPDX-License-Identifier: Apache-2.0
// The flat arrays of one bulk call with byte objects.
package io.shardwright;

import io.shardwright.internal.Invalid;
import io.shardwright.internal.LongList;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeJNI;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Byte objects of a state. Not thread-safe. */
final class ObjectColumns {
    private final List<String> names = new ArrayList<>();
    private final List<String> paths = new ArrayList<>();
    private final List<String> contentTypes = new ArrayList<>();
    private final List<byte[]> contents = new ArrayList<>();
    private final List<Kind> kinds = new ArrayList<>();
    private final List<Integer> replicas = new ArrayList<>();
    private final LongList gridShapes = new LongList();
    private final LongList gridIndices = new LongList();
    private final LongList gridEnds = new LongList();

    ObjectColumns() {
        gridEnds.add(0);
    }

    void add(String name, String path, String contentType, byte[] bytes, Kind kind, boolean replica) {
        names.add(Objects.requireNonNull(name, "name"));
        paths.add(Objects.requireNonNull(path, "path"));
        contentTypes.add(Objects.requireNonNull(contentType, "contentType"));
        contents.add(bytes);
        kinds.add(Objects.requireNonNull(kind, "kind"));
        replicas.add(replica ? 1 : 0);
        gridEnds.add(gridShapes.size());
    }

    /** A cell of a grid, whose name the library makes. */
    void addCell(ObjectKey key, String contentType, byte[] bytes, Kind kind, boolean replica) {
        long[] index = key.index();
        long[] shape = key.shape();
        if (index.length != shape.length) {
            throw Invalid.parameter("index", index.length + " indices in a grid of " + shape.length + " axes");
        }
        if (index.length == 0) {
            throw Invalid.parameter("index", "a cell of a grid without axes");
        }
        gridShapes.addAll(shape);
        gridIndices.addAll(index);
        add(key.key(), "", contentType, bytes, kind, replica);
    }

    void addTo(long state) {
        if (names.isEmpty()) {
            return;
        }
        Structs.ObjectBatch batch = new Structs.ObjectBatch();
        batch.count = names.size();
        Text.Blob nameBlob = Text.Blob.ofTexts(names);
        batch.names = nameBlob.bytes;
        batch.nameOffsets = nameBlob.offsets;
        Text.Blob blob = new Text.Blob(contents);
        batch.data = blob.bytes;
        batch.dataOffsets = blob.offsets;
        Text.Blob types = Text.Blob.ofTexts(contentTypes);
        batch.contentTypes = types.bytes;
        batch.contentTypeOffsets = types.offsets;
        Text.Blob pathBlob = Text.Blob.ofTexts(paths);
        batch.paths = pathBlob.bytes;
        batch.pathOffsets = pathBlob.offsets;
        batch.kinds = kinds.stream().mapToInt(Kind::number).toArray();
        batch.replicaIds = replicas.stream().mapToInt(Integer::intValue).toArray();
        batch.gridShapes = gridShapes.toArray();
        batch.gridIndices = gridIndices.toArray();
        batch.gridOffsets = gridEnds.toArray();
        shw_nativeJNI.shw_state_add_objects(state, batch);
    }
}
