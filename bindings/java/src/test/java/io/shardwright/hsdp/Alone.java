// SPDX-License-Identifier: Apache-2.0
// One process that adds in the order that is promised.
package io.shardwright.hsdp;

/** The oracle: micro-batches, shards and replicas in their order, then the mean. */
final class Alone {
    private final int shards;
    private final int replicas;
    private final int microBatches;
    private final Accumulation accumulation;
    final float[][] parameters = Network.firstParameters();
    private final float[][] momenta = zerosLike(parameters);

    Alone(int shards, int replicas, int microBatches, Accumulation accumulation) {
        this.shards = shards;
        this.replicas = replicas;
        this.microBatches = microBatches;
        // Without replicas sums over the shard axis are all there is.
        this.accumulation = replicas == 1 && accumulation == Accumulation.ONCE_OVER_REPLICAS
                ? Accumulation.EACH_TIME : accumulation;
    }

    static float[][] trained(int steps, int shards, int replicas, int microBatches, Accumulation accumulation) {
        Alone alone = new Alone(shards, replicas, microBatches, accumulation);
        for (int step = 0; step < steps; step++) {
            alone.step(step);
        }
        return alone.parameters;
    }

    private static float[][] zerosLike(float[][] values) {
        float[][] made = new float[values.length][];
        for (int i = 0; i < values.length; i++) {
            made[i] = new float[values[i].length];
        }
        return made;
    }

    private float[][] gradients(int step, int microBatch, int rank) {
        float[][][] seen = new float[Network.LAYERS + 1][][];
        float[][][] before = new float[Network.LAYERS][][];
        seen[0] = Network.inputs(step, microBatch, rank);
        for (int layer = 0; layer < Network.LAYERS; layer++) {
            before[layer] = Network.forward(layer, seen[layer], parameters[2 * layer], parameters[2 * layer + 1]);
            seen[layer + 1] = layer + 1 == Network.LAYERS ? before[layer] : Network.rectified(before[layer]);
        }
        float[][] made = new float[2 * Network.LAYERS][];
        float[][] grad = Network.lossGradient(seen[Network.LAYERS], Network.targets(step, microBatch, rank));
        for (int layer = Network.LAYERS - 1; layer >= 0; layer--) {
            if (layer + 1 < Network.LAYERS) {
                Network.rectifyGradient(grad, before[layer]);
            }
            made[2 * layer] = Network.weightGradient(layer, grad, seen[layer]);
            made[2 * layer + 1] = Network.biasGradient(layer, grad);
            grad = Network.inputGradient(layer, grad, parameters[2 * layer]);
        }
        return made;
    }

    /** The first operand may be null: then the second. */
    static float[][] added(float[][] sum, float[][] more) {
        if (sum == null) {
            return more;
        }
        float[][] made = zerosLike(sum);
        for (int i = 0; i < made.length; i++) {
            for (int n = 0; n < made[i].length; n++) {
                made[i][n] = sum[i][n] + more[i][n];
            }
        }
        return made;
    }

    private float[][] mean(float[][] sum) {
        float share = (float) (1.0 / (shards * replicas));
        float[][] made = zerosLike(sum);
        for (int i = 0; i < made.length; i++) {
            for (int n = 0; n < made[i].length; n++) {
                made[i][n] = sum[i][n] * share;
            }
        }
        return made;
    }

    /** Over the shard axis of a replica, of some micro-batches together. */
    private float[][] ofShards(int step, int replica, int begin, int end) {
        float[][] sum = null;
        for (int shard = 0; shard < shards; shard++) {
            float[][] own = null;
            for (int microBatch = begin; microBatch < end; microBatch++) {
                own = added(own, gradients(step, microBatch, replica * shards + shard));
            }
            sum = added(sum, own);
        }
        return sum;
    }

    /** Of a replica: what it has when the replicas meet. */
    private float[][] ofReplica(int step, int replica) {
        if (accumulation == Accumulation.ONCE) {
            return ofShards(step, replica, 0, microBatches);
        }
        float[][] partial = null;
        for (int microBatch = 0; microBatch < microBatches; microBatch++) {
            partial = added(partial, ofShards(step, replica, microBatch, microBatch + 1));
        }
        return partial;
    }

    private float[][] eachTime(int step) {
        float[][] grad = null;
        for (int microBatch = 0; microBatch < microBatches; microBatch++) {
            float[][] sum = null;
            for (int replica = 0; replica < replicas; replica++) {
                sum = added(sum, ofShards(step, replica, microBatch, microBatch + 1));
            }
            grad = added(grad, mean(sum));
        }
        return grad;
    }

    private float[][] once(int step) {
        float[][] sum = null;
        for (int replica = 0; replica < replicas; replica++) {
            sum = added(sum, ofReplica(step, replica));
        }
        return mean(sum);
    }

    void step(int step) {
        float[][] grad = accumulation == Accumulation.EACH_TIME ? eachTime(step) : once(step);
        for (int i = 0; i < parameters.length; i++) {
            Network.update(parameters[i], momenta[i], grad[i]);
        }
    }
}
