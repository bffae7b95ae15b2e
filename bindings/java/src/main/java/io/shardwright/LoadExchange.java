// SPDX-License-Identifier: Apache-2.0
// Loads in which ranks read for each other.
package io.shardwright;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.nio.ByteBuffer;

/**
 * The exchange of one load of one rank, whose bytes the host moves; made by {@link LoadPlanner#exchange}. For each of its
 * rounds, of which all ranks have equally many, {@link #beginRound}, the movement of what is outgoing for rank r to the
 * incoming buffer of this rank there, {@link #endRound}; then {@link #finish}. Used by one thread at a time.
 */
public final class LoadExchange extends Handle {
    private final State state;

    LoadExchange(long handle, State state, Uses uses) {
        super(handle, Leak.WARN, h -> {
            shw_nativeJNI.shw_load_exchange_release(h);
            uses.close();
        });
        this.state = state;
    }

    /**
     * How many rounds there are, the same number on all ranks.
     *
     * @return 0 where nothing is exchanged
     */
    public long roundCount() {
        return with(shw_nativeJNI::shw_load_exchange_round_count);
    }

    /**
     * Begins the next round: what this rank reads for others in it is there.
     *
     * @return the buffers of the round
     * @throws ShardwrightException FAILED_PRECONDITION when the round before has not ended or there are no more; after any
     *     other the load has failed
     */
    public ExchangeRound beginRound() {
        return with(h -> {
            long[] facts = shw_nativeJNI.exchangeRound(h);
            int ranks = (int) facts[0];
            ByteBuffer outgoing = memory(facts[1], facts[2]).asReadOnlyBuffer();
            ByteBuffer incoming = memory(facts[3], facts[4]);
            return new ExchangeRound(ExchangeRound.parts(outgoing, facts, 5, ranks),
                    ExchangeRound.parts(incoming, facts, 5 + ranks, ranks));
        });
    }

    private ByteBuffer memory(long address, long size) {
        return size == 0 ? ByteBuffer.allocateDirect(0)
                : lend(h -> (ByteBuffer) shw_nativeJNI.view(address, size));
    }

    /**
     * Ends the round, whose incoming buffers are filled: what came is checked and goes to where it is wanted.
     *
     * @throws ShardwrightException DATA_LOSS when it is not what was stored, FAILED_PRECONDITION without a round
     */
    public void endRound() {
        with(shw_nativeJNI::shw_load_exchange_end_round);
    }

    /**
     * Reads what no other rank wants, once, when all rounds have ended.
     *
     * @return what was read
     */
    public Report finish() {
        Report report = with(h -> new Report(shw_nativeJNI.shw_load_exchange_finish(h)));
        state.afterLoad();
        return report;
    }
}
