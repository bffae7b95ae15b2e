// SPDX-License-Identifier: Apache-2.0
// Shards that several ranks hold.
package io.shardwright.planning;

/**
 * Shards that several ranks hold, as arrays, for {@link Planning#owners}.
 *
 * @param weights bytes of each shard
 * @param sets the set of ranks that holds each shard
 * @param setOffsets set s is holders[setOffsets[s]] to holders[setOffsets[s + 1]]
 * @param holders ranks of all sets, ascending in each
 * @param secondary shards that are chosen after all others; null = none
 */
public record HeldShards(long[] weights, int[] sets, long[] setOffsets, int[] holders, boolean[] secondary) {}
