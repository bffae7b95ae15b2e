// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/** What a rank holds of a tensor: layouts over meshes, grid shards, boxes. */
package io.shardwright.layout;
