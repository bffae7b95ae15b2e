// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/** Where checkpoints lie, and storages that a host brings. */
package io.shardwright.storage;
