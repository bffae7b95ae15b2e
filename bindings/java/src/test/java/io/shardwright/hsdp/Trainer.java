// SPDX-License-Identifier: Apache-2.0
// One rank that trains the network.
package io.shardwright.hsdp;

import io.shardwright.HostTensor;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;

/** A unit for each layer, and momenta of its shards. */
final class Trainer implements AutoCloseable {
    final Hsdp hsdp;
    final List<HsdpUnit> units = new ArrayList<>();
    final List<float[]> momenta = new ArrayList<>();
    private final int rank;

    Trainer(HsdpMesh mesh, int rank, boolean hasReplicas, HsdpUnitOptions options) {
        this(mesh, rank, new HsdpOptions().shardAxis(hasReplicas ? 1 : 0).replicateAxis(hasReplicas ? 0 : -1), options,
                Network.firstParameters());
    }

    Trainer(HsdpMesh mesh, int rank, HsdpOptions options, HsdpUnitOptions unitOptions, float[][] parameters) {
        this.rank = rank;
        hsdp = Hsdp.create(mesh, options);
        try {
            seal(unitOptions, parameters);
        } catch (Throwable e) {
            hsdp.close();
            throw e;
        }
    }

    private void seal(HsdpUnitOptions unitOptions, float[][] parameters) {
        for (int layer = 0; layer < Network.LAYERS; layer++) {
            String name = "layers." + layer;
            HsdpUnit unit = hsdp.unit(name, unitOptions);
            HostTensor weight = HostTensor.of(parameters[2 * layer], Network.outputs(layer), Network.inputs(layer));
            unit.addParams(List.of(HsdpParam.of(name + ".weight", weight),
                    HsdpParam.of(name + ".bias", HostTensor.of(parameters[2 * layer + 1]))));
            unit.seal();
            units.add(unit);
            for (int index = 0; index < 2; index++) {
                momenta.add(new float[(int) unit.local(index).byteSize() / Float.BYTES]);
            }
        }
    }

    /** Gradients of the last layer are added, those of the others taken, in turn. */
    static boolean takes(int layer) {
        return layer % 2 == 0;
    }

    void forwardAndBackward(int step, int microBatch) {
        float[][][] seen = new float[Network.LAYERS + 1][][];
        float[][][] before = new float[Network.LAYERS][][];
        seen[0] = Network.inputs(step, microBatch, rank);
        for (int layer = 0; layer < Network.LAYERS; layer++) {
            HsdpUnit unit = units.get(layer);
            unit.preForward();
            before[layer] = Network.forward(layer, seen[layer], unit.full(0).toFloats(), unit.full(1).toFloats());
            seen[layer + 1] = layer + 1 == Network.LAYERS ? before[layer] : Network.rectified(before[layer]);
            unit.postForward();
        }
        float[][] grad = Network.lossGradient(seen[Network.LAYERS], Network.targets(step, microBatch, rank));
        for (int layer = Network.LAYERS - 1; layer >= 0; layer--) {
            if (layer + 1 < Network.LAYERS) {
                Network.rectifyGradient(grad, before[layer]);
            }
            grad = backward(layer, grad, seen[layer]);
        }
    }

    private float[][] backward(int layer, float[][] grad, float[][] x) {
        HsdpUnit unit = units.get(layer);
        unit.preBackward();
        List<HostTensor> grads = List.of(
                HostTensor.of(Network.weightGradient(layer, grad, x), Network.outputs(layer), Network.inputs(layer)),
                HostTensor.of(Network.biasGradient(layer, grad)));
        float[][] ofInput = Network.inputGradient(layer, grad, unit.full(0).toFloats());
        if (takes(layer)) {
            unit.takeGrads(new int[] {0, 1}, grads);
        } else {
            unit.addGrads(new int[] {0, 1}, grads);
        }
        unit.postBackward();
        return ofInput;
    }

    void iteration(int step, int microBatches, Accumulation accumulation) {
        for (int microBatch = 0; microBatch < microBatches; microBatch++) {
            accumulation.set(hsdp, microBatch + 1 == microBatches);
            forwardAndBackward(step, microBatch);
            hsdp.finalizeBackward();
        }
    }

    void step(int step, int microBatches, Accumulation accumulation) {
        iteration(step, microBatches, accumulation);
        for (int each = 0; each < momenta.size(); each++) {
            HsdpUnit unit = units.get(each / 2);
            FloatBuffer local = unit.local(each % 2).bytes().asFloatBuffer();
            float[] parameter = new float[local.remaining()];
            local.get(0, parameter);
            Network.update(parameter, momenta.get(each), unit.grad(each % 2).toFloats());
            local.put(0, parameter);
        }
        hsdp.stepEvent();
        hsdp.zeroGrads();
    }

    /** All parameters, as every rank sees them. */
    float[][] whole() {
        float[][] found = new float[2 * Network.LAYERS][];
        for (int layer = 0; layer < Network.LAYERS; layer++) {
            HsdpUnit unit = units.get(layer);
            unit.unshard();
            found[2 * layer] = unit.full(0).toFloats();
            found[2 * layer + 1] = unit.full(1).toFloats();
            unit.reshard(Phase.BACKWARD);
        }
        return found;
    }

    @Override
    public void close() {
        hsdp.close();
    }
}
