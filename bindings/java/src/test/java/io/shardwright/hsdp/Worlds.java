// SPDX-License-Identifier: Apache-2.0
// Meshes of ranks that are threads.
package io.shardwright.hsdp;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;

/** Communicators along the axes of a mesh, and a thread for each rank. */
final class Worlds {
    private Worlds() {}

    /** Ends of several ranks. */
    interface Transport extends IntFunction<List<Communicator>> {}

    /** What a rank does. */
    interface Body<T> {
        T run(int rank) throws Exception;
    }

    static List<HsdpMesh> meshes(int shards) {
        return meshes(shards, 1, Communicator::threads);
    }

    /** A mesh for each rank; with replicas they are the first axis. */
    static List<HsdpMesh> meshes(int shards, int replicas, Transport transport) {
        List<HsdpMesh> made = new ArrayList<>();
        for (int rank = 0; rank < shards * replicas; rank++) {
            made.add(replicas == 1 ? HsdpMesh.of(rank, shards) : HsdpMesh.of(rank, replicas, shards));
        }
        int shardAxis = replicas == 1 ? 0 : 1;
        for (int replica = 0; shards > 1 && replica < replicas; replica++) {
            List<Communicator> ends = transport.apply(shards);
            for (int shard = 0; shard < shards; shard++) {
                give(made.get(replica * shards + shard), shardAxis, ends.get(shard));
            }
        }
        for (int shard = 0; replicas > 1 && shard < shards; shard++) {
            List<Communicator> ends = transport.apply(replicas);
            for (int replica = 0; replica < replicas; replica++) {
                give(made.get(replica * shards + shard), 0, ends.get(replica));
            }
        }
        return made;
    }

    /** The mesh keeps it. */
    private static void give(HsdpMesh mesh, int axis, Communicator end) {
        mesh.setCommunicator(axis, end);
        end.close();
    }

    /** Runs a thread per rank; what they gave, by rank. */
    static <T> List<T> onRanks(int count, Body<T> body) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(count);
        try {
            List<Future<T>> started = new ArrayList<>();
            for (int rank = 0; rank < count; rank++) {
                int own = rank;
                started.add(threads.submit(() -> body.run(own)));
            }
            List<T> found = new ArrayList<>();
            for (Future<T> each : started) {
                found.add(result(each));
            }
            return found;
        } finally {
            threads.shutdownNow();
        }
    }

    private static <T> T result(Future<T> rank) throws Exception {
        try {
            return rank.get(60, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Exception) {
                throw (Exception) e.getCause();
            }
            throw (Error) e.getCause();
        }
    }
}
