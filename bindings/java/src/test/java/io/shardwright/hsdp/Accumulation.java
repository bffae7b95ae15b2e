// SPDX-License-Identifier: Apache-2.0
// What happens to gradients between micro-batches.
package io.shardwright.hsdp;

/** The rows of the table in docs/hsdp.md. */
enum Accumulation {
    /** Both sums travel each time. */
    EACH_TIME,
    /** The sum over the shard axis travels each time, that over the replicas once. */
    ONCE_OVER_REPLICAS,
    /** Nothing travels before the last micro-batch. */
    ONCE;

    void set(Hsdp hsdp, boolean isLast) {
        hsdp.setIsLastBackward(isLast);
        if (this == ONCE_OVER_REPLICAS) {
            hsdp.setRequiresAllReduce(isLast);
        } else if (this == ONCE) {
            hsdp.setRequiresGradientSync(isLast);
        }
    }
}
