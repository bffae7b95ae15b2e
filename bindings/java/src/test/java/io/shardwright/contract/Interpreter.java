// SPDX-License-Identifier: Apache-2.0
// Runs the steps of one scenario.
package io.shardwright.contract;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.shardwright.Location;
import io.shardwright.Cast;
import io.shardwright.Checkpoint;
import io.shardwright.Common;
import io.shardwright.ConvertOptions;
import io.shardwright.DType;
import io.shardwright.DigestAlgorithm;
import io.shardwright.Exchange;
import io.shardwright.Format;
import io.shardwright.HostTensor;
import io.shardwright.Job;
import io.shardwright.Kind;
import io.shardwright.LoadOptions;
import io.shardwright.Mapping;
import io.shardwright.ObjectKey;
import io.shardwright.Missing;
import io.shardwright.OpenOptions;
import io.shardwright.Overwrite;
import io.shardwright.Owner;
import io.shardwright.Preset;
import io.shardwright.Priority;
import io.shardwright.ReadPath;
import io.shardwright.SaveOptions;
import io.shardwright.Shape;
import io.shardwright.Shardwright;
import io.shardwright.State;
import io.shardwright.StoredObject;
import io.shardwright.Tensor;
import io.shardwright.VerifyReplicas;
import io.shardwright.layout.Box;
import io.shardwright.planning.Entry;
import io.shardwright.storage.Storage;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Everything that a scenario has made, by id; closed at its end, last first. */
final class Interpreter implements AutoCloseable {
    private final Path root;
    private final FileSteps files;
    private final PlanSteps plans;
    private final PlanningSteps planning;
    private final TorchSteps torch;
    private final Map<String, Memory> tensors = new HashMap<>();
    private final Map<String, State> states = new HashMap<>();
    private final Map<String, Storage> storages = new HashMap<>();
    private final Map<String, Checkpoint> checkpoints = new HashMap<>();
    private final Map<String, Job> jobs = new HashMap<>();
    private final Deque<AutoCloseable> made = new ArrayDeque<>();
    private String lastSave = "p";
    private Storage lastStorage;

    Interpreter(Path root) {
        this.root = root;
        files = new FileSteps(root);
        Map<String, byte[]> kept = new HashMap<>();
        plans = new PlanSteps(this, kept);
        planning = new PlanningSteps(this, kept);
        torch = new TorchSteps(this, root, kept);
    }

    /** Memory of one `tensor` step. */
    private static final class Memory {
        final DType dtype;
        final long[] shape;
        final boolean columns;
        final boolean readOnly;
        final ByteBuffer bytes;

        Memory(JsonObject step) {
            dtype = DType.named(Values.text(step, "dtype"));
            shape = Values.numbers(step, "shape");
            columns = Values.text(step, "order").equals("column");
            readOnly = Values.flag(step, "read_only");
            byte[] content = Values.pattern(step, dtype, shape);
            content = columns ? Values.reorder(content, shape, true) : content;
            bytes = ByteBuffer.allocateDirect(content.length);
            bytes.duplicate().put(content);
        }

        HostTensor tensor() {
            HostTensor whole = HostTensor.of(dtype, readOnly ? bytes.asReadOnlyBuffer() : bytes.duplicate(), shape);
            return columns ? whole.strides(1, shape[0]) : whole;
        }

        byte[] rowMajor() {
            byte[] copy = new byte[bytes.capacity()];
            bytes.duplicate().get(copy);
            return columns ? Values.reorder(copy, shape, false) : copy;
        }
    }

    <T extends AutoCloseable> T keep(T object) {
        made.push(object);
        return object;
    }

    @Override
    public void close() {
        for (AutoCloseable object : made) {
            try {
                object.close();
            } catch (Exception e) {
                throw new ContractRunner.Wrong("closing " + object + ": " + e);
            }
        }
    }

