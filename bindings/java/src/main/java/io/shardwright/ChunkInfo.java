// SPDX-License-Identifier: Apache-2.0
// Where stored chunks lie.
package io.shardwright;

/** Where one chunk lies. Immutable. */
public final class ChunkInfo {
    private final int tensor;
    private final String file;
    private final long offset;
    private final long byteSize;

    ChunkInfo(int tensor, String file, long offset, long byteSize) {
        this.tensor = tensor;
        this.file = file;
        this.offset = offset;
        this.byteSize = byteSize;
    }

    /**
     * The tensor that it belongs to.
     *
     * @return position in {@link Checkpoint#tensors}
     */
    public int tensor() {
        return tensor;
    }

    /**
     * Data file.
     *
     * @return key relative to the checkpoint
     */
    public String file() {
        return file;
    }

    /**
     * First byte in the file.
     *
     * @return the offset
     */
    public long offset() {
        return offset;
    }

    /**
     * Size in the file.
     *
     * @return bytes
     */
    public long byteSize() {
        return byteSize;
    }
}
