// SPDX-License-Identifier: Apache-2.0
// What pickles would import, and files without it.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.errors.NotFoundException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What pickles would import, and files without it. */
class PicklesTest {
    private static final String COMMAND = "\u0080\u0002}U\u0002lrK\u0001sU\u0004whencposix\nsystem\nU\u0002id\u0085Rs.";

    @Test
    void picklesAreScannedAndCleaned(@TempDir Path folder) throws Exception {
        Location pickle = Location.of(folder.resolve("v.pkl"));
        Location clean = Location.of(folder.resolve("clean.pkl"));
        Files.write(folder.resolve("v.pkl"), COMMAND.getBytes(StandardCharsets.ISO_8859_1));
        String found = Shardwright.scanPickles(pickle, new OpenOptions());
        assertTrue(found.contains("\"unknown\":1") && found.contains("\"module\":\"posix\""), found);
        assertTrue(Shardwright.cleanPickles(pickle, clean, new OpenOptions()).contains("\"replaced\":1"));
        assertTrue(Shardwright.scanPickles(clean, new OpenOptions()).contains("\"unknown\":0"));
        assertThrows(NotFoundException.class,
                () -> Shardwright.scanPickles(Location.of(folder.resolve("nothing")), new OpenOptions()));
    }

    @Test
    void anObjectIsDescribed(@TempDir Path folder) {
        try (State state = State.builder().bytes("note", new byte[] {1, 2}).build()) {
            Shardwright.save(state, folder.resolve("c"), new SaveOptions());
        }
        try (Checkpoint checkpoint = Checkpoint.open(folder.resolve("c"))) {
            assertEquals("{\"content_type\":\"application/octet-stream\",\"bytes\":2,\"value\":null}",
                    checkpoint.describeObject("note"));
        }
    }
}
