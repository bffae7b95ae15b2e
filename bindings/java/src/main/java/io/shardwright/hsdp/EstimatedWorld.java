// SPDX-License-Identifier: Apache-2.0
// Ranks of an estimate.
package io.shardwright.hsdp;

import io.shardwright.internal.Structs;
import io.shardwright.internal.shw_nativeConstants;

/**
 * Ranks along the axes of a mesh whose memory is foretold.
 *
 * @param shards ranks along the shard axis, 1 = there is none
 * @param replicas ranks along the axis of replicas, 1 = there is none
 * @param orderedSums whether communicators add in rank order by themselves, as those of threads do, without the parts of all ranks
 *     in memory of the library
 */
public record EstimatedWorld(long shards, long replicas, boolean orderedSums) {
    /**
     * Shards without replicas, whose communicators leave sums to the library.
     *
     * @param shards ranks along the shard axis
     */
    public EstimatedWorld(long shards) {
        this(shards, 1, false);
    }

    Structs.HsdpEstimateWorld struct() {
        Structs.HsdpEstimateWorld struct = new Structs.HsdpEstimateWorld();
        struct.flags = orderedSums ? shw_nativeConstants.SHW_HSDP_ESTIMATE_ORDERED_SUMS : 0;
        struct.shardSize = shards;
        struct.replicateSize = replicas;
        return struct;
    }
}
