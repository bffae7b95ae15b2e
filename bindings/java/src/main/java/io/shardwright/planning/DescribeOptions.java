// SPDX-License-Identifier: Apache-2.0
// Options of describing entries.
package io.shardwright.planning;

import io.shardwright.Kind;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Options of {@link Planning#describe} and {@link GlobalPlan#describe}, with the names and defaults that all languages
 * share. Not thread-safe while it is being filled.
 */
public final class DescribeOptions {
    private Described kind = Described.LOCAL_SAVE;
    private int rank;
    private int worldSize;
    private final List<String> globs = new ArrayList<>();
    private final List<Kind> globKinds = new ArrayList<>();
    private String agreement = "";

    /** All defaults. */
    public DescribeOptions() {}

    /**
     * What the entries describe; descriptions for a global plan are always of a rank.
     *
     * @param value the value
     * @return this
     */
    public DescribeOptions kind(Described value) {
        this.kind = Objects.requireNonNull(value, "kind");
        return this;
    }

    /**
     * The rank that holds the entries.
     *
     * @param value the value
     * @return this
     */
    public DescribeOptions rank(int value) {
        this.rank = value;
        return this;
    }

    /**
     * Ranks of the job; 0 = not known: such a plan is merged at any place and gets its place for its rank.
     *
     * @param value the value
     * @return this
     */
    public DescribeOptions worldSize(int value) {
        this.worldSize = value;
        return this;
    }

    /**
     * Adds the kind of the names that a glob matches; the first match wins.
     *
     * @param glob pattern over names
     * @param value who holds them
     * @return this
     */
    public DescribeOptions kinds(String glob, Kind value) {
        globs.add(Objects.requireNonNull(glob, "glob"));
        globKinds.add(Objects.requireNonNull(value, "kind"));
        return this;
    }

    /**
     * Lines "option=value" that all ranks must have alike.
     *
     * @param value the value
     * @return this
     */
    public DescribeOptions agreement(String value) {
        this.agreement = Objects.requireNonNull(value, "agreement");
        return this;
    }

    Structs.DescribeOptions struct() {
        Structs.DescribeOptions struct = new Structs.DescribeOptions();
        struct.kind = kind == Described.LOCAL_SAVE ? 0 : kind.number();
        struct.rank = rank;
        struct.worldSize = worldSize;
        Text.Blob blob = Text.Blob.ofTexts(globs);
        struct.kindGlobs = blob.bytes;
        struct.kindOffsets = blob.offsets;
        struct.kindValues = globKinds.stream().mapToInt(Kind::number).toArray();
        struct.kindCount = globs.size();
        struct.agreement = Text.bytes(agreement);
        return struct;
    }
}
