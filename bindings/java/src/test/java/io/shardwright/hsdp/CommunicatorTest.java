// SPDX-License-Identifier: Apache-2.0
// Communicators and their operations.
package io.shardwright.hsdp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.shardwright.DType;
import io.shardwright.collective.Collective;
import io.shardwright.errors.AbortedException;
import io.shardwright.errors.CancelledException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.StatusCode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CommunicatorTest {
    private static ByteBuffer floats(float... values) {
        ByteBuffer made = ByteBuffer.allocateDirect(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        made.asFloatBuffer().put(values);
        return made;
    }

    private static List<Float> read(ByteBuffer buffer) {
        FloatBuffer values = buffer.order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
        List<Float> found = new ArrayList<>();
        while (values.hasRemaining()) {
            found.add(values.get());
        }
        return found;
    }

    private static void await(Work work) {
        try (work) {
            work.await();
            assertTrue(work.isDone());
        }
    }

    private static List<List<Float>> everyOperation(Communicator end) {
        float rank = end.rank();
        ByteBuffer own = floats(rank + 1, 10 * rank);
        ByteBuffer gathered = floats(new float[4]);
        ByteBuffer part = floats(new float[1]);
        ByteBuffer total = floats(rank + 1, 10 * rank);
        ByteBuffer swapped = floats(new float[2]);
        ByteBuffer sent = floats(rank + 1, 10 * rank);
        await(end.allGather(DType.FLOAT32, own, gathered, null));
        await(end.reduceScatter(DType.FLOAT32, own, part, TensorReduction.SUM, 1, null));
        await(end.allReduce(DType.FLOAT32, total, TensorReduction.SUM, 1, null));
        await(end.allToAll(DType.FLOAT32, own, swapped, null));
        await(end.broadcast(DType.FLOAT32, sent, 1, null));
        await(end.barrier(null));
        return List.of(read(gathered), read(part), read(total), read(swapped), read(sent));
    }

    private static void operate(List<Communicator> ends) throws Exception {
        List<List<List<Float>>> found = Worlds.onRanks(2, rank -> everyOperation(ends.get(rank)));
        assertEquals(List.of(List.of(1f, 0f, 2f, 10f), List.of(3f), List.of(3f, 10f), List.of(1f, 2f), List.of(2f, 10f)),
                found.get(0));
        assertEquals(List.of(List.of(1f, 0f, 2f, 10f), List.of(10f), List.of(3f, 10f), List.of(0f, 10f), List.of(2f, 10f)),
                found.get(1));
        ends.forEach(Communicator::close);
    }

    @Test
    void threadsMoveAndReduce() throws Exception {
        operate(Communicator.threads(2));
    }

    @Test
    void aCollectiveMovesAndReduces() throws Exception {
        List<Collective> collectives = Collective.threads(2);
        List<Communicator> ends = collectives.stream().map(Communicator::over).toList();
        collectives.forEach(Collective::close);
        operate(ends);
    }

    @Test
    void aTransportInJavaMovesAndTheLibraryReduces() throws Exception {
        operate(JavaTeam.ends(2));
    }

    @Test
    void aTransportInJavaReducesAndBroadcastsItself() throws Exception {
        operate(JavaTeam.completeEnds(2));
        List<Communicator> ends = JavaTeam.completeEnds(2);
        String said = assertThrows(RuntimeException.class, () -> Worlds.onRanks(2, rank -> {
            await(ends.get(rank).allReduce(DType.FLOAT32, floats(1), TensorReduction.MAX, 1, null));
            return null;
        })).getMessage();
        assertTrue(said.contains("this team only adds"), said);
        ends.forEach(Communicator::close);
    }

    @Test
    void aTransportInJavaSaysWhatHasNotEnded() {
        List<Communicator> ends = JavaTeam.ends(2);
        ByteBuffer first = floats(0, 0);
        ByteBuffer second = floats(0, 0);
        try (Work work = ends.get(0).allGather(DType.FLOAT32, floats(1), first, null)) {
            assertFalse(work.isDone());
            assertFalse(work.await(Duration.ofMillis(1)));
            try (Work other = ends.get(1).allGather(DType.FLOAT32, floats(2), second, null)) {
                assertTrue(other.isDone());
            }
            assertTrue(work.await(Duration.ofSeconds(30)));
        }
        assertEquals(List.of(read(first), read(second)), List.of(List.of(1f, 2f), List.of(1f, 2f)));
        ends.forEach(Communicator::close);
    }

    @Test
    void otherReductions() throws Exception {
        List<Communicator> ends = Communicator.threads(2);
        List<List<Float>> found = Worlds.onRanks(2, rank -> {
            List<Float> results = new ArrayList<>();
            for (TensorReduction op : TensorReduction.values()) {
                ByteBuffer data = floats(rank == 0 ? 2 : 6);
                await(ends.get(rank).allReduce(DType.FLOAT32, data, op, 0.25, null));
                results.addAll(read(data));
            }
            return results;
        });
        assertEquals(List.of(8f, 4f, 2f, 6f, 2f), found.get(0));
        assertEquals(found.get(0), found.get(1));
        ends.forEach(Communicator::close);
    }

    @Test
    void anEndTellsWhatItIs() {
        try (Communicator fake = Communicator.fake(1, 3)) {
            assertEquals(List.of(1, 3, "fake"), List.of(fake.rank(), fake.size(), fake.name()));
            assertTrue(fake.toString().contains("rank 1 of 3"), fake.toString());
        }
        List<Communicator> ends = Communicator.threads(1);
        assertTrue(ends.get(0).capabilities().contains(CommunicatorCapability.ORDERED_SUM));
        ends.get(0).close();
        assertThrows(IllegalStateException.class, ends.get(0)::rank);
    }

    @Test
    void aDelayedLinkTakesItsTime() {
        try (Communicator inner = Communicator.fake(0, 2);
                Communicator link = Communicator.delayed(inner, Duration.ofMillis(2), 0)) {
            long begin = System.nanoTime();
            await(link.barrier(null));
            assertTrue(System.nanoTime() - begin >= 2_000_000);
        }
    }

    @Test
    void whatIsWrongIsNamed() {
        assertThrows(InvalidArgumentException.class, () -> Communicator.threads(0));
        assertThrows(InvalidArgumentException.class, () -> Communicator.fake(3, 3));
        try (Communicator end = Communicator.fake(0, 2)) {
            assertThrows(InvalidArgumentException.class, () -> Communicator.delayed(end, Duration.ofSeconds(-1), 0));
            String heap = assertThrows(InvalidArgumentException.class,
                    () -> end.allGather(DType.FLOAT32, ByteBuffer.allocate(4), floats(0, 0), null)).getMessage();
            assertTrue(heap.contains("must be a direct buffer"), heap);
            assertThrows(InvalidArgumentException.class,
                    () -> end.allReduce(DType.FLOAT32, floats(1).asReadOnlyBuffer(), TensorReduction.SUM, 1, null));
            String size = assertThrows(InvalidArgumentException.class,
                    () -> end.allGather(DType.FLOAT32, floats(1), floats(0), null)).getMessage();
            assertTrue(size.contains("8"), size);
            assertThrows(InvalidArgumentException.class, () -> end.allGather(DType.of(0), floats(1), floats(0, 0), null));
        }
    }

    @Test
    void ranksOutOfStepAreTold() throws Exception {
        List<Communicator> ends = Communicator.threads(2);
        AbortedException said = assertThrows(AbortedException.class, () -> Worlds.onRanks(2, rank -> {
            await(rank == 0 ? ends.get(0).barrier(null) : ends.get(1).broadcast(DType.FLOAT32, floats(1), 0, null));
            return null;
        }));
        assertTrue(said.details().keySet().containsAll(List.of("rank", "expected", "found")), said.details().toString());
        ends.forEach(Communicator::close);
    }

    @Test
    void anAbortWakesWhoWaits() throws Exception {
        List<Communicator> ends = Communicator.threads(2);
        try (Work work = ends.get(0).barrier(null)) {
            assertFalse(work.isDone());
            assertFalse(work.await(Duration.ofMillis(5)));
            ends.get(1).abort(StatusCode.UNAVAILABLE, "the host gave up");
            String said = assertThrows(RuntimeException.class, work::await).getMessage();
            assertTrue(said.contains("the host gave up"), said);
            assertThrows(RuntimeException.class, work::isDone);
        }
        ends.forEach(Communicator::close);
    }

    @Test
    void anInterruptEndsAWaitAndTheOperationGoesOn() {
        List<Communicator> ends = Communicator.threads(2);
        try (Work work = ends.get(0).barrier(null)) {
            Thread.currentThread().interrupt();
            assertThrows(CancelledException.class, () -> work.await(Duration.ofSeconds(5)));
            assertTrue(Thread.interrupted(), "the interrupt was lost");
            try (Work other = ends.get(1).barrier(null)) {
                other.await();
            }
            work.await();
        }
        ends.forEach(Communicator::close);
    }

    @Test
    void anInterruptOfAnotherThreadIsNoticed() throws Exception {
        List<Communicator> ends = Communicator.threads(2);
        try (Work work = ends.get(0).barrier(null)) {
            Thread waiting = new Thread(
                    () -> assertThrows(CancelledException.class, () -> work.await(Duration.ofSeconds(5))));
            List<Throwable> failures = new ArrayList<>();
            waiting.setUncaughtExceptionHandler((thread, failure) -> failures.add(failure));
            waiting.start();
            waiting.interrupt();
            waiting.join(30_000);
            assertFalse(waiting.isAlive());
            assertEquals(List.of(), failures);
        }
        ends.forEach(Communicator::close);
    }
}
