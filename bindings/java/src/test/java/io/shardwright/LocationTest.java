// SPDX-License-Identifier: Apache-2.0
// Paths and key prefixes, and what is told of the checkpoints there.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.storage.Storage;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LocationTest {
    @TempDir
    Path folder;

    private static void save(Location location) {
        try (State state = State.builder().add("w", new float[] {1, 2}).json("step", 7).build()) {
            Shardwright.save(state, location, new SaveOptions().metadata("epoch", "3"));
        }
    }

    private static void savesAndLoads(Path path) {
        save(Location.of(path));
        assertTrue(Files.exists(path.resolve("manifest.shw")), path.toString());
        try (Loaded loaded = Shardwright.load(path)) {
            assertArrayEquals(new byte[] {0, 0, -128, 63, 0, 0, 0, 64}, loaded.tensors().get("w").toByteArray());
        }
    }

    @Test
    void namesAreThoseOfTheFileSystemByteByByte() throws Exception {
        for (String name : List.of("a b", "a%20b", "100%", "\u00fc\ud83d\ude00", "a:b", "a+b?c#d")) {
            savesAndLoads(folder.resolve(name));
        }
        Process made = new ProcessBuilder("sh", "-c", "mkdir \"$(printf 'raw-\\377')\"").directory(folder.toFile())
                .redirectErrorStream(true).start();
        assertEquals(0, made.waitFor(), new String(made.getInputStream().readAllBytes()));
        try (Stream<Path> found = Files.list(folder)) {
            List<Path> raw = found.filter(p -> p.getFileName().toString().startsWith("raw-")).collect(Collectors.toList());
            assertEquals(1, raw.size());
            savesAndLoads(raw.get(0)); // a name that is no UTF-8, of a directory that is there
            savesAndLoads(raw.get(0).resolve("p"));
        }
    }

    @Test
    void aRelativePathIsOneOfTheWorkingDirectory() {
        Path relative = Path.of("").toAbsolutePath().relativize(folder.toAbsolutePath()).resolve("p");
        savesAndLoads(relative);
        assertTrue(Files.exists(folder.resolve("p/manifest.shw")));
    }

    @Test
    void whatIsNoPathOfTheSystemIsRefused() throws Exception {
        URI zip = URI.create("jar:" + folder.resolve("a.zip").toUri());
        try (FileSystem other = FileSystems.newFileSystem(zip, Map.of("create", "true"))) {
            InvalidArgumentException refused = assertThrows(InvalidArgumentException.class,
                    () -> save(Location.of(other.getPath("p"))));
            assertTrue(refused.getMessage().contains("file system jar"), refused.getMessage());
            assertThrows(InvalidArgumentException.class, () -> Shardwright.load(other.getPath("p")));
            SaveOptions traced = new SaveOptions().tracePath(other.getPath("trace.json"));
            try (State state = State.builder().add("w", new float[1]).build()) {
                assertThrows(InvalidArgumentException.class, () -> Shardwright.save(state, folder.resolve("p"), traced));
            }
        }
        assertThrows(UnimplementedException.class, () -> save(Location.of(Path.of("s3://bucket/p"))));
        InvalidArgumentException none = assertThrows(InvalidArgumentException.class, () -> Checkpoint.open((Path) null));
        assertEquals("path", none.details().get("parameter"));
        assertThrows(InvalidArgumentException.class, () -> Shardwright.listSteps((Path) null));
    }

    @Test
    void aCheckpointTellsWhatIsInIt() {
        Instant before = Instant.now();
        try (Storage storage = Storage.memory()) {
            Location location = Location.of(storage, "run/p");
            assertTrue(location.toString().endsWith("run/p"), location.toString());
            save(location);
            try (Checkpoint checkpoint = Checkpoint.open(location, new OpenOptions())) {
                CheckpointInfo info = checkpoint.info();
                assertEquals("native", info.format());
                assertEquals(checkpoint.generation(), info.generation());
                assertEquals(List.of(1, 1L, 8L, 1L), List.of(info.worldSize(), info.chunkCount(), info.tensorBytes(),
                        info.objectBytes()));
                assertEquals(Map.of("epoch", "3"), info.metadata());
                assertEquals(Map.of(DType.FLOAT32, 8L), info.bytesByDtype());
                assertTrue(info.hasDigests() && !info.created().isBefore(before.minusSeconds(1)), info.toString());
                assertEquals(List.of("w", Kind.REPLICATED, -1), List.of(info.tensors().get(0).name(),
                        info.tensors().get(0).kind(), info.tensors().get(0).rank()));
                assertEquals(List.of(new CheckpointInfo.ObjectInfo("step", "", "application/json", Kind.REPLICATED, -1, 1)),
                        info.objects());
                assertEquals(1, info.files().size());
                assertEquals(info.fileBytes(), info.files().get(0).byteSize());
                assertEquals(checkpoint.chunks().get(0).file(), info.files().get(0).key());
                assertTrue(info.json().startsWith("{\"schema\":1"), info.json());
            }
            assertNull(Steps.of("{\"steps\": []}").newestWhole());
        }
    }
}
