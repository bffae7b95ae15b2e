// SPDX-License-Identifier: Apache-2.0
// Options of matching wanted boxes with chunks.
package io.shardwright.planning;

import io.shardwright.Missing;
import io.shardwright.Report;
import io.shardwright.internal.Structs;
import io.shardwright.internal.shw_nativeConstants;
import java.util.Objects;

/**
 * Options of {@link Planning#match}, with the names and defaults that all languages share. Not thread-safe while it is being
 * filled.
 */
public final class MatchOptions {
    private MatchOrder order = MatchOrder.WANTED;
    private Cover cover = Cover.FULL;
    private Missing missing = Missing.ERROR;
    private boolean firstReplica;
    private Integer rank;

    /** All defaults. */
    public MatchOptions() {}

    /**
     * Order of the matches.
     *
     * @param value the value
     * @return this
     */
    public MatchOptions order(MatchOrder value) {
        this.order = Objects.requireNonNull(value, "order");
        return this;
    }

    /**
     * How often a wanted box is filled: exactly once, at most once, or not looked at.
     *
     * @param value the value
     * @return this
     */
    public MatchOptions cover(Cover value) {
        this.cover = Objects.requireNonNull(value, "cover");
        return this;
    }

    /**
     * Report = names that are not stored have no matches.
     *
     * @param value the value
     * @return this
     */
    public MatchOptions missing(Missing value) {
        this.missing = Objects.requireNonNull(value, "missing");
        return this;
    }

    /**
     * Of chunks with equal boxes only the first counts.
     *
     * @param value the value
     * @return this
     */
    public MatchOptions firstReplica(boolean value) {
        this.firstReplica = value;
        return this;
    }

    /**
     * Who wants: its rank_local entries are found, before shared ones of their name. Otherwise only shared ones are.
     *
     * @param value a rank
     * @return this
     */
    public MatchOptions rank(int value) {
        this.rank = value;
        return this;
    }

    Structs.MatchOptions struct() {
        Structs.MatchOptions struct = new Structs.MatchOptions();
        struct.flags = (firstReplica ? shw_nativeConstants.SHW_MATCH_FIRST_REPLICA : 0)
                | (rank != null ? shw_nativeConstants.SHW_MATCH_RANK : 0);
        struct.order = order.number();
        struct.cover = cover.number();
        struct.missing = missing.number();
        struct.rank = rank != null ? rank : 0;
        return struct;
    }
}
