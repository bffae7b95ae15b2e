// SPDX-License-Identifier: Apache-2.0
// What one rank says for a global plan.
package io.shardwright.planning;

/**
 * What one rank says; ranks that differ only by their place in a mesh say the same.
 *
 * @param description a plan buffer that names no rank
 * @param digest 16 bytes that stand for it
 * @param part a plan buffer of what only this rank knows: boxes without a layout, sizes of rank_local objects; empty when
 *     there is nothing
 */
public record Description(byte[] description, byte[] digest, byte[] part) {}
