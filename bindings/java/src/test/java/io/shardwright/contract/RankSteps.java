// SPDX-License-Identifier: Apache-2.0
// The steps in which several ranks save or load together, one thread per rank.
package io.shardwright.contract;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.shardwright.collective.Collective;
import io.shardwright.LoadOptions;
import io.shardwright.Loaded;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.Shardwright;
import io.shardwright.State;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Runs save_ranks, load_ranks and load_all. */
final class RankSteps {
    private final Interpreter scenario;

    RankSteps(Interpreter scenario) {
        this.scenario = scenario;
    }

    void run(JsonObject step) throws Exception {
        boolean save = Values.text(step, "op").equals("save_ranks");
        if (save) {
            scenario.noteSave(step);
        }
        JsonArray states = step.getAsJsonArray("states");
        List<Collective> ends = Collective.threads(states.size());
        List<Callable<Object>> present = new ArrayList<>();
        for (int rank = 0; rank < states.size(); rank++) {
            Collective end = ends.get(rank);
            if (states.get(rank).isJsonNull()) {
                if (Values.text(step, "absent").equals("gone")) {
                    end.close();
                }
                continue;
            }
            State state = scenario.state(states.get(rank).getAsString());
            JsonObject options = options(step, rank);
            present.add(() -> save
                    ? Shardwright.save(state, scenario.location(step), scenario.saveOptions(step, options).collective(end))
                    : Shardwright.loadInto(state, scenario.location(step), scenario.loadOptions(step, options).collective(end)));
        }
        List<Throwable> outcomes = runAll(present);
        ends.forEach(Collective::close);
        agree(outcomes);
    }

    /** Every rank, or one without a collective, loads everything that it is given. */
    void loadAll(JsonObject step) {
        int size = (int) Values.number(step, "size", 0);
        List<Collective> ends = size == 0 ? List.of() : Collective.threads(size);
        JsonArray expected = step.getAsJsonArray("expected");
        for (int rank = 0; rank < expected.size(); rank++) {
            LoadOptions options = scenario.loadOptions(step, new JsonObject());
            if (size > 0) {
                options.collective(ends.get(rank));
            }
            try (Loaded loaded = Shardwright.load(scenario.location(step), options)) {
                JsonObject found = described(loaded);
                ContractRunner.require(found.equals(expected.get(rank)), "expected " + expected.get(rank) + ", found " + found);
            }
        }
        ends.forEach(Collective::close);
    }

    /** Tensors as hex, objects as text. */
    private static JsonObject described(Loaded loaded) {
        JsonObject tensors = new JsonObject();
        loaded.tensors().forEach((name, tensor) -> tensors.addProperty(name, Values.hex(tensor.toByteArray())));
        JsonObject objects = new JsonObject();
        loaded.objects().forEach((name, object) ->
                objects.addProperty(name, new String(object.bytes(), StandardCharsets.UTF_8)));
        JsonObject all = new JsonObject();
        all.add("tensors", tensors);
        all.add("objects", objects);
        return all;
    }

    private static JsonObject options(JsonObject step, int rank) {
        JsonElement mine = step.has("options") ? step.getAsJsonArray("options").get(rank) : null;
        return mine == null || mine.isJsonNull() ? new JsonObject() : mine.getAsJsonObject();
    }

    private static List<Throwable> runAll(List<Callable<Object>> calls) throws InterruptedException {
        ExecutorService threads = Executors.newFixedThreadPool(calls.size());
        try {
            List<Throwable> outcomes = new ArrayList<>();
            for (Future<Object> done : threads.invokeAll(calls)) {
                try {
                    done.get();
                    outcomes.add(null);
                } catch (ExecutionException e) {
                    outcomes.add(e.getCause());
                }
            }
            return outcomes;
        } finally {
            threads.shutdown();
        }
    }

    /** All ranks that take part must end alike; the error of the first one is the step's. */
    private static void agree(List<Throwable> outcomes) throws Exception {
        Object first = codeOf(outcomes.get(0));
        for (Throwable outcome : outcomes) {
            ContractRunner.require(codeOf(outcome).equals(first), "the ranks ended differently: " + outcomes);
        }
        if (outcomes.get(0) instanceof Exception) {
            throw (Exception) outcomes.get(0);
        }
    }

    private static Object codeOf(Throwable outcome) {
        return outcome instanceof ShardwrightException ? ((ShardwrightException) outcome).code() : String.valueOf(outcome);
    }
}
