// SPDX-License-Identifier: Apache-2.0
// Parameters of units.
package io.shardwright.hsdp;

import io.shardwright.DType;
import io.shardwright.HostTensor;
import java.util.List;
import java.util.Objects;

/** A parameter of a unit: its name, what it begins as, and how it is cut. Immutable; memory is borrowed. */
public final class HsdpParam {
    private final String name;
    private final HostTensor tensor;
    private final DType dtype;
    private final long[] shape;
    private int shardDim;
    private boolean frozen;
    private boolean replicate;
    private boolean ignore;
    private List<String> aliases = List.of();

    private HsdpParam(String name, HostTensor tensor, DType dtype, long[] shape) {
        this.name = Objects.requireNonNull(name, "name");
        this.tensor = tensor;
        this.dtype = Objects.requireNonNull(dtype, "dtype");
        this.shape = shape.clone();
    }

    private HsdpParam(HsdpParam other) {
        this(other.name, other.tensor, other.dtype, other.shape);
        shardDim = other.shardDim;
        frozen = other.frozen;
        replicate = other.replicate;
        ignore = other.ignore;
        aliases = other.aliases;
    }

    /**
     * A parameter that begins as a tensor.
     *
     * @param name fully qualified name
     * @param tensor whole and dense, of the host or on the device of the context; read when the unit is sealed, a heap array when
     *     the parameter is added
     * @return the parameter, cut along its first dimension
     */
    public static HsdpParam of(String name, HostTensor tensor) {
        return new HsdpParam(name, tensor, tensor.dtype(), tensor.shape());
    }

    /**
     * A parameter that begins as zero, or whose memory is only foretold.
     *
     * @param name fully qualified name
     * @param dtype element type
     * @param shape extents
     * @return the parameter, cut along its first dimension
     */
    public static HsdpParam zeros(String name, DType dtype, long... shape) {
        return new HsdpParam(name, null, dtype, shape);
    }

    /**
     * The same, cut along another dimension.
     *
     * @param value the dimension; negative counts from the end
     * @return a new value
     */
    public HsdpParam shardDim(int value) {
        HsdpParam made = new HsdpParam(this);
        made.shardDim = value;
        return made;
    }

    /**
     * The same, without a gradient.
     *
     * @return a new value
     */
    public HsdpParam frozen() {
        HsdpParam made = new HsdpParam(this);
        made.frozen = true;
        return made;
    }

    /**
     * The same, not sharded; its gradients are summed over all ranks.
     *
     * @return a new value
     */
    public HsdpParam replicate() {
        HsdpParam made = new HsdpParam(this);
        made.replicate = true;
        return made;
    }

    /**
     * The same, left out, as if it had not been added.
     *
     * @return a new value
     */
    public HsdpParam ignore() {
        HsdpParam made = new HsdpParam(this);
        made.ignore = true;
        return made;
    }

    /**
     * The same with further names of it.
     *
     * @param names the names
     * @return a new value
     */
    public HsdpParam aliases(String... names) {
        HsdpParam made = new HsdpParam(this);
        made.aliases = List.of(names);
        return made;
    }

    /**
     * Fully qualified name.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * Element type.
     *
     * @return the type
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * Extents.
     *
     * @return a copy
     */
    public long[] shape() {
        return shape.clone();
    }

    /** null = it begins as zero. */
    HostTensor tensor() {
        return tensor;
    }

    int shardDim() {
        return shardDim;
    }

    boolean isFrozen() {
        return frozen;
    }

    boolean isReplicated() {
        return replicate;
    }

    boolean isIgnored() {
        return ignore;
    }

    List<String> aliases() {
        return aliases;
    }

    @Override
    public String toString() {
        return "HsdpParam(" + name + ", " + dtype + ", " + java.util.Arrays.toString(shape) + ")";
    }
}