    void step(JsonObject step) throws Exception {
        String id = Values.text(step, "id");
        if (files.run(step) || planning.run(step) || plans.run(step) || torch.run(step)) {
            return;
        }
        switch (Values.text(step, "op")) {
            case "tensor": tensors.put(id, new Memory(step)); break;
            case "state": states.put(id, makeState(step)); break;
            case "storage": makeStorage(step, id); break;
            case "save": save(step); break;
            case "load":
                Shardwright.loadInto(state(step, "state"), location(step), loadOptions(step, options(step)));
                break;
            case "save_ranks":
            case "load_ranks": new RankSteps(this).run(step); break;
            case "save_async":
                noteSave(step);
                jobs.put(id, keep(Shardwright.saveAsync(state(step, "state"), location(step), saveOptions(step, options(step)))));
                break;
            case "load_async":
                jobs.put(id, keep(Shardwright.loadAsync(state(step, "state"), location(step), loadOptions(step, options(step)))));
                break;
            case "prepare": Shardwright.prepare(state(step, "state")); break;
            case "wait": jobs.get(Values.text(step, "job")).await(); break;
            case "load_all": new RankSteps(this).loadAll(step); break;
            case "open":
                checkpoints.put(id, keep(open(location(step), (int) Values.number(step, "rank", -1))));
                break;
            case "convert": convert(step); break;
            case "latest": {
                Location wanted = location(step).resolve(Values.text(step, "expected"));
                Location found = Shardwright.latest(location(step), new OpenOptions());
                ContractRunner.require(found.toString().equals(wanted.toString()), "found " + found);
                break;
            }
            case "expect_tensor": expectTensor(step, tensors.get(id)); break;
            default: look(step, checkpoint(step)); break;
        }
    }

    static JsonObject options(JsonObject step) {
        return step.has("options") ? step.getAsJsonObject("options") : new JsonObject();
    }

    SaveOptions saveOptions(JsonObject step, JsonObject words) {
        SaveOptions options = new SaveOptions();
        for (Map.Entry<String, JsonElement> entry : words.entrySet()) {
            switch (entry.getKey()) {
                case "overwrite": options.overwrite(Overwrite.of(entry.getValue().getAsString())); break;
                case "owner": options.owner(Owner.of(entry.getValue().getAsString())); break;
                case "preset": options.preset(Preset.of(entry.getValue().getAsString())); break;
                case "verify_replicas":
                    options.verifyReplicas(VerifyReplicas.of(entry.getValue().getAsString()));
                    break;
                case "format": options.format(Format.of(entry.getValue().getAsString())); break;
                case "common": options.common(Common.of(entry.getValue().getAsString())); break;
                case "max_shard_size": options.maxShardSize(entry.getValue().getAsLong()); break;
                case "hold": options.hold(entry.getValue().getAsBoolean()); break;
                case "priority": options.priority(Priority.of(entry.getValue().getAsString())); break;
                case "deadline": options.deadline(seconds(entry.getValue())); break;
                case "kind":
                    entry.getValue().getAsJsonArray().forEach(pair -> options.kind(
                            pair.getAsJsonArray().get(0).getAsString(),
                            Kind.of(pair.getAsJsonArray().get(1).getAsString())));
                    break;
                case "metadata":
                    entry.getValue().getAsJsonObject().entrySet()
                            .forEach(pair -> options.metadata(pair.getKey(), pair.getValue().getAsString()));
                    break;
                default: throw new ContractRunner.Wrong("unknown option " + entry.getKey());
            }
        }
        return options;
    }

    private void convert(JsonObject step) {
        JsonObject target = new JsonObject();
        target.add("path", step.get("to"));
        if (step.has("to_storage")) {
            target.add("storage", step.get("to_storage"));
        }
        ConvertOptions options = new ConvertOptions();
        for (Map.Entry<String, JsonElement> entry : options(step).entrySet()) {
            switch (entry.getKey()) {
                case "format": options.format(Format.of(entry.getValue().getAsString())); break;
                case "overwrite": options.overwrite(Overwrite.of(entry.getValue().getAsString())); break;
                case "max_shard_size": options.maxShardSize(entry.getValue().getAsLong()); break;
                default: throw new ContractRunner.Wrong("unknown option " + entry.getKey());
            }
        }
        Shardwright.convert(location(step), location(target), options).close();
    }

