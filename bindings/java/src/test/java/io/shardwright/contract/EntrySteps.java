// SPDX-License-Identifier: Apache-2.0
// Entries of the contract's planning steps, there and back.
package io.shardwright.contract;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.shardwright.layout.Box;
import io.shardwright.DType;
import io.shardwright.planning.DescribeOptions;
import io.shardwright.planning.Described;
import io.shardwright.planning.Entry;
import io.shardwright.planning.EntryBatch;
import io.shardwright.Kind;
import io.shardwright.Plan;
import io.shardwright.planning.Planning;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** A step's list of entries as a batch, and the boxes of a plan as texts. */
final class EntrySteps {
    private static final Gson GSON = new Gson();

    private EntrySteps() {}

    /** Arrays, lists, texts and numbers as JSON. */
    static JsonElement json(Object value) {
        return GSON.toJsonTree(value);
    }

    /** The `entries` of a step; boxes that are not listed are the whole tensor, or those of its layout. */
    static EntryBatch batch(JsonObject step) {
        EntryBatch batch = new EntryBatch();
        for (JsonElement element : step.getAsJsonArray("entries")) {
            JsonObject given = element.getAsJsonObject();
            Entry entry = entry(given);
            if (given.has("boxes")) {
                batch.add(entry, boxes(given.getAsJsonArray("boxes")));
            } else if (given.has("layout")) {
                batch.addLaidOut(entry);
            } else {
                batch.add(entry);
            }
        }
        if (step.has("order")) {
            batch.order(Values.numbers(step, "order"));
        }
        if (step.has("secondary")) {
            boolean[] marks = new boolean[batch.boxCount()];
            Arrays.stream(Values.numbers(step, "secondary")).forEach(box -> marks[(int) box] = true);
            batch.secondary(marks);
        }
        return batch;
    }

    private static Entry entry(JsonObject given) {
        String name = Values.text(given, "name");
        Entry entry = given.has("dtype")
                ? Entry.tensor(name, DType.named(Values.text(given, "dtype")), Values.numbers(given, "shape"))
                : Entry.object(name, Values.number(given, "size", 0));
        entry = given.has("kind") ? entry.kind(Kind.of(Values.text(given, "kind"))) : entry;
        entry = entry.path(Values.text(given, "path"))
                .attributes(Values.text(given, "attributes").getBytes(StandardCharsets.UTF_8));
        byte[] content = Values.text(given, "content").getBytes(StandardCharsets.UTF_8);
        return given.has("content") ? entry.digest(Planning.contentDigest(content)) : entry;
    }

    private static List<Box> boxes(JsonArray given) {
        List<Box> boxes = new ArrayList<>();
        for (JsonElement box : given) {
            long[][] sides = GSON.fromJson(box, long[][].class);
            boxes.add(new Box(sides[0], sides[1]));
        }
        return boxes;
    }

    static DescribeOptions options(JsonObject step) {
        DescribeOptions options = new DescribeOptions().rank((int) Values.number(step, "rank", 0))
                .worldSize((int) Values.number(step, "world_size", 0)).agreement(Values.text(step, "agreement"));
        if (step.has("kind")) {
            options.kind(Described.of(Values.text(step, "kind")));
        }
        if (step.has("kinds")) {
            for (JsonElement pair : step.getAsJsonArray("kinds")) {
                options.kinds(pair.getAsJsonArray().get(0).getAsString(),
                        Kind.of(pair.getAsJsonArray().get(1).getAsString()));
            }
        }
        return options;
    }

    private static String joined(long[] values) {
        return Arrays.stream(values).mapToObj(Long::toString).collect(Collectors.joining(","));
    }

    /** One text per box: name, dtype, kind, offsets, sizes, number. */
    static List<String> boxLines(Plan plan) {
        EntryBatch batch = Planning.entries(plan);
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < batch.size(); i++) {
            Entry entry = batch.entry(i);
            List<Box> boxes = batch.boxes(i);
            for (int b = 0; b < boxes.size(); b++) {
                List<String> words = List.of(entry.name(), entry.dtype() == null ? "object" : entry.dtype().dtypeName(),
                        entry.kind().word(), joined(boxes.get(b).offsets()), joined(boxes.get(b).sizes()),
                        "#" + batch.numbers(i)[b]);
                lines.add(words.stream().filter(word -> !word.isEmpty()).collect(Collectors.joining(" ")));
            }
        }
        return lines;
    }

    /** name#number of each box that the rank of the plan keeps; `numbers`: what a merge says of its boxes. */
    static List<String> keptNames(Plan plan, int[] numbers) {
        EntryBatch batch = Planning.entries(plan);
        ContractRunner.require(numbers.length == batch.boxCount(), numbers.length + " numbers of " + batch.boxCount() + " boxes");
        List<String> names = new ArrayList<>();
        for (int i = 0; i < batch.size(); i++) {
            for (int box = batch.firstBox(i); box < batch.firstBox(i + 1); box++) {
                if (numbers[box] != Planning.NOT_KEPT) {
                    names.add(batch.entry(i).name() + "#" + Integer.toUnsignedLong(numbers[box]));
                }
            }
        }
        return names;
    }
}
