// SPDX-License-Identifier: Apache-2.0
// Communicators of plugins.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.Context;
import io.shardwright.HostTensor;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class PluginCommunicatorTest {
    private static float[] gathered(HsdpMesh mesh) {
        try (Hsdp hsdp = Hsdp.create(mesh, new HsdpOptions())) {
            HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions());
            unit.addParams(List.of(HsdpParam.of("w", HostTensor.of(new float[] {1, 2, 3, 4}, 4))));
            unit.seal();
            unit.unshard();
            return unit.full(0).toFloats();
        }
    }

    @Test
    void ranksTalkThroughAPlugin() throws Exception {
        try (Context context = Context.builder().build()) {
            context.loadPlugin("sample_team");
            context.loadPlugin("sample_team"); // again
            List<float[]> found = Worlds.onRanks(2, rank -> {
                try (Communicator end = Communicator.open(context, "sample_team", "java " + rank + " 2")) {
                    assertEquals(rank, end.rank());
                    assertEquals(2, end.size());
                    HsdpMesh mesh = HsdpMesh.of(rank, 2);
                    mesh.setCommunicator(0, end);
                    return gathered(mesh);
                }
            });
            for (float[] each : found) {
                assertArrayEquals(new float[] {1, 2, 3, 4}, each);
            }
        }
    }

    @Test
    void pluginsAndTextsAreChecked() {
        try (Context context = Context.builder().build()) {
            assertThrows(NotFoundException.class, () -> context.loadPlugin("sample_nothing"));
            assertThrows(NotFoundException.class, () -> Communicator.open(context, "sample_team", "java 0 2"));
            context.loadPlugin("sample_team");
            String said = assertThrows(InvalidArgumentException.class,
                    () -> Communicator.open(context, "sample_team", "java 0")).getMessage();
            assertTrue(said.contains("NAME RANK SIZE"), said);
            assertThrows(InvalidArgumentException.class, () -> Communicator.open(context, "sample_team", null));
            context.loadPlugin("sample_memory");
            ShardwrightException other = assertThrows(ShardwrightException.class,
                    () -> Communicator.open(context, "sample_memory", ""));
            assertEquals(StatusCode.UNIMPLEMENTED, other.code());
        }
    }
}
