// SPDX-License-Identifier: Apache-2.0
// Trains as tests/bindings/hsdp.json says: LoopRunner hsdp.json. Prints a line per world and, at the end, "N passed, N failed".
package io.shardwright.hsdp;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.shardwright.collective.Collective;
import io.shardwright.planning.Planning;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** The program. The numbers of the loop are those of {@link Network}; its transports differ from world to world. */
public final class LoopRunner {
    private static final int MICRO_BATCHES = 2;

    private LoopRunner() {}

    /** Of all parameters in their order, as little-endian float32. */
    static String digest(float[][] parameters) {
        int count = 0;
        for (float[] each : parameters) {
            count += each.length;
        }
        ByteBuffer bytes = ByteBuffer.allocate(count * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (float[] each : parameters) {
            for (float value : each) {
                bytes.putFloat(value);
            }
        }
        return HexFormat.of().formatHex(Planning.contentDigest(bytes.array()));
    }

    /** Of one process, after each step. */
    static List<String> alone(int shards, int replicas, int steps) {
        Alone oracle = new Alone(shards, replicas, MICRO_BATCHES, Accumulation.ONCE_OVER_REPLICAS);
        List<String> found = new ArrayList<>();
        for (int step = 0; step < steps; step++) {
            oracle.step(step);
            found.add(digest(oracle.parameters));
        }
        return found;
    }

    /** Of each rank, after each step. */
    static List<List<String>> trained(int shards, int replicas, int steps, Worlds.Transport transport) throws Exception {
        List<HsdpMesh> meshes = Worlds.meshes(shards, replicas, transport);
        return Worlds.onRanks(shards * replicas, rank -> {
            List<String> found = new ArrayList<>();
            try (Trainer trainer = new Trainer(meshes.get(rank), rank, replicas > 1, new HsdpUnitOptions())) {
                for (int step = 0; step < steps; step++) {
                    trainer.step(step, MICRO_BATCHES, Accumulation.ONCE_OVER_REPLICAS);
                    found.add(digest(trainer.whole()));
                }
            }
            return found;
        });
    }

    /** Byte collectives of the library under communicators. */
    static List<Communicator> overCollectives(int size) {
        List<Communicator> made = new ArrayList<>();
        for (Collective each : Collective.threads(size)) {
            try (each) {
                made.add(Communicator.over(each));
            }
        }
        return made;
    }

    /** Threads of the library, a team that is written in Java, and collectives below communicators. */
    private static Worlds.Transport transportOf(int shards, int replicas) {
        if (replicas > 1) {
            return LoopRunner::overCollectives;
        }
        return shards == 3 ? JavaTeam::ends : Communicator::threads;
    }

    /** What differs first; empty = nothing. */
    private static String difference(List<String> wanted, List<List<String>> ofRanks) {
        for (int rank = 0; rank < ofRanks.size(); rank++) {
            for (int step = 0; step < wanted.size(); step++) {
                String found = ofRanks.get(rank).get(step);
                if (!found.equals(wanted.get(step))) {
                    return "rank " + rank + " has " + found + " after step " + step + ", expected " + wanted.get(step);
                }
            }
        }
        return "";
    }

    private static boolean passes(JsonObject world) throws Exception {
        int shards = world.get("shards").getAsInt();
        int replicas = world.get("replicas").getAsInt();
        List<String> wanted = new ArrayList<>();
        JsonArray digests = world.getAsJsonArray("digests");
        digests.forEach(each -> wanted.add(each.getAsString()));
        String wrong = wanted.isEmpty() ? "it has no digests"
                : difference(wanted, trained(shards, replicas, wanted.size(), transportOf(shards, replicas)));
        System.out.println((wrong.isEmpty() ? "passed: " : "FAILED: ") + replicas + " x " + shards
                + (wrong.isEmpty() ? "" : ": " + wrong));
        return wrong.isEmpty();
    }

    /**
     * Trains every world; status 1 when one has other digests.
     *
     * @param arguments the file
     * @throws Exception what a rank failed with
     */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 1) {
            System.err.println("usage: LoopRunner hsdp.json");
            System.exit(2);
        }
        JsonObject loop = JsonParser.parseString(Files.readString(Path.of(arguments[0]))).getAsJsonObject();
        int passed = 0;
        int failed = 0;
        for (JsonElement world : loop.getAsJsonArray("worlds")) {
            if (passes(world.getAsJsonObject())) {
                passed++;
            } else {
                failed++;
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 && passed > 0 ? 0 : 1);
    }
}
