// SPDX-License-Identifier: Apache-2.0
// Trains a small network on two ranks, goes on from its checkpoint, and saves it: one of four programs, each in its language.

import io.shardwright.HostTensor;
import io.shardwright.LoadOptions;
import io.shardwright.SaveOptions;
import io.shardwright.Shardwright;
import io.shardwright.State;
import io.shardwright.collective.Collective;
import io.shardwright.hsdp.Communicator;
import io.shardwright.hsdp.Hsdp;
import io.shardwright.hsdp.HsdpMesh;
import io.shardwright.hsdp.HsdpOptions;
import io.shardwright.hsdp.HsdpParam;
import io.shardwright.hsdp.HsdpUnit;
import io.shardwright.hsdp.HsdpUnitOptions;
import io.shardwright.hsdp.Phase;
import io.shardwright.hsdp.ShardContent;
import io.shardwright.planning.Planning;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * {@code HsdpLoop FOLDER STEPS}: trains so many steps from FOLDER/checkpoint, or from the beginning where there is none, saves
 * there, and prints the digest of all parameters. The programs of the other languages do the same by the same numbers, so each goes
 * on from what another has saved.
 */
public final class HsdpLoop {
    private static final int RANKS = 2;
    private static final int MICRO_BATCHES = 2;
    private static final int SAMPLES = 4;
    private static final int[] WIDTHS = {13, 37, 29, 3};
    private static final int LAYERS = WIDTHS.length - 1;

    private final int rank;
    private final Hsdp hsdp;
    private final List<HsdpUnit> units = new ArrayList<>();
    private final List<float[]> momenta = new ArrayList<>(); // of weight and bias of each layer, cut as these are

    private HsdpLoop(Hsdp hsdp, int rank) {
        this.hsdp = hsdp;
        this.rank = rank;
        for (int layer = 0; layer < LAYERS; layer++) {
            units.add(firstUnit(layer));
        }
    }

    // ---- the model ----

    private HsdpUnit firstUnit(int layer) {
        int inputs = WIDTHS[layer];
        int outputs = WIDTHS[layer + 1];
        float[] weight = new float[outputs * inputs];
        for (int n = 0; n < weight.length; n++) {
            weight[n] = (((n * 37 + layer * 11) % 41) - 20) / 128f;
        }
        float[] bias = new float[outputs];
        for (int n = 0; n < bias.length; n++) {
            bias[n] = (((n * 29 + layer * 7) % 31) - 15) / 256f;
        }
        String name = "layers." + layer;
        HsdpUnit unit = hsdp.unit(name, new HsdpUnitOptions());
        unit.addParams(List.of(HsdpParam.of(name + ".weight", HostTensor.of(weight, outputs, inputs)),
                HsdpParam.of(name + ".bias", HostTensor.of(bias))));
        unit.seal(); // from here on each rank holds its rows
        for (int index = 0; index < 2; index++) {
            momenta.add(new float[(int) unit.local(index).byteSize() / Float.BYTES]);
        }
        return unit;
    }

    /** Layer by layer: what goes in, and behind the last what comes out; `before`: without the activation. */
    private float[][][] forward(float[][] x, float[][][] before) {
        float[][][] seen = new float[LAYERS + 1][][];
        seen[0] = x;
        for (int layer = 0; layer < LAYERS; layer++) {
            HsdpUnit unit = units.get(layer);
            unit.preForward(); // the whole parameters are there
            before[layer] = affine(seen[layer], unit.full(0).toFloats(), unit.full(1).toFloats());
            unit.postForward(); // and gone
            seen[layer + 1] = layer + 1 < LAYERS ? rectified(before[layer]) : before[layer];
        }
        return seen;
    }

