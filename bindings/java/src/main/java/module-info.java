// SPDX-License-Identifier: Apache-2.0
// What programs see of the library.
/** Saves, loads and reshards sharded training checkpoints; see {@link io.shardwright.Shardwright}. */
module io.shardwright {
    exports io.shardwright;
    exports io.shardwright.collective;
    exports io.shardwright.errors;
    exports io.shardwright.estimate;
    exports io.shardwright.hsdp;
    exports io.shardwright.layout;
    exports io.shardwright.planning;
    exports io.shardwright.storage;
}
