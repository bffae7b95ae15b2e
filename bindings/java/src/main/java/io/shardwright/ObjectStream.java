// SPDX-License-Identifier: Apache-2.0
// Byte objects of a checkpoint as streams.
package io.shardwright;

import java.io.InputStream;
import java.util.Objects;

/** A byte object of a checkpoint, read in parts. */
final class ObjectStream extends InputStream {
    private static final int BUFFER_BYTES = 1 << 20; // of one read from the checkpoint

    private final Checkpoint checkpoint;
    private final long index;
    private final long size;
    private long position;
    private byte[] buffer = new byte[0];
    private long bufferBegin;

    ObjectStream(Checkpoint checkpoint, long index, long size) {
        this.checkpoint = checkpoint;
        this.index = index;
        this.size = size;
    }

    @Override
    public int read() {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xFF;
    }

    @Override
    public int read(byte[] target, int offset, int length) {
        Objects.checkFromIndexSize(offset, length, target.length);
        if (length == 0) {
            return 0;
        }
        if (position >= size) {
            return -1;
        }
        if (position < bufferBegin || position >= bufferBegin + buffer.length) {
            buffer = checkpoint.objectPart(index, position, BUFFER_BYTES);
            bufferBegin = position;
        }
        int from = (int) (position - bufferBegin);
        int count = Math.min(length, buffer.length - from);
        System.arraycopy(buffer, from, target, offset, count);
        position += count;
        return count;
    }

    @Override
    public long skip(long count) {
        long skipped = Math.max(0, Math.min(count, size - position));
        position += skipped;
        return skipped;
    }

    @Override
    public int available() {
        return (int) Math.max(0, Math.min(buffer.length - (position - bufferBegin), size - position));
    }
}
