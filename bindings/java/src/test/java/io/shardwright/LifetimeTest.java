// SPDX-License-Identifier: Apache-2.0
// Close, use after close, the cleaner, and views that outlive their tensor.
package io.shardwright;

import java.nio.file.Path;
import io.shardwright.storage.Storage;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class LifetimeTest {
    private static final int COLLECTIONS_MAX = 100;

    private static Storage unclosed(ReferenceQueue<Object> queue, List<Reference<?>> references) {
        MapStorage host = new MapStorage();
        references.add(new PhantomReference<>(host, queue));
        return Storage.host(host);
    }

    private static void collect(ReferenceQueue<Object> queue) throws InterruptedException {
        Reference<?> found = null;
        for (int i = 0; i < COLLECTIONS_MAX && found == null; i++) {
            System.gc();
            found = queue.remove(50);
        }
        assertNotNull(found, "the object was never released");
    }

    @Test
    void useAfterCloseIsAnIllegalState() {
        Storage storage = Storage.memory();
        storage.put("k", new byte[] {1});
        storage.close();
        storage.close();
        assertThrows(IllegalStateException.class, storage::name);
        State state = State.builder().add("w", new float[1]).build();
        state.close();
        assertThrows(IllegalStateException.class, () -> Shardwright.save(state, Path.of("/nowhere"), new SaveOptions()));
        Tensor tensor = Tensor.zeros(DType.FLOAT32, 4);
        tensor.close();
        assertThrows(IllegalStateException.class, tensor::bytes);
    }

    @Test
    void closeLetsTheLibraryGoOfTheHost() throws InterruptedException {
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        List<Reference<?>> references = new ArrayList<>();
        unclosed(queue, references).close();
        collect(queue);
    }

    @Test
    void theCleanerReleasesWhatNobodyClosed() throws InterruptedException {
        ReferenceQueue<Object> queue = new ReferenceQueue<>();
        List<Reference<?>> references = new ArrayList<>();
        assertNotNull(unclosed(queue, references).name());
        collect(queue);
    }

    @Test
    void aViewOutlivesItsTensor() {
        ByteBuffer view = viewOfClosed();
        System.gc();
        for (int i = 0; i < 1 << 20; i += 4096) {
            assertEquals((byte) (i >> 12), view.get(i));
        }
        assertEquals(1 << 20, view.slice().remaining());
    }

    private static ByteBuffer viewOfClosed() {
        try (Tensor tensor = Tensor.zeros(DType.UINT8, 1 << 20)) {
            ByteBuffer view = tensor.bytes();
            for (int i = 0; i < 1 << 20; i += 4096) {
                view.put(i, (byte) (i >> 12));
            }
            return view;
        }
    }

    @Test
    void aTensorStaysAsLongAsAStateUsesIt() {
        Tensor tensor = Tensor.zeros(DType.INT64, 1000);
        tensor.bytes().asLongBuffer().put(999, 7);
        try (State state = State.builder().add("t", HostTensor.of(tensor)).build(); Storage storage = Storage.memory()) {
            tensor.close();
            Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
            try (Checkpoint checkpoint = Checkpoint.open(Location.of(storage, "p"), new OpenOptions())) {
                assertEquals(7, checkpoint.readBox("t", new long[] {999}, new long[] {1}).bytes().getLong());
            }
        }
    }

    @Test
    void parentsMayBeClosedFirst() {
        Storage storage = Storage.memory();
        Context context = Context.builder().threads(1).memoryBudget(8 << 20).build();
        try (State state = State.builder().add("w", new float[] {1, 2}).build()) {
            Shardwright.save(state, Location.of(storage, "p"), new SaveOptions().context(context));
        }
        Checkpoint checkpoint = Checkpoint.open(Location.of(storage, "p"), new OpenOptions().context(context));
        storage.close();
        context.close();
        assertEquals(2f, checkpoint.read("w").bytes().asFloatBuffer().get(1));
        checkpoint.close();
    }

    @Test
    void aCallKeepsWhatAnotherThreadCloses() {
        AtomicInteger calls = new AtomicInteger();
        State state = State.builder().add("w", new float[] {1, 2}).build();
        Storage storage = Storage.host(new MapStorage() {
            @Override
            void beforeWrite() {
                state.close();
                calls.incrementAndGet();
            }
        });
        Shardwright.save(state, Location.of(storage, "p"), new SaveOptions());
        assertTrue(calls.get() > 0);
        assertThrows(IllegalStateException.class, state::objectNames);
        storage.close();
    }

    @Test
    void theSharedContextStaysOpen() {
        Context.shared().close();
        assertTrue(Context.shared() == Context.shared());
        assertEquals(Shardwright.version(), Shardwright.version());
    }
}
