// SPDX-License-Identifier: Apache-2.0
// Values of the option format.
package io.shardwright;

/** Format of what is written, or expected. */
public enum Format {
    /** Native when saving, what is recognised when loading. */
    AUTO(shw_nativeConstants.SHW_FORMAT_AUTO),
    /** The format of this library. */
    NATIVE(shw_nativeConstants.SHW_FORMAT_NATIVE),
    /** torch.distributed.checkpoint. */
    TORCH_DCP(shw_nativeConstants.SHW_FORMAT_TORCH_DCP);

    private final int number;

    Format(int number) {
        this.number = number;
    }

    int number() {
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
