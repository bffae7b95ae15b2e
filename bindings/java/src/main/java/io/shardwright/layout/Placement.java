// SPDX-License-Identifier: Apache-2.0
// Placements of layouts.
package io.shardwright.layout;

import io.shardwright.internal.shw_nativeConstants;

/** What a mesh axis does to a tensor. Immutable. */
public final class Placement {
    /** Every rank of the axis holds all of it. */
    public static final Placement REPLICATE = new Placement(shw_nativeConstants.SHW_PLACEMENT_REPLICATE, 0, 0);

    /** The row-major elements that the other axes leave are split, so that the local tensor has one dimension. */
    public static final Placement FLAT = new Placement(shw_nativeConstants.SHW_PLACEMENT_FLAT, 0, 0);

    private final int kind;
    private final int dim;
    private final int factor;

    private Placement(int kind, int dim, int factor) {
        this.kind = kind;
        this.dim = dim;
        this.factor = factor;
    }

    /**
     * The tensor is split along one of its dimensions, uneven as torch.chunk does it.
     *
     * @param dim tensor dimension; negative counts from the end
     * @return the placement
     */
    public static Placement shard(int dim) {
        return new Placement(shw_nativeConstants.SHW_PLACEMENT_SHARD, dim, 0);
    }

    /**
     * The dimension is first cut into parts, and a rank holds its part of each of them, as torch's _StridedShard does it.
     *
     * @param dim tensor dimension; negative counts from the end
     * @param factor how many parts; at least 1
     * @return the placement
     */
    public static Placement stridedShard(int dim, int factor) {
        return new Placement(shw_nativeConstants.SHW_PLACEMENT_STRIDED_SHARD, dim, factor);
    }

    int kind() {
        return kind;
    }

    int dim() {
        return dim;
    }

    int factor() {
        return factor;
    }

    @Override
    public String toString() {
        if (this == REPLICATE) {
            return "Replicate()";
        }
        if (this == FLAT) {
            return "Flat()";
        }
        return factor == 0 ? "Shard(" + dim + ")" : "StridedShard(" + dim + ", " + factor + ")";
    }
}