    private void backward(float[][] grad, float[][][] seen, float[][][] before) {
        float[][] dy = grad;
        for (int layer = LAYERS - 1; layer >= 0; layer--) {
            HsdpUnit unit = units.get(layer);
            for (int b = 0; layer + 1 < LAYERS && b < SAMPLES; b++) {
                for (int j = 0; j < dy[b].length; j++) {
                    dy[b][j] = before[layer][b][j] > 0 ? dy[b][j] : 0;
                }
            }
            unit.preBackward();
            HostTensor ofWeight = HostTensor.of(weightGradient(dy, seen[layer]), WIDTHS[layer + 1], WIDTHS[layer]);
            HostTensor ofBias = HostTensor.of(biasGradient(dy));
            dy = inputGradient(dy, unit.full(0).toFloats(), WIDTHS[layer]);
            unit.addGrads(new int[] {0, 1}, List.of(ofWeight, ofBias));
            unit.postBackward(); // travels while the layer before computes
        }
    }

    // ---- its arithmetic: each product and sum in float32, in this order ----

    private static float[][] affine(float[][] x, float[] weight, float[] bias) {
        float[][] y = new float[SAMPLES][bias.length];
        for (int b = 0; b < SAMPLES; b++) {
            for (int j = 0; j < bias.length; j++) {
                y[b][j] = bias[j];
                for (int k = 0; k < x[b].length; k++) {
                    y[b][j] = y[b][j] + x[b][k] * weight[j * x[b].length + k];
                }
            }
        }
        return y;
    }

    private static float[][] rectified(float[][] y) {
        float[][] x = new float[SAMPLES][y[0].length];
        for (int b = 0; b < SAMPLES; b++) {
            for (int j = 0; j < y[b].length; j++) {
                x[b][j] = y[b][j] > 0 ? y[b][j] : 0;
            }
        }
        return x;
    }

    private static float[] weightGradient(float[][] dy, float[][] x) {
        int inputs = x[0].length;
        float[] grad = new float[dy[0].length * inputs];
        for (int n = 0; n < grad.length; n++) {
            for (int b = 0; b < SAMPLES; b++) {
                grad[n] = grad[n] + dy[b][n / inputs] * x[b][n % inputs];
            }
        }
        return grad;
    }

    private static float[] biasGradient(float[][] dy) {
        float[] grad = new float[dy[0].length];
        for (int j = 0; j < grad.length; j++) {
            for (int b = 0; b < SAMPLES; b++) {
                grad[j] = grad[j] + dy[b][j];
            }
        }
        return grad;
    }

    private static float[][] inputGradient(float[][] dy, float[] weight, int inputs) {
        float[][] dx = new float[SAMPLES][inputs];
        for (int b = 0; b < SAMPLES; b++) {
            for (int k = 0; k < inputs; k++) {
                for (int j = 0; j < dy[b].length; j++) {
                    dx[b][k] = dx[b][k] + dy[b][j] * weight[j * inputs + k];
                }
            }
        }
        return dx;
    }

    private float[][] inputs(int step, int microBatch) {
        float[][] x = new float[SAMPLES][WIDTHS[0]];
        for (int b = 0; b < SAMPLES; b++) {
            for (int k = 0; k < x[b].length; k++) {
                x[b][k] = (((step * 31 + microBatch * 17 + rank * 13 + b * 7 + k * 5) % 23) - 11) / 16f;
            }
        }
        return x;
    }

    /** Of the loss, by the output y. */
    private float[][] lossGradient(float[][] y, int step, int microBatch) {
        float[][] dy = new float[SAMPLES][WIDTHS[LAYERS]];
        for (int b = 0; b < SAMPLES; b++) {
            for (int k = 0; k < dy[b].length; k++) {
                float target = (((step * 19 + microBatch * 5 + rank * 3 + b * 11 + k * 13) % 17) - 8) / 16f;
                dy[b][k] = (y[b][k] - target) * 0.25f;
            }
        }
        return dy;
    }

    // ---- the loop ----

