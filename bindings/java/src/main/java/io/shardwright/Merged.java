// SPDX-License-Identifier: Apache-2.0
// What a merge of local plans gives.
package io.shardwright;

import java.util.List;

/**
 * The merged plan, and for each rank what it keeps of its own.
 *
 * @param plan the merged plan, a plan buffer
 * @param kept plan buffers by rank, each in the order of that rank
 */
public record Merged(byte[] plan, List<byte[]> kept) {}
