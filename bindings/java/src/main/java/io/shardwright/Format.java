// SPDX-License-Identifier: Apache-2.0
// Values of the option format.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.internal.Words;
import io.shardwright.internal.shw_nativeConstants;

/** Format of what is written, or expected. */
public enum Format {
    /** Native when saving, what is recognised when loading. */
    AUTO(shw_nativeConstants.SHW_FORMAT_AUTO),
    /** The format of this library. */
    NATIVE(shw_nativeConstants.SHW_FORMAT_NATIVE),
    /** torch.distributed.checkpoint. */
    TORCH_DCP(shw_nativeConstants.SHW_FORMAT_TORCH_DCP),
    /** One file when the path ends in .safetensors, else files of a directory and their index. */
    SAFETENSORS(shw_nativeConstants.SHW_FORMAT_SAFETENSORS),
    /** Megatron-core's torch_dist. */
    MEGATRON(shw_nativeConstants.SHW_FORMAT_MEGATRON);

    private final int number;

    Format(int number) {
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
     * @param word e.g. {@code auto}
     * @return the value
     * @throws InvalidArgumentException for other words
     */
    public static Format of(String word) {
        return Words.named("format", word, values());
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
