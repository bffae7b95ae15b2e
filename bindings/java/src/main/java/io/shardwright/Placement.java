// SPDX-License-Identifier: Apache-2.0
// Placements of layouts.
package io.shardwright;

/** What a mesh axis does to a tensor. Immutable. */
public final class Placement {
    /** Every rank of the axis holds all of it. */
    public static final Placement REPLICATE = new Placement(shw_nativeConstants.SHW_PLACEMENT_REPLICATE, 0);

    private final int kind;
    private final int dim;

    private Placement(int kind, int dim) {
        this.kind = kind;
        this.dim = dim;
    }

    /**
     * The tensor is split along one of its dimensions, uneven as torch.chunk does it.
     *
     * @param dim tensor dimension; negative counts from the end
     * @return the placement
     */
    public static Placement shard(int dim) {
        return new Placement(shw_nativeConstants.SHW_PLACEMENT_SHARD, dim);
    }

    int kind() {
        return kind;
    }

    int dim() {
        return dim;
    }

    @Override
    public String toString() {
        return this == REPLICATE ? "Replicate()" : "Shard(" + dim + ")";
    }
}
