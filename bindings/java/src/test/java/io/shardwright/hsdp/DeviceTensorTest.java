// SPDX-License-Identifier: Apache-2.0
// Tensors that lie on the device of their units: parameters, gradients and what an optimizer keeps, by their addresses.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.DType;
import io.shardwright.HostTensor;
import io.shardwright.LoadOptions;
import io.shardwright.SaveOptions;
import io.shardwright.Shardwright;
import io.shardwright.State;
import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.internal.shw_nativeJNI;
import io.shardwright.layout.Layout;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class DeviceTensorTest {
    private static final int ROWS = 5;
    private static final int COLUMNS = 3;
    private static final int ROUNDS = 4;
    private static final int RANKS = 2;

    @TempDir
    Path folder;

    private Apart apart;

    @BeforeEach
    void open() {
        apart = new Apart();
    }

    @AfterEach
    void close() {
        apart.close();
    }

    private static float[] ramp(int count, float first, float step) {
        float[] made = new float[count];
        for (int n = 0; n < count; n++) {
            made[n] = first + n * step;
        }
        return made;
    }

    private static float[] weight() {
        return ramp(ROWS * COLUMNS, -1, 0.15f);
    }

    // ---- training ----

    /** A place of training: how tensors are made of elements there, and how views are read and changed. */
    private interface Place {
        HsdpOptions options();

        HostTensor tensor(float[] values, long... shape);

        FloatBuffer seen(HsdpView view);

        /** What was made is not used any more. */
        void forget();
    }

    private static final class Host implements Place {
        @Override
        public HsdpOptions options() {
            return new HsdpOptions();
        }

        @Override
        public HostTensor tensor(float[] values, long... shape) {
            return HostTensor.of(values, shape);
        }

        @Override
        public FloatBuffer seen(HsdpView view) {
            return view.bytes().asFloatBuffer();
        }

        @Override
        public void forget() {}
    }

    private final class There implements Place {
        private final List<Apart.Floats> made = new ArrayList<>();

        @Override
        public HsdpOptions options() {
            return new HsdpOptions().context(apart.context).device(apart.device);
        }

        @Override
        public HostTensor tensor(float[] values, long... shape) {
            Apart.Floats floats = apart.floats(values);
            made.add(floats);
            return floats.tensor(shape);
        }

        @Override
        public FloatBuffer seen(HsdpView view) {
            return apart.seen(view.address(), (int) (view.byteSize() / Float.BYTES));
        }

        @Override
        public void forget() {
            made.forEach(Apart.Floats::close);
            made.clear();
        }
    }

    /** A weight of that place and a bias of the host. */
    private static HsdpUnit layer(Hsdp hsdp, Place place) {
        HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions().paramDtype(DType.BFLOAT16).reduceDtype(DType.FLOAT32));
        unit.addParams(List.of(HsdpParam.of("weight", place.tensor(weight(), ROWS, COLUMNS)),
                HsdpParam.of("bias", HostTensor.of(ramp(COLUMNS, 0, 1)))));
        unit.seal();
        place.forget();
        return unit;
    }

    /** Of the weight there and of the bias with the host: added, and read where they lie. */
    private static void backward(HsdpUnit unit, Place place, int rank, int round) {
        List<HostTensor> grads = List.of(place.tensor(ramp(ROWS * COLUMNS, rank - 3, 0.7f / (round + 3)), ROWS, COLUMNS),
                HostTensor.of(ramp(COLUMNS, round, rank + 0.3f)));
        if (round % 2 == 0) {
            unit.addGrads(new int[] {0, 1}, grads);
            place.forget();
        } else {
            unit.takeGrads(new int[] {0, 1}, grads);
        }
    }

    /** Shards, gradients and norms of all rounds. */
    private static List<Object> trained(HsdpMesh mesh, int rank, Place place) {
        List<Object> found = new ArrayList<>();
        try (Hsdp hsdp = Hsdp.create(mesh, place.options())) {
            HsdpUnit unit = layer(hsdp, place);
            for (int round = 0; round < ROUNDS; round++) {
                unit.preForward();
                unit.postForward();
                unit.preBackward();
                backward(unit, place, rank, round);
                unit.postBackward();
                hsdp.finalizeBackward();
                place.forget();
                found.add(hsdp.globalNorm(2));
                for (int param = 0; param < 2; param++) {
                    FloatBuffer shard = place.seen(unit.local(param));
                    FloatBuffer grad = place.seen(unit.grad(param));
                    for (int n = 0; n < shard.capacity(); n++) {
                        shard.put(n, shard.get(n) - 0.1f * grad.get(n));
                        found.addAll(List.of(grad.get(n), shard.get(n)));
                    }
                }
                hsdp.zeroGrads();
                hsdp.stepEvent();
            }
        }
        return found;
    }

    @Test
    void trainingFromMemoryOfTheDeviceHasTheBitsOfTheHost() throws Exception {
        List<HsdpMesh> here = Worlds.meshes(RANKS);
        List<HsdpMesh> there = Worlds.meshes(RANKS);
        List<List<Object>> wanted = Worlds.onRanks(RANKS, rank -> trained(here.get(rank), rank, new Host()));
        assertEquals(wanted, Worlds.onRanks(RANKS, rank -> trained(there.get(rank), rank, new There())));
        assertTrue((double) wanted.get(0).get(0) > 0);
    }

    // ---- one rank alone ----

    private static Hsdp alone(Place place) {
        return Hsdp.create(HsdpMesh.of(0, 1), place.options());
    }

    @Test
    void gradientsThatAreTakenStayWhereTheyAre() {
        Place there = new There();
        try (Hsdp hsdp = alone(there); Apart.Floats grad = apart.floats(new float[ROWS * COLUMNS])) {
            HsdpUnit unit = layer(hsdp, there);
            unit.preForward();
            unit.takeGrads(new int[] {0}, List.of(grad.tensor(ROWS, COLUMNS)));
            assertEquals(0, hsdp.stats(MemoryKind.LOCAL_GRADS).currentBytes());
            grad.set(weight());
            unit.postBackward();
            hsdp.finalizeBackward();
            assertArrayEquals(weight(), apart.copy(unit.grad(0)));
        }
    }

    @Test
    void memoryThatAUnitLendsIsATensorOfTheDevice() {
        Place there = new There();
        try (Hsdp hsdp = alone(there)) {
            HsdpUnit lender = layer(hsdp, there);
            HsdpView lent = lender.local(0);
            assertEquals(new DeviceMemory(lent.address(), Apart.EXTENSION, Apart.NUMBER), lent.memory());
            HsdpUnit unit = hsdp.unit("other", new HsdpUnitOptions());
            unit.addParams(List.of(HsdpParam.of("weight", HostTensor.of(DType.FLOAT32, lent.memory(), ROWS, COLUMNS))));
            unit.seal();
            assertArrayEquals(weight(), apart.copy(unit.local(0)));
        }
    }

    /** Memory of the host, said to lie elsewhere. */
    private static HostTensor said(ByteBuffer buffer, int type, int id) {
        long address = shw_nativeJNI.addressOf(buffer);
        return HostTensor.of(DType.FLOAT32, new DeviceMemory(address, type, id), ROWS, COLUMNS);
    }

    private static void refused(String text, Executable call) {
        String said = assertThrows(UnimplementedException.class, call).getMessage();
        assertTrue(said.contains(text), said);
    }

    @Test
    void whatLiesElsewhereIsRefusedByName() {
        ByteBuffer buffer = ByteBuffer.allocateDirect(ROWS * COLUMNS * Float.BYTES);
        HostTensor elsewhere = said(buffer, Apart.EXTENSION, Apart.NUMBER - 1);
        Place there = new There();
        try (Hsdp hsdp = alone(there); State state = State.builder().build()) {
            HsdpUnit unit = layer(hsdp, there);
            HsdpUnit other = hsdp.unit("other", new HsdpUnitOptions());
            String text = "lies on extension:4, and the context has its memory on extension:5";
            refused("'scale' (entry 0)", () -> other.addParams(List.of(HsdpParam.of("scale", elsewhere))));
            refused(text, () -> other.addParams(List.of(HsdpParam.of("scale", elsewhere))));
            unit.preForward();
            refused(text, () -> unit.addGrads(new int[] {0}, List.of(elsewhere)));
            refused("grads[0]", () -> unit.takeGrads(new int[] {0}, List.of(elsewhere)));
            refused("lies on cuda:0", () -> unit.addGrads(new int[] {0}, List.of(said(buffer, 2, 0))));
            hsdp.addToState(state, "model.", ShardContent.PARAMS);
            refused("extension:4", () -> state.add("moment", elsewhere));
            assertEquals(List.of("model.weight", "model.bias"), state.tensorNames());
        }
        try (Hsdp hsdp = alone(new Host())) {
            HsdpUnit other = hsdp.unit("other", new HsdpUnitOptions());
            refused("and the context has its memory on cpu", () -> other.addParams(List.of(HsdpParam.of("scale", elsewhere))));
        }
        Reference.reachabilityFence(buffer);
    }

    @Test
    void anAddressIsNoBufferAndNotZero() {
        try (Apart.Floats floats = apart.floats(1, 2)) {
            refused("(12, 5)", () -> floats.tensor(2).bytes());
        }
        HostTensor nowhere = HostTensor.of(DType.FLOAT32, apart.device.memory(0), 2);
        Place there = new There();
        try (Hsdp hsdp = alone(there)) {
            HsdpUnit unit = hsdp.unit("layer", new HsdpUnitOptions());
            String said = assertThrows(InvalidArgumentException.class,
                    () -> unit.addParams(List.of(HsdpParam.of("weight", nowhere)))).getMessage();
            assertTrue(said.contains("weight") && said.contains("address 0"), said);
            assertThrows(InvalidArgumentException.class, () -> State.builder().add("moment", nowhere));
        }
    }

    // ---- checkpoints ----

    /** The shards, and a moment that is cut as the weight is. */
    private static State withMoment(Hsdp hsdp, HsdpUnit unit, HostTensor moment) {
        State state = State.builder().build();
        hsdp.addToState(state, "model.", ShardContent.PARAMS);
        try (Layout layout = unit.layout(0)) {
            state.add("moment.weight", moment.partOf(unit.globalShape(0), layout, 0));
        }
        return state;
    }

    @Test
    void whatAnOptimizerKeepsThereGoesAlong() {
        float[] values = ramp(ROWS * COLUMNS, 100, 1);
        Place there = new There();
        try (Hsdp hsdp = alone(there); Apart.Floats moment = apart.floats(values)) {
            HsdpUnit unit = layer(hsdp, there);
            HostTensor tensor = moment.tensor(ROWS, COLUMNS);
            refused("extension:5", () -> State.builder().add("moment.weight", tensor).build());
            try (State state = withMoment(hsdp, unit, tensor)) {
                assertThrows(AlreadyExistsException.class, () -> state.add("moment.weight", tensor));
                assertEquals(List.of("model.weight", "model.bias", "moment.weight"), state.tensorNames());
                Shardwright.save(state, folder.resolve("c"), new SaveOptions()).close();
                moment.set(new float[values.length]);
                Shardwright.loadInto(state, folder.resolve("c"), new LoadOptions()).close();
            }
            assertArrayEquals(values, moment.get());
        }
        float[] here = new float[ROWS * COLUMNS];
        Place host = new Host();
        try (Hsdp hsdp = alone(host)) {
            try (State state = withMoment(hsdp, layer(hsdp, host), HostTensor.of(here, ROWS, COLUMNS))) {
                Shardwright.loadInto(state, folder.resolve("c"), new LoadOptions()).close();
            }
        }
        assertArrayEquals(values, here);
    }
}