    LoadOptions loadOptions(JsonObject step, JsonObject words) {
        LoadOptions options = new LoadOptions();
        for (Map.Entry<String, JsonElement> entry : words.entrySet()) {
            switch (entry.getKey()) {
                case "missing": options.missing(Missing.of(entry.getValue().getAsString())); break;
                case "cast": options.cast(Cast.of(entry.getValue().getAsString())); break;
                case "shape": options.shape(Shape.of(entry.getValue().getAsString())); break;
                case "exchange": options.exchange(Exchange.of(entry.getValue().getAsString())); break;
                case "read_path": options.readPath(ReadPath.of(entry.getValue().getAsString())); break;
                case "preset": options.preset(Preset.of(entry.getValue().getAsString())); break;
                case "format": options.format(Format.of(entry.getValue().getAsString())); break;
                case "deadline": options.deadline(seconds(entry.getValue())); break;
                default: throw new ContractRunner.Wrong("unknown option " + entry.getKey());
            }
        }
        return options;
    }

    private static Duration seconds(JsonElement value) {
        return Duration.ofNanos((long) (value.getAsDouble() * 1e9));
    }

    /** In the storage of the step, or below the scenario's folder. */
    Location location(JsonObject step) {
        String path = Values.text(step, "path");
        return step.has("storage") ? Location.of(storages.get(Values.text(step, "storage")), path)
                : Location.of(Path.of(root + "/" + path));
    }

    State state(JsonObject step, String key) {
        return states.get(Values.text(step, key));
    }

    State state(String id) {
        return states.get(id);
    }

    Checkpoint checkpoint(JsonObject step) {
        return checkpoints.get(Values.text(step, "checkpoint"));
    }

    void noteSave(JsonObject step) {
        lastSave = Values.text(step, "path");
    }

    private void save(JsonObject step) {
        noteSave(step);
        Shardwright.save(state(step, "state"), location(step), saveOptions(step, options(step)));
    }

    private void makeStorage(JsonObject step, String id) {
        lastStorage = keep(Values.text(step, "kind").equals("memory") ? Storage.memory()
                : Storage.host(new FailingStorage()));
        storages.put(id, lastStorage);
    }

    private static Checkpoint open(Location location, int rank) {
        return Checkpoint.open(location, new OpenOptions().rank(rank));
    }

    private State makeState(JsonObject step) {
        State.Builder builder = State.builder();
        for (JsonElement element : step.getAsJsonArray("entries")) {
            JsonObject entry = element.getAsJsonObject();
            String name = Values.text(entry, "name");
            String path = Values.text(entry, "path");
            if (entry.has("tensor")) {
                builder.add(name, path, placed(entry, tensors.get(Values.text(entry, "tensor")).tensor()));
            } else if (entry.has("json")) {
                byte[] text = Values.text(entry, "json").getBytes(StandardCharsets.UTF_8);
                addObject(builder, entry, "application/json", text);
            } else {
                byte[] bytes = entry.has("hex") ? Values.hex(Values.text(entry, "hex"))
                        : new byte[(int) Values.number(entry, "zeros", 0)];
                addObject(builder, entry, "application/octet-stream", bytes);
            }
        }
        State state = keep(builder.build());
        return step.has("mapping") ? keep(state.mapped(mapping(step.getAsJsonObject("mapping")))) : state;
    }

    private static void addObject(State.Builder builder, JsonObject entry, String contentType, byte[] bytes) {
        String name = Values.text(entry, "name");
        boolean replica = entry.has("replica");
        if (entry.has("grid")) {
            JsonObject grid = entry.getAsJsonObject("grid");
            ObjectKey key = new ObjectKey(name, Values.numbers(grid, "index"), Values.numbers(grid, "fragments"));
            builder.cell(key, contentType, bytes, Kind.AUTO, replica);
        } else {
            builder.object(name, Values.text(entry, "path"), contentType, bytes, Kind.AUTO, replica);
        }
    }

    private static HostTensor placed(JsonObject entry, HostTensor tensor) {
        HostTensor made = tensor.replica(entry.has("replica"));
        if (entry.has("grid")) {
            JsonObject grid = entry.getAsJsonObject("grid");
            return made.gridPart(Values.numbers(grid, "fragments"), Values.numbers(grid, "index"));
        }
        if (entry.has("shape")) {
            long[] shape = Values.numbers(entry, "shape");
            long[] offsets = Values.numbers(entry, "offsets");
            made = entry.has("sizes") ? made.partOf(shape, List.of(new Box(offsets, Values.numbers(entry, "sizes"))), 0)
                    : made.partOf(shape, offsets);
        }
        return entry.has("fragments") ? made.fragments(Values.numbers(entry, "fragments")) : made;
    }

