// SPDX-License-Identifier: Apache-2.0
// Options of merging plans.
package io.shardwright.planning;

import io.shardwright.Owner;
import io.shardwright.Preset;
import io.shardwright.VerifyReplicas;
import io.shardwright.internal.Structs;
import java.util.Objects;

/**
 * Options of {@link Planning#merge} and {@link GlobalPlan#create}, with the names and defaults that all languages share.
 * Not thread-safe while it is being filled.
 */
public final class MergeOptions {
    private Owner owner = Owner.BALANCED;
    private Preset preset = Preset.NATIVE;
    private Cover cover = Cover.FULL;
    private VerifyReplicas verifyReplicas = VerifyReplicas.AUTO;

    /** All defaults. */
    public MergeOptions() {}

    /**
     * Who writes what several ranks hold.
     *
     * @param value the value
     * @return this
     */
    public MergeOptions owner(Owner value) {
        this.owner = Objects.requireNonNull(value, "owner");
        return this;
    }

    /**
     * Whose words the rule has: which boxes are the same, and how chunks are numbered.
     *
     * @param value the value
     * @return this
     */
    public MergeOptions preset(Preset value) {
        this.preset = Objects.requireNonNull(value, "preset");
        return this;
    }

    /**
     * What is proved about the boxes of each tensor.
     *
     * @param value the value
     * @return this
     */
    public MergeOptions cover(Cover value) {
        this.cover = Objects.requireNonNull(value, "cover");
        return this;
    }

    /**
     * Off = sizes and digests of replicas are not compared.
     *
     * @param value the value
     * @return this
     */
    public MergeOptions verifyReplicas(VerifyReplicas value) {
        this.verifyReplicas = Objects.requireNonNull(value, "verifyReplicas");
        return this;
    }

    Structs.MergeOptions struct() {
        Structs.MergeOptions struct = new Structs.MergeOptions();
        struct.owner = owner.number();
        struct.preset = preset.number();
        struct.cover = cover.number();
        struct.verifyReplicas = verifyReplicas.number();
        return struct;
    }
}
