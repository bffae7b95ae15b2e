// SPDX-License-Identifier: Apache-2.0
// The steps that write items of torch.distributed.checkpoint for an index of somebody else's.
package io.shardwright.contract;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.shardwright.SaveOptions;
import io.shardwright.TorchItems;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Runs torch_items and torch_digests. */
final class TorchSteps {
    private final Interpreter scenario;
    private final Path root;
    private final Map<String, byte[]> kept;

    TorchSteps(Interpreter scenario, Path root, Map<String, byte[]> kept) {
        this.scenario = scenario;
        this.root = root;
        this.kept = kept;
    }

    /** False when the step is none of these. */
    boolean run(JsonObject step) throws IOException {
        switch (Values.text(step, "op")) {
            case "torch_items":
                writeItems(step);
                return true;
            case "torch_digests":
                List<byte[]> results = new ArrayList<>();
                step.getAsJsonArray("results").forEach(id -> results.add(kept.get(id.getAsString())));
                byte[] index = Files.readAllBytes(root.resolve(Values.text(step, "index")));
                TorchItems.writeDigests(scenario.location(step), index, results, new SaveOptions());
                return true;
            default:
                return false;
        }
    }

    private void writeItems(JsonObject step) {
        TorchItems.Written written = TorchItems.write(scenario.state(step, "state"), scenario.location(step),
                Values.text(step, "name"), new SaveOptions());
        kept.put(Values.text(step, "id"), written.result());
        JsonArray places = new JsonArray();
        for (TorchItems.Place place : written.places()) {
            JsonArray row = new JsonArray();
            row.add(place.name());
            row.add(place.offset());
            row.add(place.length());
            places.add(row);
        }
        JsonElement wanted = step.has("places") ? step.get("places") : places;
        ContractRunner.require(wanted.toString().equals(places.toString()), "items lie at " + places);
    }
}
