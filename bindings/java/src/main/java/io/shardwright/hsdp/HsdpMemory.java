// SPDX-License-Identifier: Apache-2.0
// Memory of units.
package io.shardwright.hsdp;

import io.shardwright.internal.Structs;

/**
 * Memory that the library holds for units, or would hold.
 *
 * @param currentBytes bytes now
 * @param peakBytes the most bytes there were
 * @param currentBuffers buffers now
 * @param totalBuffers buffers that there ever were
 * @param paddingBytes of this rank's shards, part of the current bytes; told for all kinds together
 * @param unshardedUnits units that are not {@link UnitState#SHARDED} now; told for all kinds together
 */
public record HsdpMemory(long currentBytes, long peakBytes, long currentBuffers, long totalBuffers, long paddingBytes,
        long unshardedUnits) {
    static HsdpMemory of(Structs.HsdpMemory struct) {
        return new HsdpMemory(struct.currentBytes, struct.peakBytes, struct.currentBuffers, struct.totalBuffers,
                struct.paddingBytes, struct.unshardedUnits);
    }
}
