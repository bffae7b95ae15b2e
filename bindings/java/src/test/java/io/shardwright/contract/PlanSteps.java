// SPDX-License-Identifier: Apache-2.0
// The steps in which the host moves plan buffers.
package io.shardwright.contract;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.shardwright.LoadOptions;
import io.shardwright.LoadPlanner;
import io.shardwright.Plan;
import io.shardwright.SaveOptions;
import io.shardwright.SavePlanner;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Planners and kept bytes of a scenario, by id. */
final class PlanSteps {
    private final Interpreter scenario;
    private final Map<String, SavePlanner> savePlanners = new HashMap<>();
    private final Map<String, LoadPlanner> loadPlanners = new HashMap<>();
    private final Map<String, byte[]> kept;

    /** `kept`: bytes that the steps keep by id. */
    PlanSteps(Interpreter scenario, Map<String, byte[]> kept) {
        this.scenario = scenario;
        this.kept = kept;
    }

    /** False when the step is none of plans. */
    boolean run(JsonObject step) {
        String id = Values.text(step, "id");
        SavePlanner planner = savePlanners.get(Values.text(step, "planner"));
        byte[] plan = kept.get(Values.text(step, "plan"));
        int rank = (int) Values.number(step, "rank", 0);
        switch (Values.text(step, "op")) {
            case "save_planner":
                int size = (int) Values.number(step, "world_size", 1);
                savePlanners.put(id, scenario.keep(
                        SavePlanner.create(scenario.state(step, "state"), rank, size, saveOptions(step))));
                return true;
            case "local_plan":
                kept.put(id, planner.localPlan());
                return true;
            case "global_plan":
                globalPlan(step, planner);
                return true;
            case "finish":
                kept.put(id, planner.finish(plan).bytes());
                return true;
            case "save_execute":
                kept.put(id, planner.execute(Plan.of(plan), scenario.location(step)));
                return true;
            case "commit":
                planner.commit(keptAll(step, "results"));
                return true;
            case "load_planner":
                loadPlanners.put(id, scenario.keep(LoadPlanner.create(scenario.checkpoint(step),
                        scenario.state(step, "state"), rank, loadOptions(step))));
                return true;
            case "load_plan":
                kept.put(id, loadPlanners.get(Values.text(step, "planner")).localPlan().bytes());
                return true;
            case "load_execute":
                loadPlanners.get(Values.text(step, "planner")).execute(Plan.of(plan));
                return true;
            case "cut_plan":
                kept.put(Values.text(step, "plan"), Arrays.copyOf(plan, plan.length - (int) Values.number(step, "drop", 0)));
                return true;
            default:
                return false;
        }
    }

    private SaveOptions saveOptions(JsonObject step) {
        return scenario.saveOptions(step, Interpreter.options(step));
    }

    private LoadOptions loadOptions(JsonObject step) {
        return scenario.loadOptions(step, Interpreter.options(step));
    }

    private void globalPlan(JsonObject step, SavePlanner planner) {
        scenario.noteSave(step);
        List<byte[]> parts = planner.globalPlan(keptAll(step, "plans"), scenario.location(step));
        for (int i = 0; i < parts.size(); i++) {
            kept.put(step.getAsJsonArray("ids").get(i).getAsString(), parts.get(i));
        }
    }

    /** Kept bytes by id; null = empty. */
    private List<byte[]> keptAll(JsonObject step, String key) {
        List<byte[]> all = new ArrayList<>();
        for (JsonElement id : step.getAsJsonArray(key)) {
            all.add(id.isJsonNull() ? new byte[0] : kept.get(id.getAsString()));
        }
        return all;
    }
}
