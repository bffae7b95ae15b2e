// SPDX-License-Identifier: Apache-2.0
// The steps that plan by descriptions: layouts, shards of grids, entries, merges, global plans.
package io.shardwright.contract;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.shardwright.Missing;
import io.shardwright.Owner;
import io.shardwright.Plan;
import io.shardwright.Preset;
import io.shardwright.VerifyReplicas;
import io.shardwright.layout.GridShard;
import io.shardwright.layout.Layout;
import io.shardwright.layout.Piece;
import io.shardwright.layout.Placement;
import io.shardwright.planning.Cover;
import io.shardwright.planning.Description;
import io.shardwright.planning.Entry;
import io.shardwright.planning.Expanded;
import io.shardwright.planning.GlobalPlan;
import io.shardwright.planning.HeldShards;
import io.shardwright.planning.MatchOptions;
import io.shardwright.planning.MatchOrder;
import io.shardwright.planning.Matches;
import io.shardwright.planning.MergeOptions;
import io.shardwright.planning.Merged;
import io.shardwright.planning.Planning;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Layouts, descriptions and global plans of a scenario, by id. */
final class PlanningSteps {
    private final Interpreter scenario;
    private final Map<String, byte[]> kept;
    private final Map<String, Layout> layouts = new HashMap<>();
    private final Map<String, Description> described = new HashMap<>();
    private final Map<String, GlobalPlan> globalPlans = new HashMap<>();

    /** `kept`: bytes that the steps keep by id. */
    PlanningSteps(Interpreter scenario, Map<String, byte[]> kept) {
        this.scenario = scenario;
        this.kept = kept;
    }

    /** False when the step is none of planning. */
    boolean run(JsonObject step) {
        String id = Values.text(step, "id");
        switch (Values.text(step, "op")) {
            case "layout": layouts.put(id, scenario.keep(layout(step))); break;
            case "pieces": checkPieces(layouts.get(Values.text(step, "layout")), step); break;
            case "grid": checkGrid(step); break;
            case "describe":
                kept.put(id, Planning.describe(EntrySteps.batch(step), EntrySteps.options(step)));
                break;
            case "merge": merge(step); break;
            case "entries":
                same(EntrySteps.boxLines(plan(step, "plan")), step.getAsJsonArray("expected"), "entries");
                break;
            case "same_entries":
                List<String> wanted = EntrySteps.boxLines(second(step));
                same(EntrySteps.boxLines(first(step)), EntrySteps.json(wanted), "entries");
                break;
            case "same_items":
                ContractRunner.require(items(first(step)).equals(items(second(step))), "other items");
                break;
            case "plan_digest":
                same(Values.hex(Planning.digest(plan(step, "plan"))), step.get("expected"), "digest");
                break;
            case "match": checkMatch(step); break;
            case "plan_owners": checkOwners(step); break;
            case "content_digest":
                byte[] text = Values.text(step, "text").getBytes(StandardCharsets.UTF_8);
                same(Values.hex(Planning.contentDigest(text)), step.get("expected"), "digest");
                break;
            default: return runGlobalPlan(step, id);
        }
        return true;
    }

    private boolean runGlobalPlan(JsonObject step, String id) {
        GlobalPlan plan = globalPlans.get(Values.text(step, "plan"));
        String generation = Values.text(step, "generation");
        switch (Values.text(step, "op")) {
            case "rank_description": described.put(id, describe(step)); break;
            case "described_global_plan": globalPlans.put(id, scenario.keep(globalPlan(step))); break;
            case "write_list": kept.put(id, plan.writeList((int) Values.number(step, "rank", 0), generation)); break;
            case "expand":
                Expanded expanded = plan.expand(generation);
                keep(step, expanded.plan(), expanded.writeLists());
                break;
            default: return false;
        }
        return true;
    }

    // ---- values ----

    /** Compares as JSON text, so that long[], int[] and lists compare alike. */
    private static void same(Object found, JsonElement wanted, String what) {
        JsonElement json = EntrySteps.json(found);
        ContractRunner.require(json.toString().equals(wanted.toString()),
                what + ": found " + json + ", expected " + wanted);
    }

