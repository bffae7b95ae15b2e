// SPDX-License-Identifier: Apache-2.0
// One step of an exchange.
package io.shardwright;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * One round of one rank: a direct buffer for each rank, empty where there is nothing to move. They lie in memory of the
 * library that later rounds use again: once the round has ended, they must be neither read nor written. That memory stays
 * until the exchange is closed and no buffer can be reached any more.
 */
public final class ExchangeRound {
    private final List<ByteBuffer> outgoing;
    private final List<ByteBuffer> incoming;

    ExchangeRound(List<ByteBuffer> outgoing, List<ByteBuffer> incoming) {
        this.outgoing = outgoing;
        this.incoming = incoming;
    }

    /** Cuts memory into the parts of the ranks. */
    static List<ByteBuffer> parts(ByteBuffer whole, long[] sizes, int first, int count) {
        List<ByteBuffer> parts = new ArrayList<>(count);
        int begin = 0;
        for (int rank = 0; rank < count; rank++) {
            int size = Math.toIntExact(sizes[first + rank]);
            parts.add(whole.slice(begin, size).order(ByteOrder.nativeOrder()));
            begin += size;
        }
        return Collections.unmodifiableList(parts);
    }

    /**
     * What goes to each rank.
     *
     * @return read-only buffers by rank
     */
    public List<ByteBuffer> outgoing() {
        return outgoing;
    }

    /**
     * To be filled with what each rank has for this one.
     *
     * @return buffers by rank; only their content counts, not where their positions are
     */
    public List<ByteBuffer> incoming() {
        return incoming;
    }
}