    private void step(int step) {
        for (int microBatch = 0; microBatch < MICRO_BATCHES; microBatch++) {
            boolean isLast = microBatch + 1 == MICRO_BATCHES;
            hsdp.setIsLastBackward(isLast);
            hsdp.setRequiresAllReduce(isLast); // replicas, where there are some, meet once
            float[][][] before = new float[LAYERS][][];
            float[][][] seen = forward(inputs(step, microBatch), before);
            backward(lossGradient(seen[LAYERS], step, microBatch), seen, before);
            hsdp.finalizeBackward();
        }
        for (int each = 0; each < momenta.size(); each++) {
            HsdpUnit unit = units.get(each / 2);
            update(unit.local(each % 2).bytes().asFloatBuffer(), momenta.get(each), unit.grad(each % 2).toFloats());
        }
        hsdp.stepEvent(); // the shards have changed
        hsdp.zeroGrads();
    }

    /** Descent with momentum. */
    private static void update(FloatBuffer parameter, float[] momentum, float[] grad) {
        for (int n = 0; n < grad.length; n++) {
            momentum[n] = 0.9f * momentum[n] + grad[n];
            parameter.put(n, parameter.get(n) - 0.125f * momentum[n]);
        }
    }

    /** Parameters in memory of the library, momenta in ours, and how many steps were trained. */
    private State state(long steps) {
        State.Builder builder = State.builder().json("step", steps);
        for (int each = 0; each < momenta.size(); each++) {
            HsdpUnit unit = units.get(each / 2);
            int index = each % 2;
            builder.add("momentum." + unit.paramName(index), HostTensor.of(momenta.get(each), unit.box(index).sizes())
                    .partOf(unit.globalShape(index), unit.layout(index), rank));
        }
        State state = builder.build();
        hsdp.addToState(state, "model.", ShardContent.PARAMS);
        return state;
    }

    private long load(Path checkpoint, Collective collective) {
        try (State state = state(0)) {
            Shardwright.loadInto(state, checkpoint, new LoadOptions().collective(collective));
            hsdp.stepEvent();
            return (Long) state.json("step");
        }
    }

    private void save(Path checkpoint, long steps, Collective collective) {
        try (State state = state(steps)) {
            Shardwright.save(state, checkpoint, new SaveOptions().collective(collective));
        }
    }

    /** Of all parameters in their order, as little-endian float32. */
    private String digest() {
        ByteBuffer bytes = ByteBuffer.allocate(1 << 16).order(ByteOrder.LITTLE_ENDIAN);
        for (HsdpUnit unit : units) {
            unit.unshard();
            bytes.put(unit.full(0).bytes()).put(unit.full(1).bytes());
            unit.reshard(Phase.BACKWARD);
        }
        byte[] all = new byte[bytes.position()];
        bytes.flip().get(all);
        return HexFormat.of().formatHex(Planning.contentDigest(all));
    }

    private String run(Path checkpoint, int steps, Collective collective) {
        long begin = Files.exists(checkpoint) ? load(checkpoint, collective) : 0;
        for (long step = begin; step < begin + steps; step++) {
            step((int) step);
        }
        save(checkpoint, begin + steps, collective);
        return digest();
    }

    /**
     * One thread for each rank.
     *
     * @param arguments folder and number of steps
     * @throws Exception what a rank failed with
     */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2) {
            System.err.println("usage: HsdpLoop FOLDER STEPS");
            System.exit(2);
        }
        Path checkpoint = Path.of(arguments[0], "checkpoint");
        int steps = Integer.parseInt(arguments[1]);
        List<Communicator> ends = Communicator.threads(RANKS);
        List<Collective> collectives = Collective.threads(RANKS); // saves and loads move bytes
        ExecutorService threads = Executors.newFixedThreadPool(RANKS);
        List<Future<String>> ranks = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            int own = rank;
            ranks.add(threads.submit(() -> {
                try (Communicator end = ends.get(own); Collective collective = collectives.get(own)) {
                    HsdpMesh mesh = HsdpMesh.of(own, RANKS);
                    mesh.setCommunicator(0, end);
                    try (Hsdp hsdp = Hsdp.create(mesh, new HsdpOptions())) {
                        return new HsdpLoop(hsdp, own).run(checkpoint, steps, collective);
                    }
                }
            }));
        }
        threads.shutdown();
        try {
            System.out.println(ranks.get(0).get());
            ranks.get(1).get();
        } catch (ExecutionException e) {
            throw (Exception) e.getCause();
        }
    }
}
