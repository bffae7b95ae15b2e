// SPDX-License-Identifier: Apache-2.0
// Tensors above 4 GiB and above 2^31 elements, saved into a sparse file.
package io.shardwright;

import io.shardwright.errors.OutOfRangeException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.storage.CommitCondition;
import io.shardwright.storage.HostStorage;
import io.shardwright.storage.ObjectStat;
import io.shardwright.storage.OpenMode;
import io.shardwright.storage.Storage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class LargeTensorTest {
    private static final long ROWS = (4L << 10) + 1;
    private static final long COLUMNS = 1L << 20;
    private static final long BYTES = ROWS * COLUMNS;

    @TempDir
    private Path folder;

    /** Files below a folder in which ranges of zeros are holes. */
    private static final class SparseStorage implements HostStorage {
        private static final ByteBuffer ZEROS = ByteBuffer.allocateDirect(16 << 20);

        private final Path root;

        SparseStorage(Path root) {
            this.root = root;
        }

        @Override
        public OpenObject open(String key, OpenMode mode) throws IOException {
            stat(key, mode == OpenMode.READ);
            return new SparseFile(root.resolve(key), mode);
        }

        private ObjectStat stat(String key, boolean needed) throws IOException {
            Path file = root.resolve(key);
            if (!Files.exists(file)) {
                if (needed) {
                    throw ShardwrightException.of(StatusCode.NOT_FOUND, "no key " + key);
                }
                return null;
            }
            return new ObjectStat(Files.size(file), 1, "");
        }

        @Override
        public ObjectStat stat(String key) throws IOException {
            return stat(key, true);
        }

        @Override
        public List<String> list(String prefix) throws IOException {
            try (Stream<Path> files = Files.walk(root)) {
                return files.filter(Files::isRegularFile).map(f -> root.relativize(f).toString())
                        .filter(k -> k.startsWith(prefix)).sorted().collect(Collectors.toList());
            }
        }

        @Override
        public void remove(String key) throws IOException {
            Files.deleteIfExists(root.resolve(key));
        }

        private static boolean isZero(ByteBuffer data) {
            return data.remaining() <= ZEROS.capacity() && data.equals(ZEROS.duplicate().limit(data.remaining()));
        }

        private static final class SparseFile implements OpenObject {
            private final Path target;
            private final Path written;
            private final FileChannel channel;
            private long size;

            SparseFile(Path target, OpenMode mode) throws IOException {
                this.target = target;
                if (mode == OpenMode.READ) {
                    written = null;
                    channel = FileChannel.open(target, StandardOpenOption.READ);
                } else {
                    written = mode == OpenMode.CREATE ? target.resolveSibling(target.getFileName() + ".part") : target;
                    Files.createDirectories(target.getParent());
                    channel = FileChannel.open(written, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                }
            }

            @Override
            public int readAt(long offset, ByteBuffer data) throws IOException {
                int count = 0;
                int step = 0;
                while (data.hasRemaining() && step >= 0) {
                    step = channel.read(data, offset + count);
                    count += Math.max(0, step);
                }
                return count;
            }

            @Override
            public void writeAt(long offset, ByteBuffer data) throws IOException {
                size = Math.max(size, offset + data.remaining());
                if (isZero(data)) {
                    return;
                }
                long at = offset;
                while (data.hasRemaining()) {
                    at += channel.write(data, at);
                }
            }

            @Override
            public void sync() throws IOException {
                if (channel.size() < size) {
                    channel.write(ByteBuffer.allocate(1), size - 1);
                }
            }

            @Override
            public void commit(CommitCondition condition, String expectedVersion) throws IOException {
                sync();
                Files.move(written, target, StandardCopyOption.REPLACE_EXISTING);
            }

            @Override
            public void abort() {
                written.toFile().delete();
            }

            @Override
            public void close() {
                try {
                    channel.close();
                } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
            }
        }
    }

    @Test
    void aTensorAboveFourGibibytesIsSavedSlicedAndLoaded() {
        try (Storage storage = Storage.host(new SparseStorage(folder))) {
            save(storage);
            try (Checkpoint checkpoint = Checkpoint.open(Location.of(storage, "p"), new OpenOptions())) {
                assertArrayEquals(new long[] {ROWS, COLUMNS}, checkpoint.tensors().get(0).shape());
                assertEquals(BYTES, checkpoint.tensors().get(0).byteSize());
                assertTrue(BYTES > 1L << 32);
                try (Tensor end = checkpoint.readBox("big", new long[] {ROWS - 1, COLUMNS - 2}, new long[] {1, 2})) {
                    assertArrayEquals(new byte[] {0, 9}, end.toByteArray());
                }
                try (Tensor column = checkpoint.readBox("big", new long[] {(1L << 31) / COLUMNS, 5}, new long[] {2, 1})) {
                    assertArrayEquals(new byte[] {7, 0}, column.toByteArray());
                }
            }
            loadRow(storage);
            loadWhole(storage);
        }
    }

    private static void loadWhole(Storage storage) {
        try (Tensor whole = Tensor.zeros(DType.UINT8, ROWS, COLUMNS);
                State into = State.builder().add("big", HostTensor.of(whole)).build()) {
            Shardwright.loadInto(into, Location.of(storage, "p"), new LoadOptions());
            assertEquals(7, whole.slice((1L << 31) + 5, 1).get(0));
            int last = 0;
            for (ByteBuffer slice : whole.slices()) {
                last = slice.get(slice.remaining() - 1);
            }
            assertEquals(9, last);
        }
    }

    private static void save(Storage storage) {
        try (Tensor big = Tensor.zeros(DType.UINT8, ROWS, COLUMNS)) {
            long bytes = 0;
            int slices = 0;
            for (ByteBuffer slice : big.slices()) {
                bytes += slice.remaining();
                slices++;
            }
            assertEquals(BYTES, bytes);
            assertEquals(5, slices);
            assertThrows(OutOfRangeException.class, big::bytes);
            big.slice(BYTES - 1, 1).put(0, (byte) 9);
            big.slice((1L << 31) + 5, 1).put(0, (byte) 7);
            try (State state = State.builder().add("big", HostTensor.of(big)).build()) {
                Report report = Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
                assertTrue(report.bytes() >= BYTES);
            }
        }
    }

    private static void loadRow(Storage storage) {
        ByteBuffer row = ByteBuffer.allocateDirect((int) COLUMNS);
        HostTensor last = HostTensor.of(DType.UINT8, row, 1, COLUMNS).partOf(new long[] {ROWS, COLUMNS}, ROWS - 1, 0);
        try (State into = State.builder().add("big", last).build()) {
            Shardwright.loadInto(into, Location.of(storage, "p"), new LoadOptions());
        }
        assertEquals(9, row.get((int) COLUMNS - 1));
        assertEquals(0, row.get(0));
    }
}
