// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/**
 * Hybrid sharded data parallel training: parameters are sharded over one axis of a mesh, gathered before they are used, and
 * their gradients summed in rank order. {@link io.shardwright.hsdp.Hsdp} is where to begin.
 */
package io.shardwright.hsdp;
