// SPDX-License-Identifier: Apache-2.0
// Structs between Java and C.
package io.shardwright.internal;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.errors.InvalidArgumentException;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Structs between Java and C: fields by name, and lengths that must fit before anything is read. */
class StructsTest {
    @BeforeAll
    static void load() {
        NativeLoader.load();
    }

    private static Structs.EntryBatch entries() {
        Structs.EntryBatch batch = new Structs.EntryBatch();
        batch.count = 1;
        batch.names = new byte[] {'w'};
        batch.nameOffsets = new long[] {0, 1};
        batch.dtypes = new int[] {0};
        return batch;
    }

    private static byte[] described(Structs.EntryBatch batch) {
        return Parts.bytes(shw_nativeJNI.shw_plan_describe(new Structs.DescribeOptions(), batch));
    }

    private static void refused(String said, Consumer<Structs.EntryBatch> change) {
        Structs.EntryBatch batch = entries();
        change.accept(batch);
        String found = assertThrows(InvalidArgumentException.class, () -> described(batch)).getMessage();
        assertTrue(found.contains(said), found);
    }

    @Test
    void lengthsMustFitOneAnother() {
        refused("field nameOffsets does not have the length", b -> b.count = 2);
        refused("field nameOffsets does not have the length", b -> b.count = Long.MAX_VALUE);
        refused("field nameOffsets does not have the length", b -> b.count = -1);
        refused("field dtypes does not have the length", b -> b.dtypes = new int[2]);
        refused("field names does not have the length", b -> b.names = new byte[2]);
        refused("field nameOffsets does not begin with 0", b -> b.nameOffsets[0] = 1);
        refused("field shapeOffsets does not ascend", b -> {
            b.shapes = new long[0];
            b.shapeOffsets = new long[] {0, -1};
        });
        refused("field digests does not have the length", b -> b.digests = new byte[15]);
        refused("field boxOffsets does not have the length", b -> {
            b.shapeOffsets = new long[] {0, 1L << 56};
            b.boxRanges = new long[] {0, 1L << 56};
            b.boxOffsets = new long[0];
        });
    }

    @Test
    void whatWasDescribedComesBackByName() {
        long plan = shw_nativeJNI.shw_plan_create(described(entries()));
        try {
            Structs.EntryBatch found = shw_nativeJNI.shw_plan_entries(plan);
            assertEquals(1, found.count);
            assertArrayEquals(new byte[] {'w'}, found.names);
            assertArrayEquals(new long[] {0, 1}, found.nameOffsets);
            assertNull(found.secondary);
            assertNull(found.digests);
        } finally {
            shw_nativeJNI.shw_plan_release(plan);
        }
    }

    @Test
    void aCallWhoseArgumentsDoNotFitIsNotMade() {
        Structs.LayoutSpec spec = new Structs.LayoutSpec();
        spec.meshNdim = 2;
        spec.meshShape = new long[] {2};
        assertThrows(InvalidArgumentException.class, () -> shw_nativeJNI.shw_layout_create(spec));
        Structs.SaveOptions options = new Structs.SaveOptions();
        options.tracePath = new byte[] {'a'};
        long context = shw_nativeJNI.shw_java_context_create(1, 0, 5, 0, null);
        long state = shw_nativeJNI.shw_state_create();
        try {
            String said = assertThrows(InvalidArgumentException.class,
                    () -> shw_nativeJNI.shw_save_planner_create(context, state, 0, 1, options)).getMessage();
            assertTrue(said.contains("field tracePath does not end with NUL"), said);
        } finally {
            shw_nativeJNI.shw_state_release(state);
            shw_nativeJNI.shw_context_release(context);
        }
    }
}
