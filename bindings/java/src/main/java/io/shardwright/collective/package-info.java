// SPDX-License-Identifier: Apache-2.0
// What the package is for.
/** Transports between ranks, and those that a host brings. */
package io.shardwright.collective;
