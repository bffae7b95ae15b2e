// SPDX-License-Identifier: Apache-2.0
// Kind of memorys.
package io.shardwright.hsdp;

import io.shardwright.internal.shw_nativeConstants;

/** What memory of a unit is for. */
public enum MemoryKind {
    /** Parameters of this rank. */
    SHARD(shw_nativeConstants.SHW_HSDP_MEMORY_SHARD),
    /** The same in the dtype that travels. */
    CAST(shw_nativeConstants.SHW_HSDP_MEMORY_CAST),
    /** Shards of all ranks. */
    GATHERED(shw_nativeConstants.SHW_HSDP_MEMORY_GATHERED),
    /** Whole parameters. */
    PARAMS(shw_nativeConstants.SHW_HSDP_MEMORY_PARAMS),
    /** Whole gradients, summed on this rank. */
    LOCAL_GRADS(shw_nativeConstants.SHW_HSDP_MEMORY_LOCAL_GRADS),
    /** Gradients as parts for all ranks. */
    PACKED(shw_nativeConstants.SHW_HSDP_MEMORY_PACKED),
    /** Parts of all ranks before they are added. */
    LANDING(shw_nativeConstants.SHW_HSDP_MEMORY_LANDING),
    /** Their sum. */
    SCATTERED(shw_nativeConstants.SHW_HSDP_MEMORY_SCATTERED),
    /** The same, waiting for the replicas. */
    PARTIAL(shw_nativeConstants.SHW_HSDP_MEMORY_PARTIAL),
    /** The part of gathered parameters that is kept from forward to backward. */
    SECONDARY(shw_nativeConstants.SHW_HSDP_MEMORY_SECONDARY),
    /** The gradient of the shard. */
    SHARD_GRADS(shw_nativeConstants.SHW_HSDP_MEMORY_SHARD_GRADS),
    /** All of these. */
    ALL(shw_nativeConstants.SHW_HSDP_MEMORY_ALL);

    private final int number;

    MemoryKind(int number) {
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
