// SPDX-License-Identifier: Apache-2.0
// States: what one rank saves, or wants filled.
package io.shardwright;

import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.hsdp.Hsdp;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.Json;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Ordered entries of one rank: tensors and byte objects. Memory of tensors is borrowed and kept reachable by the state, and
 * by jobs and planners that use it. A name has at most 65,535 bytes of UTF-8. Thread-compatible: one load at a time.
 */
public final class State extends Handle {
    private static final String JSON = "application/json";
    private static final String OCTETS = "application/octet-stream";

    private final Map<String, HostTensor> tensors;
    private final Map<String, String> tensorPaths;
    private final List<Uses> uses;

    private State(long handle, Uses uses, Map<String, HostTensor> tensors, Map<String, String> paths) {
        this(handle, new ArrayList<>(List.of(uses)), tensors, paths);
    }

    private State(long handle, List<Uses> uses, Map<String, HostTensor> tensors, Map<String, String> paths) {
        super(handle, Leak.WARN, h -> {
            shw_nativeJNI.shw_state_release(h);
            uses.forEach(Uses::close);
        });
        this.tensors = new LinkedHashMap<>(tensors);
        tensorPaths = new LinkedHashMap<>(paths);
        this.uses = uses;
    }

    /**
     * A builder without entries.
     *
     * @return the builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * A state of a nested tree: maps with text or integer keys and lists; leaves are {@link HostTensor}, {@link Tensor},
     * arrays of numbers (one dimension), {@code byte[]} (byte object), and JSON values (null, Boolean, numbers, text). Names
     * are the keys joined with dots; a container without tensors and bytes is one JSON object.
     *
     * @param tree the tree
     * @return the state
     * @throws InvalidArgumentException for another leaf, naming its path, and for null
     * @throws AlreadyExistsException when two paths give one name
     */
    public static State of(Map<?, ?> tree) {
        if (tree == null) {
            throw Invalid.parameter("state", "a state is a map of names to values, found null");
        }
        return builder().tree(tree).build();
    }

    /**
     * Adds a tensor behind what is there. That is how one that lies on a device, such as what an optimizer keeps there, gets in:
     * after {@link Hsdp#addToState} gave the state shards of units on that device, which saves and loads copy by it.
     *
     * @param name fully qualified name
     * @param tensor the tensor
     * @throws AlreadyExistsException when there is an entry of that name
     * @throws InvalidArgumentException as {@link Builder#build}
     * @throws UnimplementedException naming a device on which no shards of the state lie
     */
    public void add(String name, HostTensor tensor) {
        TensorColumns column = new TensorColumns(tensor.form());
        column.add(name, "", tensor);
        Uses more = new Uses();
        try {
            with(h -> {
                column.addTo(h, more);
                return uses.add(more);
            });
        } catch (Throwable e) {
            more.close();
            throw e;
        }
        tensors.put(name, tensor);
        tensorPaths.put(name, "");
    }

    /**
     * Names of the tensors, those of trained units ({@link Hsdp#addToState}) among them.
     *
     * @return in the order in which they were added
     */
    public List<String> tensorNames() {
        return with(h -> {
            List<String> names = new ArrayList<>();
            for (long i = 0; i < shw_nativeJNI.shw_state_tensor_count(h); i++) {
                names.add(Text.of(shw_nativeJNI.shw_state_tensor_name(h, i)));
            }
            return names;
        });
    }

    /**
     * A tensor as it was added.
     *
     * @param name its name
     * @return the tensor, null when there is none, or when its memory is that of a trained unit
     */
    public HostTensor tensor(String name) {
        return tensors.get(name);
    }

    /**
     * Names of the byte objects.
     *
     * @return in the order in which they were added
     */
    public List<String> objectNames() {
        return with(h -> {
            List<String> names = new ArrayList<>();
            for (long i = 0; i < shw_nativeJNI.shw_state_object_count(h); i++) {
                names.add(Text.of(shw_nativeJNI.shw_state_object_name(h, i)));
            }
            return names;
        });
    }

