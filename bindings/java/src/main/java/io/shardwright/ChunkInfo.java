// SPDX-License-Identifier: Apache-2.0
// Where stored chunks lie.
package io.shardwright;

import io.shardwright.internal.Structs;

/** Where one chunk lies. Immutable. */
public final class ChunkInfo {
    private final int tensor;
    private final String file;
    private final long offset;
    private final long byteSize;

    ChunkInfo(Structs.ChunkInfoColumns facts, int i, String file) {
        this.tensor = (int) facts.tensor[i];
        this.file = file;
        this.offset = facts.offset[i];
        this.byteSize = facts.byteSize[i];
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
