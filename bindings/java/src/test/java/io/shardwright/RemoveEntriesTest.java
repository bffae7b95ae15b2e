// SPDX-License-Identifier: Apache-2.0
// Tensors and objects that are taken out of a checkpoint.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.storage.Storage;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RemoveEntriesTest {
    private static final float[] WEIGHTS = {1, 2, 3};
    private static final RemoveOptions APPLY = new RemoveOptions().apply(true);

    @TempDir
    private Path folder;

    private static Location save(Location at, Format format) {
        try (State state = State.builder().add("layer1.w", WEIGHTS, 3).add("layer10.w", WEIGHTS, 3).add("optimizer.m", WEIGHTS, 3)
                .json("optimizer.step", "7").build()) {
            Shardwright.save(state, at, new SaveOptions().format(format));
        }
        return at;
    }

    private static Set<String> names(Location at) {
        try (Checkpoint checkpoint = Checkpoint.open(at, new OpenOptions())) {
            assertTrue(checkpoint.verify(true).findings().isEmpty());
            return new TreeSet<>(checkpoint.keys());
        }
    }

    @Test
    void aDryRunSaysWhatWouldGoAndNothingDoes() {
        Location at = save(Location.of(folder.resolve("p")), Format.TORCH_DCP);
        Report report = Shardwright.removeEntries(folder.resolve("p"), "optimizer.", new RemoveOptions());
        assertEquals(List.of("optimizer.m", "optimizer.step"), report.removed());
        assertTrue(report.json().contains("\"bytes_files\":0"), report.json());
        assertEquals(0, report.fileCount());
        assertEquals(Set.of("layer1.w", "layer10.w", "optimizer.m"), names(at));
    }

    @Test
    void entriesGoFromBothFormatsAndFromStorages() {
        try (Storage memory = Storage.memory()) {
            for (Format format : List.of(Format.TORCH_DCP, Format.MEGATRON)) {
                for (Location at : List.of(Location.of(folder.resolve(format.name())), Location.of(memory, format.name()))) {
                    save(at, format);
                    assertEquals(List.of("optimizer.m", "optimizer.step"), Shardwright.removeEntries(at, "optimizer.", APPLY).removed());
                    assertEquals(Set.of("layer1.w", "layer10.w"), names(at));
                    assertThrows(NotFoundException.class, () -> Shardwright.removeEntries(at, "optimizer.", APPLY));
                }
            }
        }
    }

    @Test
    void wholePartsLeaveNamesThatGoOn() {
        Location at = save(Location.of(folder.resolve("p")), Format.TORCH_DCP);
        RemoveOptions whole = new RemoveOptions().wholeParts(true);
        assertEquals(List.of("layer1.w"), Shardwright.removeEntries(at, "layer1", whole).removed());
        assertEquals(List.of("layer1.w", "layer10.w"), Shardwright.removeEntries(at, "layer1", new RemoveOptions()).removed());
    }

    @Test
    void whatCannotBeRemovedIsRefused() {
        Location at = save(Location.of(folder.resolve("p")), Format.NATIVE);
        assertThrows(UnimplementedException.class, () -> Shardwright.removeEntries(at, "optimizer.", APPLY));
        assertThrows(InvalidArgumentException.class, () -> Shardwright.removeEntries(at, "", APPLY));
        InvalidArgumentException cut = assertThrows(InvalidArgumentException.class, () -> Shardwright.removeEntries(at, "a\0b", APPLY));
        assertTrue(cut.getMessage().contains("prefix"), cut.getMessage());
        assertThrows(NotFoundException.class, () -> Shardwright.removeEntries(folder.resolve("nowhere"), "a", APPLY));
        assertEquals(Set.of("layer1.w", "layer10.w", "optimizer.m"), names(at));
    }
}
