// SPDX-License-Identifier: Apache-2.0
// A small network with gradients by hand, whose numbers are those of tests/bindings/hsdp.json.
package io.shardwright.hsdp;

/** Widths 13, 37, 29, 3; float32 throughout, each product and sum rounded, in the order that is written. */
final class Network {
    static final int[] WIDTHS = {13, 37, 29, 3};
    static final int LAYERS = WIDTHS.length - 1;
    static final int SAMPLES = 4;

    private Network() {}

    static int inputs(int layer) {
        return WIDTHS[layer];
    }

    static int outputs(int layer) {
        return WIDTHS[layer + 1];
    }

    /** Row-major, outputs x inputs. */
    static float[] firstWeight(int layer) {
        float[] made = new float[outputs(layer) * inputs(layer)];
        for (int n = 0; n < made.length; n++) {
            made[n] = (((n * 37 + layer * 11) % 41) - 20) / 128f;
        }
        return made;
    }

    static float[] firstBias(int layer) {
        float[] made = new float[outputs(layer)];
        for (int n = 0; n < made.length; n++) {
            made[n] = (((n * 29 + layer * 7) % 31) - 15) / 256f;
        }
        return made;
    }

    /** Weight and bias of each layer. */
    static float[][] firstParameters() {
        float[][] made = new float[2 * LAYERS][];
        for (int layer = 0; layer < LAYERS; layer++) {
            made[2 * layer] = firstWeight(layer);
            made[2 * layer + 1] = firstBias(layer);
        }
        return made;
    }

    static float[][] inputs(int step, int microBatch, int rank) {
        float[][] made = new float[SAMPLES][WIDTHS[0]];
        for (int b = 0; b < SAMPLES; b++) {
            for (int k = 0; k < WIDTHS[0]; k++) {
                made[b][k] = (((step * 31 + microBatch * 17 + rank * 13 + b * 7 + k * 5) % 23) - 11) / 16f;
            }
        }
        return made;
    }

    static float[][] targets(int step, int microBatch, int rank) {
        float[][] made = new float[SAMPLES][WIDTHS[LAYERS]];
        for (int b = 0; b < SAMPLES; b++) {
            for (int k = 0; k < WIDTHS[LAYERS]; k++) {
                made[b][k] = (((step * 19 + microBatch * 5 + rank * 3 + b * 11 + k * 13) % 17) - 8) / 16f;
            }
        }
        return made;
    }

    /** Before the activation. */
    static float[][] forward(int layer, float[][] x, float[] weight, float[] bias) {
        float[][] y = new float[SAMPLES][outputs(layer)];
        for (int b = 0; b < SAMPLES; b++) {
            for (int j = 0; j < outputs(layer); j++) {
                float sum = bias[j];
                for (int k = 0; k < inputs(layer); k++) {
                    sum = sum + x[b][k] * weight[j * inputs(layer) + k];
                }
                y[b][j] = sum;
            }
        }
        return y;
    }

    static float[][] rectified(float[][] y) {
        float[][] made = new float[y.length][];
        for (int b = 0; b < y.length; b++) {
            made[b] = y[b].clone();
            for (int j = 0; j < made[b].length; j++) {
                made[b][j] = made[b][j] > 0 ? made[b][j] : 0;
            }
        }
        return made;
    }

    /** Gradient of what was rectified. */
    static void rectifyGradient(float[][] grad, float[][] before) {
        for (int b = 0; b < grad.length; b++) {
            for (int j = 0; j < grad[b].length; j++) {
                grad[b][j] = before[b][j] > 0 ? grad[b][j] : 0;
            }
        }
    }

    static float[][] lossGradient(float[][] y, float[][] target) {
        float[][] grad = new float[SAMPLES][y[0].length];
        for (int b = 0; b < SAMPLES; b++) {
            for (int j = 0; j < grad[b].length; j++) {
                grad[b][j] = (y[b][j] - target[b][j]) * 0.25f;
            }
        }
        return grad;
    }

    static float[] weightGradient(int layer, float[][] grad, float[][] x) {
        float[] made = new float[outputs(layer) * inputs(layer)];
        for (int j = 0; j < outputs(layer); j++) {
            for (int k = 0; k < inputs(layer); k++) {
                float sum = 0;
                for (int b = 0; b < SAMPLES; b++) {
                    sum = sum + grad[b][j] * x[b][k];
                }
                made[j * inputs(layer) + k] = sum;
            }
        }
        return made;
    }

    static float[] biasGradient(int layer, float[][] grad) {
        float[] made = new float[outputs(layer)];
        for (int j = 0; j < made.length; j++) {
            for (int b = 0; b < SAMPLES; b++) {
                made[j] = made[j] + grad[b][j];
            }
        }
        return made;
    }

    static float[][] inputGradient(int layer, float[][] grad, float[] weight) {
        float[][] made = new float[SAMPLES][inputs(layer)];
        for (int b = 0; b < SAMPLES; b++) {
            for (int k = 0; k < inputs(layer); k++) {
                float sum = 0;
                for (int j = 0; j < outputs(layer); j++) {
                    sum = sum + grad[b][j] * weight[j * inputs(layer) + k];
                }
                made[b][k] = sum;
            }
        }
        return made;
    }

    /** v = 0.9 v + g, p = p - 0.125 v. */
    static void update(float[] parameter, float[] momentum, float[] grad) {
        for (int n = 0; n < parameter.length; n++) {
            momentum[n] = 0.9f * momentum[n] + grad[n];
            parameter[n] = parameter[n] - 0.125f * momentum[n];
        }
    }
}