    private static Mapping mapping(JsonObject rules) {
        Map<String, Long> parameters = new LinkedHashMap<>();
        if (rules.has("parameters")) {
            rules.getAsJsonObject("parameters").entrySet().forEach(e -> parameters.put(e.getKey(), e.getValue().getAsLong()));
        }
        return rules.has("shipped") ? Mapping.shipped(Values.text(rules, "shipped"), parameters)
                : Mapping.of(Values.text(rules, "json"), parameters);
    }

    private static void expectTensor(JsonObject step, Memory tensor) {
        byte[] wanted = Values.pattern(step, tensor.dtype, tensor.shape);
        ContractRunner.require(Arrays.equals(wanted, tensor.rowMajor()), Values.text(step, "id") + " holds other bytes");
    }

    private static void look(JsonObject step, Checkpoint checkpoint) {
        Object wanted = null;
        Object found = null;
        switch (Values.text(step, "op")) {
            case "names":
                List<String> names = new ArrayList<>();
                step.getAsJsonArray("expected").forEach(e -> names.add(e.getAsString()));
                wanted = names.stream().sorted().collect(Collectors.toList());
                found = checkpoint.keys().stream().sorted().collect(Collectors.toList());
                break;
            case "ranks":
                wanted = step.get("expected").toString();
                found = checkpoint.ranks(Values.text(step, "name")).toString().replace(" ", "");
                break;
            case "read":
                try (Tensor read = checkpoint.readBox(Values.text(step, "tensor"), Values.numbers(step, "offsets"),
                        Values.numbers(step, "sizes"))) {
                    found = Values.hex(read.toByteArray());
                    wanted = step.has("hex") ? Values.text(step, "hex") : found;
                }
                break;
            case "digest":
                wanted = Values.text(step, "expected");
                found = checkpoint.digest(Values.text(step, "tensor"), DigestAlgorithm.of(Values.text(step, "algorithm")));
                break;
            case "object":
                StoredObject object = checkpoint.objects().get(Values.text(step, "name"));
                ContractRunner.require(object != null, "no object " + Values.text(step, "name"));
                byte[] bytes = step.has("hex") ? Values.hex(Values.text(step, "hex"))
                        : Values.text(step, "text").getBytes(StandardCharsets.UTF_8);
                wanted = Values.text(step, "content_type") + " " + Values.hex(bytes);
                found = object.contentType() + " " + Values.hex(object.bytes());
                break;
            case "metadata":
                Map<String, String> pairs = new TreeMap<>();
                step.getAsJsonObject("expected").entrySet().forEach(e -> pairs.put(e.getKey(), e.getValue().getAsString()));
                wanted = pairs;
                found = new TreeMap<>(checkpoint.metadata());
                break;
            case "verify":
                checkpoint.verify(Values.flag(step, "deep"));
                return;
            case "find_damage":
                wanted = step.get("expected").getAsInt();
                found = checkpoint.findDamage(Values.flag(step, "deep")).findings().size();
                break;
            default:
                throw new ContractRunner.Wrong("the contract has an unknown step " + Values.text(step, "op"));
        }
        ContractRunner.require(wanted.equals(found), "expected " + wanted + ", found " + found);
    }

    /** Compares the digests of the scenario with the checkpoint of the last save. */
    void checkDigests(JsonObject wanted) {
        if (wanted == null) {
            return;
        }
        Location location = lastStorage == null ? Location.of(root.resolve("p")) : Location.of(lastStorage, lastSave);
        try (Checkpoint checkpoint = open(location, -1)) {
            Map<String, String> found = checkpoint.digest(DigestAlgorithm.XXH3);
            wanted.entrySet().forEach(e -> ContractRunner.require(e.getValue().getAsString().equals(found.get(e.getKey())),
                    "digest of " + e.getKey() + ": expected " + e.getValue() + ", found " + found.get(e.getKey())));
        }
    }
}
