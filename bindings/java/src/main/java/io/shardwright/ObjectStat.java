// SPDX-License-Identifier: Apache-2.0
// Facts about objects of a storage.
package io.shardwright;

/** Facts about one object of a storage. Immutable. */
public final class ObjectStat {
    private final long size;
    private final long modifiedNs;
    private final long version;

    /**
     * Facts.
     *
     * @param size bytes
     * @param modifiedNs time of the last change in nanoseconds since 1970 UTC
     * @param version changes whenever the content does; 0 = not offered
     */
    public ObjectStat(long size, long modifiedNs, long version) {
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
     * Changes whenever the content does.
     *
     * @return the version; 0 = not offered
     */
    public long version() {
        return version;
    }
}
