// SPDX-License-Identifier: Apache-2.0
// Where a checkpoint lies.
package io.shardwright;

import io.shardwright.internal.Invalid;
import io.shardwright.internal.Text;
import io.shardwright.storage.Storage;
import java.nio.file.Path;
import java.util.Objects;

/** A path of the file system, or a key prefix in a storage. Immutable. */
public final class Location {
    private final Path path;
    private final Storage storage;
    private final String prefix;

    private Location(Path path, Storage storage, String prefix) {
        this.path = path;
        this.storage = storage;
        this.prefix = prefix;
    }

    /**
     * A path of the file system. Calls that are given another file system's refuse it.
     *
     * @param path a path of the default file system
     * @return the location
     */
    public static Location of(Path path) {
        return new Location(path, null, null);
    }

    /**
     * A key prefix in a storage.
     *
     * @param storage the storage
     * @param prefix UTF-8 text such as {@code run/step-00000100}
     * @return the location
     */
    public static Location of(Storage storage, String prefix) {
        return new Location(null, Objects.requireNonNull(storage, "storage"), Objects.requireNonNull(prefix, "prefix"));
    }

    /** The location that a caller gave; what is wrong with it is found here, where the other ranks can be told. */
    static byte[] textOf(Location location) {
        if (location == null || location.path == null && location.storage == null) {
            throw Invalid.parameter("path", "the path is null");
        }
        return location.path != null ? Text.path(location.path) : Text.terminated(location.prefix);
    }

    /**
     * A place below this one.
     *
     * @param name name of a folder, or part of a key
     * @return the location
     */
    public Location resolve(String name) {
        if (path != null) {
            return of(path.resolve(name));
        }
        return of(storage, prefix.isEmpty() || prefix.endsWith("/") ? prefix + name : prefix + "/" + name);
    }

    /** null = the file system. */
    Storage storage() {
        return storage;
    }

    @Override
    public String toString() {
        return path != null ? path.toString() : storage + ": " + prefix;
    }
}
