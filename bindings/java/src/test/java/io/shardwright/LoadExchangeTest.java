// SPDX-License-Identifier: Apache-2.0
// Three ranks in one process read for each other, and the test moves the bytes.
package io.shardwright;

import io.shardwright.errors.FailedPreconditionException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.storage.Storage;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** A checkpoint saved in rows is loaded in columns, and a replica. */
class LoadExchangeTest {
    private static final int RANKS = 3;
    private static final int ROWS = 1023;
    private static final int COLUMNS = 3 * 1024;
    private static final int WIDTH = COLUMNS / RANKS;
    private static final int REPLICA = 1 << 20;
    private static final long[] GLOBAL = {ROWS, COLUMNS};
    private static final long PAYLOAD = 4L * (ROWS * COLUMNS + REPLICA);

    private final List<AutoCloseable> opened = new ArrayList<>();
    private final List<float[]> columns = new ArrayList<>();
    private final List<float[]> replicas = new ArrayList<>();
    private final List<LoadPlanner> planners = new ArrayList<>();
    private final List<Plan> plans = new ArrayList<>();
    private List<Plan> exchangePlans;

    private <T extends AutoCloseable> T keep(T object) {
        opened.add(0, object);
        return object;
    }

    private static State rows(int rank) {
        int begin = ROWS * rank / RANKS;
        float[] part = new float[(ROWS * (rank + 1) / RANKS - begin) * COLUMNS];
        for (int i = 0; i < part.length; i++) {
            part[i] = begin * COLUMNS + i;
        }
        float[] replica = new float[REPLICA];
        for (int i = 0; i < REPLICA; i++) {
            replica[i] = -i;
        }
        return State.builder().add("w", HostTensor.of(part, part.length / COLUMNS, COLUMNS).partOf(GLOBAL, begin, 0))
                .add("r", replica).build();
    }

    private void save(Location location) {
        List<SavePlanner> savers = new ArrayList<>();
        List<byte[]> locals = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            savers.add(keep(SavePlanner.create(keep(rows(rank)), rank, RANKS, new SaveOptions())));
            locals.add(savers.get(rank).localPlan());
        }
        List<byte[]> parts = savers.get(0).globalPlan(locals, location);
        List<byte[]> results = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            SavePlanner saver = savers.get(rank);
            results.add(saver.execute(saver.finish(parts.get(rank)), location));
        }
        savers.get(0).commit(results);
    }

    @BeforeEach
    void plan() {
        Location location = Location.of(keep(Storage.memory()), "p");
        save(location);
        Checkpoint checkpoint = keep(Checkpoint.open(location, new OpenOptions()));
        List<Plan> wants = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            columns.add(new float[ROWS * WIDTH]);
            replicas.add(new float[REPLICA]);
            HostTensor wanted = HostTensor.of(columns.get(rank), ROWS, WIDTH).partOf(GLOBAL, 0, rank * WIDTH);
            State state = keep(State.builder().add("w", wanted).add("r", replicas.get(rank)).build());
            planners.add(keep(LoadPlanner.create(checkpoint, state, rank, new LoadOptions())));
            plans.add(planners.get(rank).localPlan());
            wants.add(planners.get(rank).wantList(plans.get(rank), RANKS));
        }
        exchangePlans = Shardwright.exchangePlans(wants);
        assertEquals(List.of(0, 1, 2), exchangePlans.stream().map(Plan::rank).toList());
    }

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable each : opened) {
            each.close();
        }
    }

    private static void move(List<ExchangeRound> rounds) {
        for (int to = 0; to < RANKS; to++) {
            for (int from = 0; from < RANKS; from++) {
                ByteBuffer sent = rounds.get(from).outgoing().get(to);
                assertTrue(sent.isReadOnly() && sent.isDirect());
                rounds.get(to).incoming().get(from).put(sent);
                assertEquals(0, rounds.get(to).incoming().get(from).remaining());
            }
        }
    }

    private boolean isLoaded(int rank) {
        return IntStream.range(0, ROWS * WIDTH)
                .allMatch(i -> columns.get(rank)[i] == i / WIDTH * COLUMNS + rank * WIDTH + i % WIDTH)
                && IntStream.range(0, REPLICA).allMatch(i -> replicas.get(rank)[i] == -i);
    }

    @Test
    void eachByteIsReadOnce() {
        List<LoadExchange> exchanges = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            exchanges.add(keep(planners.get(rank).exchange(plans.get(rank), exchangePlans.get(rank))));
            planners.get(rank).close(); // the exchange keeps what it needs
        }
        assertTrue(exchanges.get(0).roundCount() > 0);
        for (long round = 0; round < exchanges.get(0).roundCount(); round++) {
            move(exchanges.stream().map(LoadExchange::beginRound).toList());
            exchanges.forEach(LoadExchange::endRound);
        }
        long read = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            read += exchanges.get(rank).finish().bytes();
            assertTrue(isLoaded(rank), "rank " + rank);
        }
        assertTrue(PAYLOAD <= read && read <= 1.05 * PAYLOAD, read + " bytes");
    }

    @Test
    void stepsOutOfOrderAreRefused() {
        LoadExchange exchange = keep(planners.get(0).exchange(plans.get(0), exchangePlans.get(0)));
        assertThrows(FailedPreconditionException.class, exchange::endRound);
        assertThrows(FailedPreconditionException.class, exchange::finish);
        exchange.beginRound();
        assertThrows(FailedPreconditionException.class, exchange::beginRound);
        assertThrows(FailedPreconditionException.class, exchange::finish);
        exchange.close();
        assertThrows(IllegalStateException.class, exchange::beginRound);
    }

    @Test
    void plansOfOthersAreRefused() {
        LoadPlanner planner = planners.get(0);
        assertThrows(FailedPreconditionException.class, () -> planner.exchange(plans.get(0), exchangePlans.get(1)));
        assertThrows(InvalidArgumentException.class, () -> planner.exchange(plans.get(0), plans.get(0)));
        assertThrows(InvalidArgumentException.class, () -> planners.get(2).wantList(plans.get(2), 2));
        assertThrows(InvalidArgumentException.class, () -> Shardwright.exchangePlans(List.of()));
        assertThrows(InvalidArgumentException.class, () -> Shardwright.exchangePlans(plans));
    }

    @Test
    void machinesAreTextsWithoutNul() {
        Context.builder().threads(1).machine("a").build().close();
        assertThrows(InvalidArgumentException.class, () -> Context.builder().machine("a\0b"));
    }
}
