// SPDX-License-Identifier: Apache-2.0
// Directories of torch.distributed.checkpoint: those of torch, and ours. What torch reads of ours is in tests/interop.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.shardwright.collective.Collective;
import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.DataLossException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.UnimplementedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TorchDcpTest {
    private static final String GENERATION = "0123456789abcdef".repeat(2);
    private static final int ROWS = 7;
    private static final int COLUMNS = 3;

    @TempDir
    private Path folder;
    private Path path;

    @BeforeEach
    void choosePath() {
        path = folder.resolve("p");
    }

    // ---- what torch wrote ----

    /** A folder of tests/golden/torch_dcp: what its maker recorded, and where the checkpoint lies. */
    private record Golden(String name, JsonObject expected, Path path) {}

    private static List<Golden> golden(boolean broken) throws IOException {
        Path root = Path.of(System.getProperty("basedir"), "..", "..", "tests", "golden", "torch_dcp");
        List<Golden> cases = new ArrayList<>();
        try (Stream<Path> entries = Files.list(root)) {
            for (Path each : entries.filter(e -> Files.exists(e.resolve("expected.json"))).collect(Collectors.toList())) {
                JsonObject expected = JsonParser.parseString(Files.readString(each.resolve("expected.json"))).getAsJsonObject();
                if (expected.has("fail_on") == broken) {
                    cases.add(new Golden(each.getFileName().toString(), expected, each.resolve(expected.get("path").getAsString())));
                }
            }
        }
        assertTrue(cases.size() > 5, "golden cases of " + root);
        return cases;
    }

    private static String sha256(byte[] bytes) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    }

    @Test
    void tensorsThatTorchWroteHaveTheDigestsOfTheirMaker() throws Exception {
        for (Golden each : golden(false)) {
            Map<String, String> wanted = new HashMap<>();
            each.expected().getAsJsonObject("tensors").entrySet()
                    .forEach(t -> wanted.put(t.getKey(), t.getValue().getAsJsonObject().get("sha256").getAsString()));
            try (Checkpoint checkpoint = Checkpoint.open(each.path())) {
                assertEquals("torch-dcp", checkpoint.format(), each.name());
                assertEquals(wanted, checkpoint.digest(DigestAlgorithm.SHA256), each.name());
                for (TensorInfo tensor : checkpoint.tensors()) {
                    JsonObject said = each.expected().getAsJsonObject("tensors").getAsJsonObject(tensor.name());
                    assertEquals(said.get("dtype").getAsString(), tensor.dtype().dtypeName(), each.name());
                    try (Tensor read = checkpoint.read(tensor.name())) {
                        assertEquals(wanted.get(tensor.name()), sha256(read.toByteArray()), each.name() + ": " + tensor.name());
                    }
                }
            }
        }
    }

    @Test
    void objectsThatTorchWroteAreFound() throws Exception {
        for (Golden each : golden(false)) {
            try (Loaded loaded = Shardwright.load(each.path())) {
                assertEquals(each.expected().getAsJsonObject("objects").keySet(), loaded.objects().keySet(), each.name());
                for (Map.Entry<String, JsonElement> object : each.expected().getAsJsonObject("objects").entrySet()) {
                    JsonObject said = object.getValue().getAsJsonObject();
                    if (List.of("int", "str", "bool").contains(said.get("type").getAsString())) {
                        assertEquals(said.get("value").getAsString(), loaded.objects().get(object.getKey()).json().toString(),
                                each.name() + ": " + object.getKey());
                    }
                }
            }
        }
    }

    @Test
    void whatIsBrokenOrHostileIsAnError() throws IOException {
        for (Golden each : golden(true)) {
            assertThrows(ShardwrightException.class, () -> {
                try (Checkpoint checkpoint = Checkpoint.open(each.path())) {
                    checkpoint.digest(DigestAlgorithm.XXH3);
                    checkpoint.verify(true);
                }
            }, each.name());
        }
    }

    // ---- what ranks write together ----

    /** Rows that a rank of a number of ranks has, as torch.chunk cuts them; the last ranks may have none. */
    private static State part(int rank, int ranks, float[] rows, Map<String, Object> values) {
        int chunk = (ROWS + ranks - 1) / ranks;
        int begin = Math.min(ROWS, rank * chunk);
        int count = Math.min(ROWS, begin + chunk) - begin;
        State.Builder builder = State.builder();
        builder.add("rows", HostTensor.of(rows, count, COLUMNS).partOf(new long[] {ROWS, COLUMNS}, begin, 0));
        values.forEach(builder::json);
        return builder.build();
    }

    private static float[] rowsOf(int rank, int ranks, boolean filled) {
        int chunk = (ROWS + ranks - 1) / ranks;
        int begin = Math.min(ROWS, rank * chunk);
        float[] rows = new float[(Math.min(ROWS, begin + chunk) - begin) * COLUMNS];
        for (int i = 0; i < rows.length && filled; i++) {
            rows[i] = begin * COLUMNS + i;
        }
        return rows;
    }

    private static void onRanks(int ranks, Consumer<Collective> work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(ranks);
        List<Collective> ends = Collective.threads(ranks);
        try {
            List<Callable<Void>> calls = new ArrayList<>();
            for (Collective end : ends) {
                calls.add(() -> {
                    work.accept(end);
                    return null;
                });
            }
            for (Future<Void> done : threads.invokeAll(calls)) {
                done.get();
            }
        } finally {
            threads.shutdown();
            ends.forEach(Collective::close);
        }
    }

    private void saveOn(int ranks, Path to) throws Exception {
        onRanks(ranks, end -> {
            try (State state = part(end.rank(), ranks, rowsOf(end.rank(), ranks, true),
                    Map.of("step", 12, "seed", end.rank(), "note", "run \u00e4"))) {
                Shardwright.save(state, to, new SaveOptions().format(Format.TORCH_DCP).collective(end)
                        .kind("seed", Kind.RANK_LOCAL));
            }
        });
    }

    @Test
    void ranksWriteADirectoryThatHasTheDigestsOfOneRank() throws Exception {
        saveOn(1, folder.resolve("alone"));
        String alone;
        try (Checkpoint checkpoint = Checkpoint.open(folder.resolve("alone"))) {
            alone = checkpoint.digest("rows", DigestAlgorithm.SHA256);
        }
        for (int ranks : new int[] {2, 3, 4}) {
            saveOn(ranks, path);
            try (Checkpoint checkpoint = Checkpoint.open(path)) {
                assertEquals("torch-dcp", checkpoint.format());
                assertTrue(checkpoint.info().hasDigests());
                assertEquals(alone, checkpoint.digest("rows", DigestAlgorithm.SHA256));
                assertEquals(12L, checkpoint.objects().get("step").json());
                assertEquals("run \u00e4", checkpoint.objects().get("note").json());
                assertEquals(ranks, checkpoint.ranks("seed").size());
                assertTrue(checkpoint.verify(true).findings().isEmpty());
            }
        }
    }

    @Test
    void otherNumbersOfRanksLoadIt() throws Exception {
        saveOn(3, path);
        for (int ranks : new int[] {1, 2, 8}) {
            onRanks(ranks, end -> {
                float[] rows = rowsOf(end.rank(), ranks, false);
                try (State into = part(end.rank(), ranks, rows, Map.of("step", 0))) {
                    Shardwright.loadInto(into, path, new LoadOptions().collective(end));
                    assertEquals(12L, into.json("step"));
                }
                assertArrayEquals(rowsOf(end.rank(), ranks, true), rows);
            });
        }
    }

    @Test
    void elementsThatTorchHasNotAreRefusedByName() {
        try (State state = State.builder().add("odd", DType.named("float8_e4m3"), ByteBuffer.allocateDirect(4), 4).build()) {
            UnimplementedException error = assertThrows(UnimplementedException.class,
                    () -> Shardwright.save(state, path, new SaveOptions().format(Format.TORCH_DCP)));
            assertEquals("odd", error.details().get("tensor"));
        }
        assertThrows(NotFoundException.class, () -> Checkpoint.open(path));
    }

    // ---- items for an index of somebody else's ----

    private static State items() {
        return State.builder().add("w", new float[] {1, 2, 3, 4, 5, 6}, 2, 3).json("step", 7).build();
    }

    /** An index that names the items as the files of this generation have them: that of a save of the same entries. */
    private byte[] indexOf(Path saved, String[] generation) throws IOException {
        try (State state = items()) {
            Shardwright.save(state, saved, new SaveOptions().format(Format.TORCH_DCP));
        }
        try (Stream<Path> files = Files.list(saved)) {
            String name = files.map(f -> f.getFileName().toString()).filter(f -> f.endsWith(".distcp")).findFirst().orElseThrow();
            generation[0] = name.split("\\.")[1];
        }
        return Files.readAllBytes(saved.resolve(".metadata"));
    }

    /** Where the elements of w begin in a file of items. */
    private static int payloadIn(byte[] file) {
        ByteBuffer payload = ByteBuffer.allocate(24).order(ByteOrder.LITTLE_ENDIAN);
        payload.asFloatBuffer().put(new float[] {1, 2, 3, 4, 5, 6});
        ByteBuffer all = ByteBuffer.wrap(file);
        int at = 0;
        while (!all.slice(at, payload.capacity()).equals(payload)) {
            at++;
        }
        return at;
    }

    private static Path only(Path in, String ending) throws IOException {
        try (Stream<Path> files = Files.list(in)) {
            List<Path> found = files.filter(f -> f.toString().endsWith(ending)).collect(Collectors.toList());
            assertEquals(1, found.size(), found.toString());
            return found.get(0);
        }
    }

    @Test
    void itemsAndDigestsMakeACheckpointOfAnIndex() throws IOException {
        String[] generation = new String[1];
        byte[] index = indexOf(folder.resolve("saved"), generation);
        String name = "__0_0." + generation[0] + ".distcp";
        Location here = Location.of(path);
        try (State state = items()) {
            TorchItems.Written written = TorchItems.write(state, here, name, new SaveOptions());
            assertEquals(List.of("w", "step"),
                    written.places().stream().map(TorchItems.Place::name).collect(Collectors.toList()));
            long size = Files.size(path.resolve(name));
            assertTrue(written.places().stream().allMatch(p -> p.length() > 0 && p.offset() % 64 == 0 && p.offset() + p.length() <= size));
            TorchItems.writeDigests(here, index, List.of(written.result()), new SaveOptions());
            assertThrows(AlreadyExistsException.class, () -> TorchItems.write(state, here, name, new SaveOptions()));
        }
        Files.write(path.resolve(".metadata"), index);
        try (Checkpoint checkpoint = Checkpoint.open(path)) {
            assertTrue(checkpoint.info().hasDigests());
            assertTrue(checkpoint.verify(true).findings().isEmpty());
            assertEquals(7L, checkpoint.objects().get("step").json());
        }
        byte[] file = Files.readAllBytes(path.resolve(name));
        file[payloadIn(file)] ^= 1;
        Files.write(path.resolve(name), file);
        try (Checkpoint checkpoint = Checkpoint.open(path)) {
            assertThrows(DataLossException.class, () -> checkpoint.read("w"));
        }
    }

    @Test
    void itemsThatDoNotFitAreRefused() throws IOException {
        Location here = Location.of(path);
        SaveOptions options = new SaveOptions();
        try (State state = items()) {
            InvalidArgumentException name = assertThrows(InvalidArgumentException.class,
                    () -> TorchItems.write(state, here, "__0_0.distcp", options));
            assertEquals("name", name.details().get("parameter"));
            byte[] one = TorchItems.write(state, here, "__0_0." + GENERATION + ".distcp", options).result();
            byte[] other = TorchItems.write(state, here, "__1_0." + "f".repeat(32) + ".distcp", options).result();
            byte[] index = indexOf(folder.resolve("saved"), new String[1]);
            assertThrows(InvalidArgumentException.class, () -> TorchItems.writeDigests(here, index, List.of(one, other), options));
            assertThrows(InvalidArgumentException.class, () -> TorchItems.writeDigests(here, index, List.of(), options));
            assertThrows(InvalidArgumentException.class, () -> TorchItems.writeDigests(here, null, List.of(one), options));
            assertThrows(DataLossException.class, () -> TorchItems.writeDigests(here, new byte[9], List.of(one), options));
        }
        assertTrue(only(path, GENERATION + ".distcp").toFile().length() > 0);
    }
}
