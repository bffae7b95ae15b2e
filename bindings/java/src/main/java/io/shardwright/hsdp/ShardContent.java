// SPDX-License-Identifier: Apache-2.0
// Content of shards.
package io.shardwright.hsdp;

import io.shardwright.internal.shw_nativeConstants;

/** What a state gets of the shards. */
public enum ShardContent {
    /** Parameters. */
    PARAMS(shw_nativeConstants.SHW_HSDP_PARAMS),
    /** The gradients that are there. */
    GRADS(shw_nativeConstants.SHW_HSDP_GRADS);

    private final int number;

    ShardContent(int number) {
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
}
