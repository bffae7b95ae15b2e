// SPDX-License-Identifier: Apache-2.0
// What users do first: save, load, open, in every kind of memory.
package io.shardwright;

import java.io.IOException;
import java.util.stream.Collectors;
import java.nio.file.Files;
import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.StatusCode;
import io.shardwright.layout.Box;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class SaveAndLoadTest {
    private static final float[] WEIGHTS = {1, 2, 3, 4, 5, 6};

    @TempDir
    private Path folder;
    private Path path;

    @BeforeEach
    void choosePath() {
        path = folder.resolve("p");
    }

    private static ByteBuffer direct(int size) {
        return ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static ByteBuffer weights() {
        ByteBuffer buffer = direct(24);
        buffer.asFloatBuffer().put(WEIGHTS);
        return buffer;
    }

    private void saveWeights() {
        try (State state = State.builder().add("w", WEIGHTS, 2, 3).build()) {
            Shardwright.save(state, path, new SaveOptions());
        }
    }

    private static float[] floats(ByteBuffer bytes) {
        float[] values = new float[bytes.remaining() / 4];
        bytes.order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(values);
        return values;
    }

    @Test
    void aSavedArrayIsReadBack() {
        saveWeights();
        try (Checkpoint checkpoint = Checkpoint.open(folder.resolve("p"))) {
            assertEquals(List.of("w"), checkpoint.keys());
            assertEquals("native", checkpoint.format());
            assertEquals(1, checkpoint.worldSize());
            TensorInfo info = checkpoint.tensors().get(0);
            assertEquals(DType.FLOAT32, info.dtype());
            assertArrayEquals(new long[] {2, 3}, info.shape());
            assertEquals(24, info.byteSize());
            assertArrayEquals(WEIGHTS, floats(checkpoint.read("w").bytes()));
            assertArrayEquals(new float[] {2, 5},
                    floats(checkpoint.readBox("w", new long[] {0, 1}, new long[] {2, 1}).bytes()));
            assertTrue(checkpoint.verify(true).findings().isEmpty());
            assertEquals(1, checkpoint.chunks().get(0).byteSize() / 24);
        }
    }

    @Test
    void aBoxIsReadIntoADirectBuffer() {
        saveWeights();
        ByteBuffer target = direct(16);
        target.position(4).limit(12);
        try (Checkpoint checkpoint = Checkpoint.open(path)) {
            Box column = new Box(new long[] {0, 1}, new long[] {2, 1});
            checkpoint.readBox("w", column, target);
            assertArrayEquals(new float[] {2, 5}, floats(target.slice()));
            assertEquals(0, target.getInt(0));
            assertThrows(InvalidArgumentException.class, () -> checkpoint.readBox("w", column, ByteBuffer.allocate(8)));
            assertThrows(InvalidArgumentException.class,
                    () -> checkpoint.readBox("w", column, direct(8).asReadOnlyBuffer()));
            assertThrows(InvalidArgumentException.class, () -> checkpoint.readBox("w", column, direct(4)));
        }
    }

    @Test
    void everyKindOfMemoryIsSavedAndLoaded() {
        ByteBuffer sliced = direct(40);
        sliced.position(8).limit(32);
        sliced.slice().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().put(WEIGHTS);
        ByteBuffer heap = ByteBuffer.allocate(24).order(ByteOrder.LITTLE_ENDIAN);
        heap.asFloatBuffer().put(WEIGHTS);
        try (State state = State.builder().add("direct", DType.FLOAT32, weights(), 2, 3)
                .add("sliced", DType.FLOAT32, sliced, 2, 3).add("heap", DType.FLOAT32, heap, 2, 3)
                .add("read_only", DType.FLOAT32, weights().asReadOnlyBuffer(), 2, 3).add("array", WEIGHTS, 2, 3)
                .add("columns", HostTensor.of(DType.FLOAT32, weights(), 3, 2).strides(1, 3)).build()) {
            Shardwright.save(state, path, new SaveOptions());
        }
        ByteBuffer toSlice = direct(40);
        toSlice.position(8).limit(32);
        ByteBuffer toDirect = direct(24);
        ByteBuffer toHeap = ByteBuffer.allocate(24);
        float[] toArray = new float[6];
        try (State into = State.builder().add("direct", DType.FLOAT32, toDirect, 2, 3)
                .add("sliced", DType.FLOAT32, toSlice, 2, 3).add("heap", DType.FLOAT32, toHeap, 2, 3)
                .add("array", toArray, 2, 3).build()) {
            Report report = Shardwright.loadInto(into, path, new LoadOptions());
            assertEquals(List.of("columns", "read_only"), report.unexpected().stream().sorted().toList());
        }
        assertArrayEquals(WEIGHTS, floats(toDirect));
        assertArrayEquals(WEIGHTS, floats(toSlice.slice()));
        assertArrayEquals(WEIGHTS, floats(toHeap));
        assertArrayEquals(WEIGHTS, toArray);
        try (Checkpoint checkpoint = Checkpoint.open(path)) {
            assertArrayEquals(new float[] {1, 4, 2, 5, 3, 6}, floats(checkpoint.read("columns").bytes()));
        }
    }

    @Test
    void aReadOnlyTargetIsRefusedBeforeAnythingIsRead() {
        saveWeights();
        try (State both = State.builder().add("w", WEIGHTS, 2, 3).add("v", WEIGHTS, 2, 3).build()) {
            Shardwright.save(both, path, new SaveOptions());
        }
        ByteBuffer writable = direct(24);
        try (State into = State.builder().add("v", DType.FLOAT32, writable, 2, 3)
                .add("w", DType.FLOAT32, direct(24).asReadOnlyBuffer(), 2, 3).build()) {
            InvalidArgumentException e = assertThrows(InvalidArgumentException.class,
                    () -> Shardwright.loadInto(into, path, new LoadOptions()));
            assertEquals("w", e.details().get("tensor"));
        }
        assertArrayEquals(new float[6], floats(writable));
    }

    @Test
    void arraysOfAllTypesKeepTheirElements() {
        try (State state = State.builder().add("b", new byte[] {1, -2}).add("s", new short[] {3, -4})
                .add("i", new int[] {5, -6}).add("l", new long[] {7, -8}).add("d", new double[] {0.5, -1.5}).build()) {
            Shardwright.save(state, path, new SaveOptions());
        }
        byte[] b = new byte[2];
        short[] s = new short[2];
        int[] i = new int[2];
        long[] l = new long[2];
        double[] d = new double[2];
        try (State into = State.builder().add("b", b).add("s", s).add("i", i).add("l", l).add("d", d).build()) {
            Shardwright.loadInto(into, path, new LoadOptions());
        }
        assertArrayEquals(new byte[] {1, -2}, b);
        assertArrayEquals(new short[] {3, -4}, s);
        assertArrayEquals(new int[] {5, -6}, i);
        assertArrayEquals(new long[] {7, -8}, l);
        assertArrayEquals(new double[] {0.5, -1.5}, d);
    }

    @Test
    void namesHoldNulAndCharactersAboveFfff() {
        List<String> names = List.of("a\0b", "smile \uD83D\uDE00", "..", "\u00e9");
        State.Builder builder = State.builder();
        names.forEach(name -> builder.add(name, WEIGHTS));
        try (State state = builder.json("j\0\uD83D\uDE00", "\uD83D\uDE00\0").build()) {
            assertEquals(names, state.tensorNames());
            Shardwright.save(state, path, new SaveOptions().metadata("\uD83D\uDE00", "\u00e9"));
        }
        try (Checkpoint checkpoint = Checkpoint.open(path)) {
            assertEquals(names.stream().sorted().toList(), checkpoint.keys().stream().sorted().toList());
            assertEquals("\uD83D\uDE00\0", checkpoint.objects().get("j\0\uD83D\uDE00").json());
            assertEquals(Map.of("\uD83D\uDE00", "\u00e9"), checkpoint.metadata());
            assertArrayEquals(WEIGHTS, floats(checkpoint.read("a\0b").bytes()));
        }
        assertThrows(InvalidArgumentException.class, () -> State.builder().add("half \uD83D", WEIGHTS).build());
    }

    @Test
    void anObjectIsReadAsAStream() throws java.io.IOException {
        byte[] bytes = new byte[2_500_001];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (i * 7);
        }
        try (State state = State.builder().bytes("blob", bytes).bytes("empty", new byte[0]).build()) {
            Shardwright.save(state, path, new SaveOptions());
        }
        try (Checkpoint checkpoint = Checkpoint.open(path)) {
            assertArrayEquals(bytes, checkpoint.openObject("blob").readAllBytes());
            java.io.InputStream stream = checkpoint.openObject("blob");
            assertEquals(bytes[0] & 0xFF, stream.read());
            assertEquals(2_499_990, stream.skip(2_499_990));
            assertArrayEquals(java.util.Arrays.copyOfRange(bytes, 2_499_991, 2_500_001), stream.readNBytes(100));
            assertEquals(-1, stream.read());
            assertEquals(0, stream.skip(1));
            assertEquals(-1, checkpoint.openObject("empty").read());
            assertThrows(io.shardwright.errors.NotFoundException.class, () -> checkpoint.openObject("blub"));
        }
    }

    @Test
    void elementsWithoutMemoryAreRefused() {
        HostTensor strided = HostTensor.of(DType.FLOAT32, direct(0), 2, 2).strides(1, 2);
        InvalidArgumentException e =
                assertThrows(InvalidArgumentException.class, () -> State.builder().add("w", strided).build());
        assertTrue(e.getMessage().contains("no memory"), e.getMessage());
        State.builder().add("w", HostTensor.of(DType.FLOAT32, direct(0), 0, 2).strides(1, 2)).build().close();
    }

    @Test
    void errorsCarryCodeDetailsAndMessage() {
        NotFoundException e = assertThrows(NotFoundException.class, () -> Checkpoint.open(path));
        assertEquals(StatusCode.NOT_FOUND, e.code());
        assertEquals(5, e.status());
        assertTrue(e.details().containsKey("file"));
        assertTrue(e.getMessage().contains("/p"), e.getMessage());
        assertFalse(e.isRetryable());
        InvalidArgumentException size = assertThrows(InvalidArgumentException.class,
                () -> State.builder().add("w", WEIGHTS, 7).build());
        assertEquals("w", size.details().get("tensor"));
        assertThrows(AlreadyExistsException.class, () -> State.builder().add("w", WEIGHTS).add("w", WEIGHTS).build());
        InvalidArgumentException word = assertThrows(InvalidArgumentException.class, () -> Overwrite.of("sometimes"));
        assertEquals("overwrite", word.details().get("parameter"));
    }

    @Test
    void everyOptionOfASaveReachesTheLibrary() {
        SaveOptions options = new SaveOptions().durability(Durability.NONE).digests(false).owner(Owner.LOWEST_RANK)
                .verifyReplicas(VerifyReplicas.OFF).kind("*", Kind.REPLICATED).memoryBudget(8 << 20).threads(1)
                .deadline(java.time.Duration.ofSeconds(60)).keepGenerations(2).fileMode(0600).format(Format.NATIVE)
                .preset(Preset.NATIVE).tracePath(folder.resolve("trace.json"));
        try (State state = State.builder().add("w", WEIGHTS).build()) {
            Report report = Shardwright.save(state, path, options);
            assertFalse(report.isDurable());
            assertFalse(report.hasDigests());
            assertEquals(1, report.tensorCount());
            assertTrue(report.bytes() >= 24);
            assertTrue(report.json().contains("\"schema\""));
        }
        assertTrue(folder.resolve("trace.json").toFile().length() > 0);
        assertThrows(InvalidArgumentException.class, () -> new SaveOptions().threads(-1));
    }

    @Test
    void strictRulesReplaceTheOptionsOfALoad() {
        saveWeights();
        try (State into = State.builder().add("w", new double[6], 2, 3).add("other", WEIGHTS).build()) {
            Report report = Shardwright.loadInto(into, path, new LoadOptions()
                    .strict("other", Missing.REPORT, Unexpected.REPORT, Cast.ERROR)
                    .strict("w", Missing.ERROR, Unexpected.ERROR, Cast.ALLOW));
            assertEquals(List.of("other"), report.missing());
            assertEquals(1, report.casts().size());
        }
    }

    @Test
    void shapesAreCroppedAndPaddedWhenAskedTo() {
        saveWeights();
        double[] wider = {9, 9, 9, 9, 9, 9, 9, 9};
        try (State into = State.builder().add("w", wider, 2, 4).build()) {
            assertThrows(InvalidArgumentException.class, () -> Shardwright.loadInto(into, path, new LoadOptions()));
            LoadOptions named = new LoadOptions().cast(Cast.ALLOW)
                    .strict("w", Missing.ERROR, Unexpected.REPORT, Cast.ALLOW, Shape.CROP_AND_PAD);
            Report report = Shardwright.loadInto(into, path, named);
            assertEquals(1, report.shapes().size());
            assertEquals(0, wider[3]);
            assertEquals(0, wider[7]);
            assertEquals(1, Shardwright.loadInto(into, path, new LoadOptions().cast(Cast.ALLOW).shape(Shape.CROP_AND_PAD))
                    .shapes().size());
        }
    }

    @Test
    void stepsAreListedAndOldGenerationsCollected() throws IOException {
        path = folder.resolve("step-00000001");
        saveWeights();
        Path stopped = folder.resolve("step-00000007/0123456789abcdef0123456789abcdef");
        Files.createDirectories(stopped);
        Files.writeString(stopped.resolve("rank-00000.shw"), "half of it");
        Steps steps = Shardwright.listSteps(folder);
        assertEquals(List.of("step-00000001", "step-00000007"),
                steps.steps().stream().map(step -> step.name()).collect(Collectors.toList()));
        assertEquals(Steps.Completeness.WHOLE, steps.steps().get(0).completeness());
        assertEquals(Steps.Completeness.UNCOMMITTED, steps.steps().get(1).completeness());
        assertFalse(steps.steps().get(1).message().isEmpty());
        assertEquals(1, steps.newestWhole().number());
        Report dry = Shardwright.collectGarbage(path, new GarbageOptions().grace(java.time.Duration.ZERO));
        assertTrue(dry.removed().isEmpty());
        assertThrows(NotFoundException.class, () -> Shardwright.listSteps(folder.resolve("nothing")));
    }
}
