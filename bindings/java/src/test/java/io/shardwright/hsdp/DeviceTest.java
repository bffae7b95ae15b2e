// SPDX-License-Identifier: Apache-2.0
// Units on a device whose memory faults under the host's hands (tests/conformance/device/apart_table.c).
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.Context;
import io.shardwright.DType;
import io.shardwright.HostTensor;
import io.shardwright.LoadOptions;
import io.shardwright.SaveOptions;
import io.shardwright.Shardwright;
import io.shardwright.State;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.UnimplementedException;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class DeviceTest {
    private static final int ROWS = 5;
    private static final int COLUMNS = 3;
    private static final int EXTENSION = 12;
    private static final int APART = 5;

    @TempDir
    Path folder;

    private Context context;
    private Device device;

    @BeforeEach
    void open() {
        context = Context.builder().build();
        context.loadPlugin("apart");
        device = Device.open(context, "apart", null);
    }

    @AfterEach
    void close() {
        device.close();
        context.close();
    }

    private static float[] weight(float first) {
        float[] made = new float[ROWS * COLUMNS];
        for (int n = 0; n < made.length; n++) {
            made[n] = first == 0 ? 0 : first + n;
        }
        return made;
    }

    private static HsdpUnit layer(Hsdp hsdp, float[] values, HsdpUnitOptions options) {
        HsdpUnit unit = hsdp.unit("layer", options);
        unit.addParams(List.of(HsdpParam.of("weight", HostTensor.of(values, ROWS, COLUMNS))));
        unit.seal();
        return unit;
    }

    private Hsdp alone() {
        return Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions().context(context).device(device));
    }

    /** Shards, offloaded gradients and norms of all steps. */
    private List<Object> trained(HsdpMesh mesh, int rank, HsdpOptions options) {
        List<Object> found = new ArrayList<>();
        HsdpUnitOptions offloaded = new HsdpUnitOptions().offload(true).paramDtype(DType.BFLOAT16).reduceDtype(DType.FLOAT32);
        try (Hsdp hsdp = Hsdp.create(mesh, options)) {
            HsdpUnit unit = layer(hsdp, weight(1), offloaded);
            for (int round = 0; round < 3; round++) {
                unit.preForward();
                unit.postForward();
                unit.preBackward();
                float[] grad = weight(1);
                for (int n = 0; n < grad.length; n++) {
                    grad[n] = (grad[n] - rank) / (round + 3);
                }
                unit.addGrads(new int[] {0}, List.of(HostTensor.of(grad, ROWS, COLUMNS)));
                unit.postBackward();
                hsdp.finalizeBackward();
                found.add(hsdp.globalNorm(2));
                hsdp.scaleGrads(1.0 / 3);
                FloatBuffer shard = unit.local(0).bytes().asFloatBuffer();
                float[] sum = unit.grad(0).toFloats();
                for (int n = 0; n < sum.length; n++) {
                    shard.put(n, shard.get(n) - 0.1f * sum[n]);
                    found.add(shard.get(n));
                }
                hsdp.zeroGrads();
                hsdp.stepEvent();
            }
        }
        return found;
    }

    private List<List<Object>> trained(HsdpOptions options) throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(2);
        return Worlds.onRanks(2, rank -> trained(meshes.get(rank), rank, options));
    }

    @Test
    void offloadedShardsHaveTheBitsOfTheHost() throws Exception {
        assertEquals(trained(new HsdpOptions()), trained(new HsdpOptions().context(context).device(device)));
    }

    @Test
    void viewsSayWhereTheyLieAndBuffersAreRefused() {
        assertEquals(List.of("apart in C", EXTENSION, APART), List.of(device.name(), device.deviceType(), device.deviceId()));
        assertFalse(device.isHost());
        try (Device host = Device.host(true)) {
            assertTrue(host.isHost());
            assertEquals(1, host.deviceType());
        }
        try (Hsdp hsdp = alone()) {
            HsdpUnit unit = layer(hsdp, weight(1), new HsdpUnitOptions());
            HsdpView local = unit.local(0);
            assertEquals(List.of(EXTENSION, APART), List.of(local.deviceType(), local.deviceId()));
            assertTrue(Long.parseLong(context.askPlugin("apart", "behind " + local.address())) != 0);
            String said = assertThrows(UnimplementedException.class, local::bytes).getMessage();
            assertTrue(said.contains("(12, 5)"), said);
            unit.preForward();
            assertThrows(UnimplementedException.class, () -> unit.full(0).toFloats());
        }
    }

    @Test
    void memoryOfTheHostIsNotLentToADevice() {
        try (Hsdp hsdp = alone()) {
            HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions().hostMemory(true));
            List<ByteBuffer> buffers = List.of(ByteBuffer.allocateDirect(ROWS * COLUMNS * Float.BYTES));
            String said = assertThrows(UnimplementedException.class, () -> unit.setMemory(0, buffers)).getMessage();
            assertTrue(said.contains("'layer'"), said);
            HsdpUnit other = hsdp.unit("other", new HsdpUnitOptions());
            HostAllocator heap = new HostAllocator() {
                @Override
                public ByteBuffer allocate(int param, int bytes) {
                    return ByteBuffer.allocateDirect(bytes);
                }

                @Override
                public void deallocate(int param, ByteBuffer memory) {}
            };
            assertThrows(UnimplementedException.class, () -> other.setAllocator(heap));
        }
    }

    @Test
    void checkpointsGoFromTheDeviceToTheHostAndBack() {
        try (Hsdp hsdp = alone()) {
            layer(hsdp, weight(1), new HsdpUnitOptions());
            try (State state = State.builder().build()) {
                hsdp.addToState(state, "model.", ShardContent.PARAMS);
                Shardwright.save(state, folder.resolve("c"), new SaveOptions());
            }
        }
        for (boolean offload : new boolean[] {false, true}) {
            try (Hsdp hsdp = alone()) {
                HsdpUnit unit = layer(hsdp, weight(0), new HsdpUnitOptions().offload(offload));
                try (State state = State.builder().build()) {
                    hsdp.addToState(state, "model.", ShardContent.PARAMS);
                    Shardwright.loadInto(state, folder.resolve("c"), new LoadOptions());
                    Shardwright.save(state, folder.resolve(offload ? "b" : "a"), new SaveOptions());
                }
                if (offload) {
                    assertArrayEquals(weight(1), unit.local(0).toFloats());
                }
            }
        }
        try (Hsdp hsdp = Hsdp.create(HsdpMesh.of(0, 1), new HsdpOptions())) {
            HsdpUnit unit = layer(hsdp, weight(0), new HsdpUnitOptions());
            try (State state = State.builder().build()) {
                hsdp.addToState(state, "model.", ShardContent.PARAMS);
                Shardwright.loadInto(state, folder.resolve("a"), new LoadOptions());
            }
            assertArrayEquals(weight(1), unit.local(0).toFloats());
        }
    }

    @Test
    void devicesAreAskedForByName() {
        assertThrows(NotFoundException.class, () -> Device.open(context, "no_such_plugin", ""));
        context.loadPlugin("sample_team");
        String said = assertThrows(UnimplementedException.class, () -> Device.open(context, "sample_team", "")).getMessage();
        assertTrue(said.contains("has no device"), said);
    }
}
