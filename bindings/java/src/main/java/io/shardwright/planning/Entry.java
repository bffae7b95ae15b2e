// SPDX-License-Identifier: Apache-2.0
// What is described of one tensor or byte object.
package io.shardwright.planning;

import io.shardwright.DType;
import io.shardwright.Kind;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.OptionValues;
import java.util.Arrays;
import java.util.Objects;

/** What one entry is, apart from its boxes: a tensor, or a byte object. Immutable. */
public final class Entry {
    private static final int DIGEST_BYTES = 16;
    private static final byte[] NONE = {};

    final String name;
    final DType dtype;
    final long[] shape;
    final Kind kind;
    final long objectSize;
    final String path;
    final byte[] attributes;
    final byte[] digest;

    Entry(String name, DType dtype, long[] shape, Kind kind, long objectSize, String path, byte[] attributes,
            byte[] digest) {
        this.name = Objects.requireNonNull(name, "name");
        this.dtype = dtype;
        this.shape = shape;
        this.kind = Objects.requireNonNull(kind, "kind");
        this.objectSize = objectSize;
        this.path = Objects.requireNonNull(path, "path");
        this.attributes = attributes;
        this.digest = digest;
    }

    /**
     * A tensor.
     *
     * @param name fully qualified name
     * @param dtype element type
     * @param shape extents of the whole tensor
     * @return the entry, of kind auto
     */
    public static Entry tensor(String name, DType dtype, long... shape) {
        return new Entry(name, Objects.requireNonNull(dtype, "dtype"), shape.clone(), Kind.AUTO, 0, "", NONE, null);
    }

    /**
     * A byte object.
     *
     * @param name fully qualified name
     * @param size its bytes, 0 = not known
     * @return the entry, of kind auto
     */
    public static Entry object(String name, long size) {
        return new Entry(name, null, new long[0], Kind.AUTO, OptionValues.count("size", size), "", NONE, null);
    }

    /**
     * This entry with another kind.
     *
     * @param value who holds it; auto = replicated for objects and for one box that is the whole tensor, else sharded
     * @return a new value
     */
    public Entry kind(Kind value) {
        return new Entry(name, dtype, shape, value, objectSize, path, attributes, digest);
    }

    /**
     * This entry at a place in nested mappings.
     *
     * @param value nested path as JSON array text; empty = flat
     * @return a new value
     */
    public Entry path(String value) {
        return new Entry(name, dtype, shape, kind, objectSize, value, attributes, digest);
    }

    /**
     * This entry with bytes of the host's own; a merged plan has those of the first rank that lists the entry.
     *
     * @param value the bytes, copied
     * @return a new value
     */
    public Entry attributes(byte[] value) {
        return new Entry(name, dtype, shape, kind, objectSize, path, value.clone(), digest);
    }

    /**
     * This entry with a digest of its content that holders must agree on.
     *
     * @param value 16 bytes, as {@link Planning#contentDigest} gives them, copied; null = not compared
     * @return a new value
     * @throws InvalidArgumentException for another number of bytes
     */
    public Entry digest(byte[] value) {
        if (value != null && value.length != DIGEST_BYTES) {
            throw Invalid.parameter("digest", "a digest has 16 bytes, not " + value.length);
        }
        return new Entry(name, dtype, shape, kind, objectSize, path, attributes, value == null ? null : value.clone());
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
     * @return the type, null for a byte object
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * Extents of the whole tensor.
     *
     * @return a copy, empty for a byte object
     */
    public long[] shape() {
        return shape.clone();
    }

    /**
     * Who holds it.
     *
     * @return the kind
     */
    public Kind kind() {
        return kind;
    }

    /**
     * Bytes of an object.
     *
     * @return the size; 0 = not known, and for tensors
     */
    public long objectSize() {
        return objectSize;
    }

    /**
     * Nested path.
     *
     * @return JSON array text; empty = flat
     */
    public String path() {
        return path;
    }

    /**
     * Bytes of the host's own.
     *
     * @return a copy; empty = none
     */
    public byte[] attributes() {
        return attributes.clone();
    }

    /**
     * Digest of the content that holders must agree on.
     *
     * @return a copy; null = not compared
     */
    public byte[] digest() {
        return digest == null ? null : digest.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Entry && Arrays.deepEquals(((Entry) other).facts(), facts());
    }

    @Override
    public int hashCode() {
        return Arrays.deepHashCode(facts());
    }

    @Override
    public String toString() {
        return name + " " + (dtype == null ? objectSize + " bytes" : dtype + Arrays.toString(shape)) + " " + kind.word();
    }

    private Object[] facts() {
        return new Object[] {name, dtype, shape, kind, objectSize, path, attributes, digest};
    }
}
