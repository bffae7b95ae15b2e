// SPDX-License-Identifier: Apache-2.0
// The explicit form of a global plan.
package io.shardwright.planning;

import java.util.List;

/**
 * The explicit plan.
 *
 * @param plan the merged plan, a plan buffer
 * @param writeLists a plan buffer by rank
 */
public record Expanded(byte[] plan, List<byte[]> writeLists) {}
