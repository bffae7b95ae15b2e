// SPDX-License-Identifier: Apache-2.0
// Ranks that fail on their way to a call of all ranks.
package io.shardwright;

import io.shardwright.collective.Collective;
import io.shardwright.errors.ShardwrightException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;


@Timeout(120)
class DeclinedTest {
    @TempDir
    Path folder;

    /** A call of one rank over its collective. */
    private interface Call {
        void run(Collective end, Context context, State state) throws Exception;
    }

    private static State weights() {
        return State.builder().add("w", new float[] {1, 2}).build();
    }

    /** Rank 0 calls with a good state, rank 1 with one that is closed; gives what rank 0 heard. */
    private static ShardwrightException declined(Call call) throws InterruptedException {
        List<Collective> ends = Collective.threads(2);
        AtomicReference<Throwable> heard = new AtomicReference<>();
        Thread good = new Thread(() -> {
            try (Context context = Context.builder().build(); State state = weights()) {
                call.run(ends.get(0), context, state);
            } catch (Throwable e) {
                heard.set(e);
            }
        });
        good.start();
        Throwable thrown = null;
        try (Context context = Context.builder().build()) {
            State closed = weights();
            closed.close();
            call.run(ends.get(1), context, closed);
        } catch (Exception e) {
            thrown = e;
        }
        good.join();
        ends.forEach(Collective::close);
        assertNotNull(thrown, "a closed state cannot be used");
        return assertInstanceOf(ShardwrightException.class, heard.get());
    }

    private void assertDeclined(Call call) throws InterruptedException {
        assertEquals("1", declined(call).details().get("rank"));
    }

    @Test
    void aClosedStateOfOneRankEndsTheCallOnTheOther() throws InterruptedException {
        Path path = folder.resolve("c");
        try (State state = weights()) {
            Shardwright.save(state, path, new SaveOptions());
        }
        assertDeclined((end, context, state) ->
                Shardwright.save(state, path, new SaveOptions().collective(end).context(context)));
        assertDeclined((end, context, state) ->
                Shardwright.loadInto(state, path, new LoadOptions().collective(end).context(context)));
        assertDeclined((end, context, state) -> {
            try (Job job = Shardwright.saveAsync(state, path, new SaveOptions().collective(end).context(context))) {
                job.await();
            }
        });
        assertDeclined((end, context, state) -> {
            try (Job job = Shardwright.loadAsync(state, path, new LoadOptions().collective(end).context(context))) {
                job.await();
            }
        });
    }
}