    /**
     * A byte object, as added or as a load left it.
     *
     * @param name its name
     * @return the object
     * @throws NotFoundException when there is none
     */
    public StoredObject object(String name) {
        byte[] text = Text.bytes(name);
        return with(h -> objectAt(h, shw_nativeJNI.shw_state_find_object(h, text)));
    }

    private static StoredObject objectAt(long h, long index) {
        return new StoredObject(Text.of(shw_nativeJNI.shw_state_object_content_type(h, index)),
                shw_nativeJNI.stateObject(h, index));
    }

    /**
     * The value of a JSON object, as added or as a load left it.
     *
     * @param name its name
     * @return null, Boolean, Long, BigInteger, Double, String, List or Map
     */
    public Object json(String name) {
        return object(name).json();
    }

    /**
     * All entries as a nested tree, with the values that a load left.
     *
     * @return maps, lists, tensors, JSON values and byte arrays
     */
    public Map<Object, Object> toTree() {
        Tree tree = new Tree();
        tensors.forEach((name, tensor) -> tree.put(name, tensorPaths.get(name), tensor));
        with(h -> {
            for (long i = 0; i < shw_nativeJNI.shw_state_object_count(h); i++) {
                tree.put(Text.of(shw_nativeJNI.shw_state_object_name(h, i)),
                        Text.of(shw_nativeJNI.shw_state_object_path(h, i)), objectAt(h, i).value());
            }
            return null;
        });
        return tree.root();
    }

    /**
     * A state of what a mapping says of the entries of this one. Tensors are views of the same memory, so that nothing is
     * copied where parts come together; objects are copied, and what a load finds is in the new state. This one stays open,
     * and nothing is loaded into both at a time. {@link #tensor} knows the names of this state.
     *
     * @param mapping the rules
     * @return the new state
     * @throws InvalidArgumentException for a rule that matches nothing, two that match one entry, and what does not fit
     */
    public State mapped(Mapping mapping) {
        Uses uses = new Uses();
        try {
            long made = mapping.map(uses.of(this));
            return new State(made, uses, tensors, tensorPaths);
        } catch (Throwable e) {
            uses.close();
            throw e;
        }
    }

    /** Copies heap arrays to where native code reads them. */
    void beforeSave() {
        tensors.values().forEach(t -> t.memory().beforeSave());
    }

    /** As beforeSave: what a load leaves untouched must come back as it was. */
    void beforeLoad() {
        beforeSave();
    }

    /** Copies to heap arrays what native code wrote. */
    void afterLoad() {
        tensors.values().forEach(t -> t.memory().afterLoad());
    }

    @Override
    protected String facts() {
        return tensors.size() + " tensors";
    }

    /** Collects the entries of a {@link State}; the library gets them in bulk. Not thread-safe. */
    public static final class Builder {
        private final Map<String, HostTensor> tensors = new LinkedHashMap<>();
        private final Map<String, String> paths = new LinkedHashMap<>();
        private final Map<TensorColumns.Form, TensorColumns> columns = new EnumMap<>(TensorColumns.Form.class);
        private final ObjectColumns objects = new ObjectColumns();

        private Builder() {}

        /**
         * Adds a tensor.
         *
         * @param name fully qualified name
         * @param tensor the tensor
         * @return this
         */
        public Builder add(String name, HostTensor tensor) {
            return add(name, "", tensor);
        }

        /**
         * Adds a tensor of a nested tree.
         *
         * @param name fully qualified name
         * @param path nested path as JSON array text; empty = flat
         * @param tensor the tensor
         * @return this
         */
        public Builder add(String name, String path, HostTensor tensor) {
            Objects.requireNonNull(path, "path");
            columns.computeIfAbsent(tensor.form(), TensorColumns::new).add(name, path, tensor);
            tensors.put(name, tensor);
            paths.put(name, path);
            return this;
        }