    private static int[] ints(JsonElement array) {
        JsonArray values = array == null ? new JsonArray() : array.getAsJsonArray();
        int[] numbers = new int[values.size()];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = values.get(i).getAsInt();
        }
        return numbers;
    }

    private Plan plan(JsonObject step, String key) {
        return Plan.of(kept.get(Values.text(step, key)));
    }

    private Plan first(JsonObject step) {
        return Plan.of(kept.get(step.getAsJsonArray("plans").get(0).getAsString()));
    }

    private Plan second(JsonObject step) {
        return Plan.of(kept.get(step.getAsJsonArray("plans").get(1).getAsString()));
    }

    private void keep(JsonObject step, byte[] first, List<byte[]> others) {
        if (!step.has("ids")) {
            return;
        }
        JsonArray ids = step.getAsJsonArray("ids");
        ContractRunner.require(ids.size() == 1 + others.size(), 1 + others.size() + " parts");
        kept.put(ids.get(0).getAsString(), first);
        for (int i = 0; i < others.size(); i++) {
            kept.put(ids.get(i + 1).getAsString(), others.get(i));
        }
    }

    // ---- layouts ----

    private static Layout layout(JsonObject step) {
        long[] mesh = Values.numbers(step, "mesh");
        int[] ranks = ints(step.get("ranks"));
        if (step.has("tensor_map")) {
            List<int[]> map = new ArrayList<>();
            step.getAsJsonArray("tensor_map").forEach(axes -> map.add(ints(axes)));
            return Layout.ofMap(mesh, ranks, List.of(), map.toArray(new int[0][]));
        }
        List<Placement> placements = new ArrayList<>();
        step.getAsJsonArray("placements").forEach(placement -> placements.add(placement(placement)));
        return Layout.of(mesh, ranks, placements.toArray(new Placement[0]));
    }

    private static Placement placement(JsonElement value) {
        JsonArray words = new JsonArray();
        if (value.isJsonArray()) {
            words = value.getAsJsonArray();
        } else {
            words.add(value);
        }
        switch (words.get(0).getAsString()) {
            case "replicate": return Placement.REPLICATE;
            case "flat": return Placement.FLAT;
            case "shard": return Placement.shard(words.get(1).getAsInt());
            case "strided_shard": return Placement.stridedShard(words.get(1).getAsInt(), words.get(2).getAsInt());
            default: throw new ContractRunner.Wrong("unknown placement " + value);
        }
    }

    private static Object pieces(List<Piece> pieces) {
        List<Object> all = new ArrayList<>();
        for (Piece piece : pieces) {
            all.add(List.of(piece.box().offsets(), piece.box().sizes(), piece.localOffset()));
        }
        return all;
    }

    private static void checkPieces(Layout layout, JsonObject step) {
        long[] shape = Values.numbers(step, "shape");
        JsonArray expected = step.getAsJsonArray("expected");
        for (int rank = 0; rank < expected.size(); rank++) {
            same(pieces(layout.pieces(shape, rank)), expected.get(rank), "rank " + rank);
            same(layout.localShape(shape, rank), step.getAsJsonArray("local_shapes").get(rank), "rank " + rank);
        }
    }

    private static void checkGrid(JsonObject step) {
        List<Long> places = new ArrayList<>();
        for (JsonElement place : step.getAsJsonArray("places")) {
            place.getAsJsonArray().forEach(number -> places.add(number.getAsLong()));
        }
        GridShard shard = GridShard.at(Values.numbers(step, "local_shape"), (int) Values.number(step, "prepended", 0),
                places.stream().mapToLong(Long::longValue).toArray());
        same(shard.globalShape(), step.get("global_shape"), "global shape");
        same(shard.offsets(), step.get("offsets"), "offsets");
        long[] range = Values.numbers(step, "flat_range");
        same(pieces((range.length == 0 ? shard : shard.flatRange(range[0], range[1])).pieces()), step.get("expected"),
                "pieces");
    }

    // ---- plans ----

    private static MergeOptions mergeOptions(JsonObject step) {
        MergeOptions options = new MergeOptions();
        for (Map.Entry<String, JsonElement> entry : Interpreter.options(step).entrySet()) {
            String word = entry.getValue().getAsString();
            switch (entry.getKey()) {
                case "owner": options.owner(Owner.of(word)); break;
                case "preset": options.preset(Preset.of(word)); break;
                case "cover": options.cover(Cover.of(word)); break;
                case "verify_replicas": options.verifyReplicas(VerifyReplicas.of(word)); break;
                default: throw new ContractRunner.Wrong("unknown option " + entry.getKey());
            }
        }
        return options;
    }

    private static MatchOptions matchOptions(JsonObject step) {
        MatchOptions options = new MatchOptions();
        for (Map.Entry<String, JsonElement> entry : Interpreter.options(step).entrySet()) {
            String word = entry.getValue().getAsString();
            switch (entry.getKey()) {
                case "order": options.order(MatchOrder.of(word)); break;
                case "cover": options.cover(Cover.of(word)); break;
                case "missing": options.missing(Missing.of(word)); break;
                case "first_replica": options.firstReplica(entry.getValue().getAsBoolean()); break;
                case "rank": options.rank(entry.getValue().getAsInt()); break;
                default: throw new ContractRunner.Wrong("unknown option " + entry.getKey());
            }
        }
        return options;
    }

    private void merge(JsonObject step) {
        List<byte[]> plans = new ArrayList<>();
        step.getAsJsonArray("plans").forEach(id -> plans.add(kept.get(id.getAsString())));
        Merged merged = Planning.merge(plans, mergeOptions(step));
        if (step.has("digest")) {
            same(Values.hex(Planning.digest(Plan.of(merged.plan()))), step.get("digest"), "digest");
        }
        if (step.has("kept")) {
            List<Object> names = new ArrayList<>();
            for (int[] numbers : merged.kept()) {
                names.add(EntrySteps.keptNames(Plan.of(plans.get(names.size())), numbers));
            }
            same(names, step.get("kept"), "kept");
        }
        if (step.has("id")) {
            kept.put(Values.text(step, "id"), merged.plan());
        }
    }

    private void checkMatch(JsonObject step) {
        Matches found = Planning.match(plan(step, "stored"), EntrySteps.batch(step), matchOptions(step));
        same(found.wanted(), step.get("wanted"), "wanted");
        same(found.chunks(), step.get("chunks"), "chunks");
        same(found.wantedOffsets(), step.get("wanted_offsets"), "wanted_offsets");
        same(found.storedOffsets(), step.get("stored_offsets"), "stored_offsets");
        same(found.sizes(), step.get("sizes"), "sizes");
        same(found.entryBegins(), step.get("entry_begins"), "entry_begins");
    }

    private static void checkOwners(JsonObject step) {
        int[] marks = ints(step.get("secondary"));
        boolean[] secondary = step.has("secondary") ? new boolean[marks.length] : null;
        for (int i = 0; i < marks.length; i++) {
            secondary[i] = marks[i] != 0;
        }
        HeldShards shards = new HeldShards(Values.numbers(step, "weights"), ints(step.get("sets")),
                Values.numbers(step, "set_offsets"), ints(step.get("holders")), secondary);
        same(Planning.owners(shards, (int) Values.number(step, "rank_count", 0)), step.get("expected"), "owners");
    }

    private static JsonElement items(Plan plan) {
        JsonArray items = JsonParser.parseString(plan.json(1L << 31)).getAsJsonObject().getAsJsonArray("items");
        ContractRunner.require(items.size() > 0, "a plan without items");
        return items;
    }

    // ---- global plans ----

    private Description describe(JsonObject step) {
        List<Layout> given = new ArrayList<>();
        for (JsonElement entry : step.getAsJsonArray("entries")) {
            given.add(layouts.get(Values.text(entry.getAsJsonObject(), "layout")));
        }
        Description made = GlobalPlan.describe(EntrySteps.batch(step), given, EntrySteps.options(step));
        if (step.has("digest")) {
            same(Values.hex(made.digest()), step.get("digest"), "digest");
        }
        return made;
    }

    private GlobalPlan globalPlan(JsonObject step) {
        List<byte[]> digests = new ArrayList<>();
        List<byte[]> parts = new ArrayList<>();
        List<Description> all = new ArrayList<>();
        step.getAsJsonArray("descriptions").forEach(id -> all.add(described.get(id.getAsString())));
        for (Description each : all) {
            digests.add(each.digest());
            parts.add(each.part());
        }
        int[] chosen = GlobalPlan.representatives(digests);
        same(chosen, step.get("representatives"), "representatives");
        List<byte[]> descriptions = new ArrayList<>();
        Arrays.stream(chosen).forEach(rank -> descriptions.add(all.get(rank).description()));
        GlobalPlan plan = GlobalPlan.create(digests, descriptions, parts, mergeOptions(step));
        try {
            check(plan, step);
            return plan;
        } catch (RuntimeException e) {
            plan.close();
            throw e;
        }
    }

    private static void check(GlobalPlan plan, JsonObject step) {
        if (step.has("digest")) {
            same(Values.hex(plan.digest()), step.get("digest"), "digest");
            same(plan.rankBytes(), step.get("rank_bytes"), "rank_bytes");
        }
        if (step.has("owners")) {
            step.getAsJsonObject("owners").entrySet()
                    .forEach(e -> same(plan.owners(e.getKey()), e.getValue(), "owners of " + e.getKey()));
        }
        if (step.has("totals")) {
            JsonObject totals = JsonParser.parseString(plan.json()).getAsJsonObject();
            step.getAsJsonObject("totals").entrySet()
                    .forEach(e -> same(totals.get(e.getKey()), e.getValue(), e.getKey()));
        }
    }
}
