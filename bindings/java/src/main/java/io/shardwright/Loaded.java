// SPDX-License-Identifier: Apache-2.0
// Whole checkpoints in memory.
package io.shardwright;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Everything that a checkpoint holds, read without a target. Closing it closes the tensors; views of them stay valid. */
public final class Loaded implements AutoCloseable {
    private final Map<String, Tensor> tensors = new LinkedHashMap<>();
    private final Map<String, StoredObject> objects;
    private final Tree tree = new Tree();

    /** Reads all that the checkpoint shows. */
    Loaded(Checkpoint checkpoint) {
        try {
            readTensors(checkpoint);
            objects = checkpoint.objects();
        } catch (Throwable e) {
            close(); // nobody else has what was read so far
            throw e;
        }
        Map<String, String> paths = checkpoint.objectPaths();
        objects.forEach((name, object) -> tree.put(name, paths.get(name), object.value()));
    }

    private void readTensors(Checkpoint checkpoint) {
        List<TensorInfo> infos = checkpoint.tensors();
        checkpoint.shownTensors().forEach((name, index) -> {
            Tensor tensor = checkpoint.readAt(index);
            tensors.put(name, tensor);
            tree.put(name, infos.get(index).path(), tensor);
        });
    }

    /**
     * Tensors by name.
     *
     * @return in stored order
     */
    public Map<String, Tensor> tensors() {
        return Collections.unmodifiableMap(tensors);
    }

    /**
     * Byte objects by name.
     *
     * @return in stored order
     */
    public Map<String, StoredObject> objects() {
        return Collections.unmodifiableMap(objects);
    }

    /**
     * Everything as the nested tree that was saved.
     *
     * @return maps (integer keys are Long), lists, tensors, JSON values and byte arrays
     */
    public Map<Object, Object> tree() {
        return tree.root();
    }

    @Override
    public String toString() {
        return "Loaded(" + tensors.size() + " tensors, " + objects.size() + " objects)";
    }

    @Override
    public void close() {
        tensors.values().forEach(Tensor::close);
    }
}