        /**
         * Adds a whole tensor in a buffer.
         *
         * @param name fully qualified name
         * @param dtype element type
         * @param buffer its remaining bytes
         * @param shape extents
         * @return this
         */
        public Builder add(String name, DType dtype, java.nio.ByteBuffer buffer, long... shape) {
            return add(name, HostTensor.of(dtype, buffer, shape));
        }

        /**
         * Adds a whole tensor in an array of float, double, long, int, short or byte (int8).
         *
         * @param name fully qualified name
         * @param array the elements
         * @param shape extents; none = one dimension
         * @return this
         */
        public Builder add(String name, Object array, long... shape) {
            return add(name, HostTensor.of(array, shape));
        }

        /**
         * Adds a JSON value.
         *
         * @param name fully qualified name
         * @param value null, Boolean, number, text, and lists and maps of them
         * @return this
         * @throws InvalidArgumentException for another value
         */
        public Builder json(String name, Object value) {
            return object(name, "", JSON, Json.encode(value, name), Kind.AUTO);
        }

        /**
         * Adds bytes.
         *
         * @param name fully qualified name
         * @param bytes the content, copied
         * @return this
         */
        public Builder bytes(String name, byte[] bytes) {
            return object(name, "", OCTETS, bytes, Kind.AUTO);
        }

        /**
         * Adds a byte object.
         *
         * @param name fully qualified name
         * @param path nested path as JSON array text; empty = flat
         * @param contentType e.g. {@code application/json}
         * @param bytes the content, copied
         * @param kind who holds it
         * @return this
         */
        public Builder object(String name, String path, String contentType, byte[] bytes, Kind kind) {
            return object(name, path, contentType, bytes, kind, false);
        }

        /**
         * Adds a byte object that another rank may save.
         *
         * @param name fully qualified name
         * @param path nested path as JSON array text; empty = flat
         * @param contentType e.g. {@code application/json}
         * @param bytes the content, copied
         * @param kind who holds it
         * @param replica another rank saves it, loads fill it
         * @return this
         */
        public Builder object(String name, String path, String contentType, byte[] bytes, Kind kind, boolean replica) {
            objects.add(name, path, contentType, bytes.clone(), kind, replica);
            return this;
        }

        /**
         * Adds a byte object that is a cell of a grid, as Megatron Core has objects of its shards. Its name in the state is
         * {@link ObjectKey#name}.
         *
         * @param key what all cells share, the cell and the grid
         * @param contentType e.g. {@code application/json}
         * @param bytes the content, copied
         * @param kind who holds it
         * @param replica another rank saves it, loads fill it
         * @return this
         * @throws InvalidArgumentException for other counts of indices than of axes
         */
        public Builder cell(ObjectKey key, String contentType, byte[] bytes, Kind kind, boolean replica) {
            objects.addCell(key, contentType, bytes.clone(), kind, replica);
            return this;
        }

        /**
         * Adds everything of a nested tree; see {@link State#of}.
         *
         * @param tree the tree
         * @return this
         */
        public Builder tree(Map<?, ?> tree) {
            new TreeWalk(this).add(tree);
            return this;
        }

        /**
         * Gives all entries to the library.
         *
         * @return the state
         * @throws AlreadyExistsException when two entries have one name
         * @throws InvalidArgumentException for a shape, stride or box that does not fit, or a name that is too long
         */
        public State build() {
            NativeLoader.load();
            long handle = shw_nativeJNI.shw_state_create();
            Uses uses = new Uses();
            try {
                columns.values().forEach(each -> each.addTo(handle, uses));
                objects.addTo(handle);
                return new State(handle, uses, tensors, paths);
            } catch (Throwable e) {
                shw_nativeJNI.shw_state_release(handle);
                uses.close();
                throw e;
            }
        }
    }
}
