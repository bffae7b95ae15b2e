// SPDX-License-Identifier: Apache-2.0
// What a merge of local plans gives.
package io.shardwright.planning;

import java.util.List;

/**
 * The merged plan, and for each rank what it keeps of its own.
 *
 * @param plan the merged plan, a plan buffer
 * @param kept by rank: one number for each box of its local plan, as {@link Planning#entries} lists them, which is the
 *     number of the box's chunk in its tensor (0 for an object), or {@link Planning#NOT_KEPT} where another rank writes it
 */
public record Merged(byte[] plan, List<int[]> kept) {}
