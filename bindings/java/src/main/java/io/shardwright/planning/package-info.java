// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/** Planning by descriptions alone: no memory, no storage, no checkpoint. */
package io.shardwright.planning;
