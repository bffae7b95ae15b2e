// SPDX-License-Identifier: Apache-2.0
// Layouts of every form and shards of grids.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.layout.Box;
import io.shardwright.layout.GridShard;
import io.shardwright.layout.Layout;
import io.shardwright.layout.Piece;
import io.shardwright.layout.Placement;
import io.shardwright.storage.Storage;
import java.util.List;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class LayoutTest {
    private static Piece piece(long[] offsets, long[] sizes, long localOffset) {
        return new Piece(new Box(offsets, sizes), localOffset);
    }

    private static long[] longs(long... values) {
        return values;
    }

    @Test
    void stridedShardsGiveEveryBox() {
        try (Layout layout = Layout.of(longs(2), Placement.stridedShard(0, 2))) {
            assertEquals(List.of(piece(longs(3, 0), longs(2, 3), 0), piece(longs(8, 0), longs(2, 3), 6)),
                    layout.pieces(longs(10, 3), 1));
            assertArrayEquals(longs(4, 3), layout.localShape(longs(10, 3), 1));
            assertTrue(layout.contains(1));
            assertFalse(layout.contains(2));
        }
        assertThrows(InvalidArgumentException.class, () -> Layout.of(longs(2), Placement.stridedShard(0, 0)));
        assertEquals("StridedShard(0, 2)", Placement.stridedShard(0, 2).toString());
    }

    @Test
    void flatLayoutsCutElements() {
        try (Layout layout = Layout.of(longs(2, 2), Placement.FLAT, Placement.shard(0))) {
            assertEquals(List.of(piece(longs(4, 2), longs(1, 1), 0), piece(longs(5, 0), longs(1, 3), 1)),
                    layout.pieces(longs(6, 3), 3));
            assertArrayEquals(longs(4), layout.localShape(longs(6, 3), 3));
        }
        try (Layout scalars = Layout.of(longs(2), Placement.FLAT)) {
            assertEquals(List.of(piece(longs(), longs(), 0)), scalars.pieces(longs(), 0));
            assertTrue(scalars.pieces(longs(), 1).isEmpty());
        }
    }

    @Test
    void tensorMapsNestFromTheOutermostAxis() {
        List<String> names = List.of("dp", "cp", "tp");
        try (Layout layout = Layout.ofMap(longs(2, 2, 2), new int[0], names, new int[] {0, 2}, new int[] {-1})) {
            assertEquals(List.of(new Box(longs(4, 0), longs(2, 8))), layout.boxes(longs(8, 8), 1));
            assertThrows(InvalidArgumentException.class, () -> layout.boxes(longs(8), 1));
        }
        for (int axis : new int[] {3, -2}) {
            assertThrows(InvalidArgumentException.class,
                    () -> Layout.ofMap(longs(2, 2, 2), new int[0], names, new int[] {axis}));
        }
        assertThrows(InvalidArgumentException.class,
                () -> Layout.ofMap(longs(2), new int[0], names, new int[] {0}));
        UnimplementedException interleaved = assertThrows(UnimplementedException.class,
                () -> Layout.ofMap(longs(2), new int[0], List.of("interleaved_parallel"), new int[] {0}));
        assertTrue(interleaved.getMessage().contains("'interleaved_parallel'"), interleaved.getMessage());
    }

    @Test
    void statesTakeStridedAndFlatParts() {
        float[] whole = new float[30];
        for (int i = 0; i < whole.length; i++) {
            whole[i] = i;
        }
        try (Storage storage = Storage.memory();
                Layout columns = Layout.of(longs(1), Placement.stridedShard(1, 2));
                Layout flat = Layout.of(longs(1), Placement.FLAT);
                State saved = State.builder()
                        .add("w", HostTensor.of(whole, 5, 6).partOf(longs(5, 6), columns, 0)).build()) {
            Shardwright.save(saved, Location.of(storage, "p"), new SaveOptions());
            float[] back = new float[30];
            try (State into = State.builder().add("w", HostTensor.of(back, 30).partOf(longs(5, 6), flat, 0)).build()) {
                Shardwright.loadInto(into, Location.of(storage, "p"), new LoadOptions());
            }
            assertArrayEquals(whole, back);
        }
    }

    @Test
    void gridShardsArePlacedAndChecked() {
        GridShard shard = GridShard.at(longs(3, 4), 1, 0, 2, 5, 2, 1, 3);
        assertArrayEquals(longs(5, 3, 12), shard.globalShape());
        assertArrayEquals(longs(2, 0, 4), shard.offsets());
        assertEquals(List.of(piece(longs(2, 0, 4), longs(1, 3, 4), 0)), shard.pieces());
        assertThrows(InvalidArgumentException.class, () -> GridShard.at(longs(3, 4), 0, 0, 5, 5));
        assertThrows(InvalidArgumentException.class, () -> GridShard.at(longs(3, 4), 0, 0, 5));
        GridShard wide = GridShard.of(longs(3, 4), 0, longs(11, 4), longs(3, 0), longs(4, 1));
        assertThrows(InvalidArgumentException.class, wide::pieces);
        assertEquals(1, wide.shapeMayDiffer().pieces().size());
        assertThrows(OutOfRangeException.class,
                () -> GridShard.of(longs(3, 4), 0, longs(4, 4), longs(2, 0), null).pieces());
        assertThrows(InvalidArgumentException.class, () -> GridShard.of(longs(3), 1, longs(3), longs(0), null));
    }

    @Test
    void flatRangesAreFewBoxes() {
        GridShard shard = GridShard.at(longs(4, 6), 0).flatRange(10, 24);
        List<Piece> pieces = List.of(piece(longs(1, 4), longs(1, 2), 0), piece(longs(2, 0), longs(2, 6), 2));
        assertEquals(pieces, shard.pieces());
        assertArrayEquals(longs(1, 1, 24), shard.flatEntryShape());
        assertEquals(new Box(longs(0, 0, 10), longs(1, 1, 14)), shard.flatChunk());
        assertEquals(pieces, GridShard.flatEntryPieces(longs(4, 6), shard.flatEntryShape(), shard.flatChunk()));
        assertThrows(InvalidArgumentException.class,
                () -> GridShard.flatEntryPieces(longs(4), shard.flatEntryShape(), shard.flatChunk()));
        assertArrayEquals(longs(6, 1), GridShard.overlappingParts(7, 25, 24));
        assertThrows(InvalidArgumentException.class, () -> GridShard.overlappingParts(2, 2, 2));
    }
}
