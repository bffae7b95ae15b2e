// SPDX-License-Identifier: Apache-2.0
// Values of the option preset.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Planner behaviour. */
public enum Preset {
    /** That of this library. */
    NATIVE(shw_nativeConstants.SHW_PRESET_NATIVE),
    /** That of HyperParallel's standard planners. */
    HYPERPARALLEL(shw_nativeConstants.SHW_PRESET_HYPERPARALLEL),
    /** That of the default planners of torch.distributed.checkpoint. */
    TORCH(shw_nativeConstants.SHW_PRESET_TORCH),
    /** That of Megatron-core's fully parallel save. */
    MEGATRON(shw_nativeConstants.SHW_PRESET_MEGATRON);

    private final int number;

    Preset(int number) {
        this.number = number;
    }

    /**
     * Number of the value in the C interface.
     *
     * @return the number
     */
    public int number() {
        return number;
    }

    /**
     * From the word that all languages use.
     *
     * @param word e.g. {@code native}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Preset of(String word) {
        return Words.named("preset", word, values());
    }

    /**
     * The word that all languages use.
     *
     * @return the word
     */
    public String word() {
        return Words.of(this);
    }
}
