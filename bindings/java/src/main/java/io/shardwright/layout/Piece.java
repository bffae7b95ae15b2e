// SPDX-License-Identifier: Apache-2.0
// Pieces of local tensors.
package io.shardwright.layout;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * One box that a rank holds and where it begins in the rank's local tensor. A box is a window of a local tensor that has
 * its number of dimensions, and a run of elements of any other. Immutable.
 *
 * @param box the box in the whole tensor
 * @param localOffset row-major element of the local tensor at which it begins
 */
public record Piece(Box box, long localOffset) {
    /** Pieces as the natives give them: number, boxes, local offsets. */
    static List<Piece> listOf(long[] values, int ndim) {
        List<Piece> pieces = new ArrayList<>();
        int count = Math.toIntExact(values[0]);
        for (int i = 0; i < count; i++) {
            int at = 1 + i * 2 * ndim;
            Box box = new Box(Arrays.copyOfRange(values, at, at + ndim),
                    Arrays.copyOfRange(values, at + ndim, at + 2 * ndim));
            pieces.add(new Piece(box, values[1 + count * 2 * ndim + i]));
        }
        return pieces;
    }
}
