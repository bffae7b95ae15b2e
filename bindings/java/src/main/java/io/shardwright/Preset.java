// SPDX-License-Identifier: Apache-2.0
// Values of the option preset.
package io.shardwright;

/** Planner behaviour. */
public enum Preset {
    /** That of this library. */
    STANDARD(shw_nativeConstants.SHW_PRESET_STANDARD),
    /** That of the default planner of torch.distributed.checkpoint. */
    DEFAULT(shw_nativeConstants.SHW_PRESET_DEFAULT),
    /** That of Megatron-LM. */
    MEGATRON(shw_nativeConstants.SHW_PRESET_MEGATRON);

    private final int number;

    Preset(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * From the word that all languages use.
     *
     * @param word e.g. {@code standard}
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
