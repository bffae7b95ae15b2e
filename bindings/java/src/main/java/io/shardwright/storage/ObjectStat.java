// SPDX-License-Identifier: Apache-2.0
// Facts about objects of a storage.
package io.shardwright.storage;

/** Facts about one object of a storage. Immutable. */
public final class ObjectStat {
    private final long size;
    private final long modifiedNs;
    private final String version;

    /**
     * Facts.
     *
     * @param size bytes
     * @param modifiedNs time of the last change in nanoseconds since 1970 UTC
     * @param version opaque text that changes whenever the content does, such as an ETag; empty = not offered
     */
    public ObjectStat(long size, long modifiedNs, String version) {
        this.size = size;
        this.modifiedNs = modifiedNs;
        this.version = version;
    }

    /**
     * Size.
     *
     * @return bytes
     */
    public long size() {
        return size;
    }

    /**
     * Time of the last change.
     *
     * @return nanoseconds since 1970 UTC
     */
    public long modifiedNs() {
        return modifiedNs;
    }

    /**
     * Opaque text that changes whenever the content does.
     *
     * @return the version; empty = not offered
     */
    public String version() {
        return version;
    }
}
