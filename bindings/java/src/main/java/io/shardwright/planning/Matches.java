// SPDX-License-Identifier: Apache-2.0
// Common parts of wanted boxes and chunks.
package io.shardwright.planning;

/**
 * One row per common part of a wanted box and a chunk, grouped by wanted entry. A stored object is one row without
 * dimensions.
 *
 * @param wanted number of the wanted box
 * @param chunks number of the chunk in its tensor
 * @param wantedOffsets where the part begins in the wanted box; as many values per row as the tensor has dimensions
 * @param storedOffsets where it begins in the chunk
 * @param sizes its sizes
 * @param entryBegins first row of each entry, and the end
 */
public record Matches(long[] wanted, long[] chunks, long[] wantedOffsets, long[] storedOffsets, long[] sizes,
        long[] entryBegins) {}
