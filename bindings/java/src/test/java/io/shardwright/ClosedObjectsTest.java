// SPDX-License-Identifier: Apache-2.0
// What can still be asked of closed objects and of exceptions that travelled.
package io.shardwright;

import io.shardwright.collective.Collective;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.estimate.JobDescription;
import io.shardwright.hsdp.Communicator;
import io.shardwright.hsdp.Device;
import io.shardwright.hsdp.Hsdp;
import io.shardwright.hsdp.HsdpMesh;
import io.shardwright.hsdp.HsdpOptions;
import io.shardwright.hsdp.HsdpUnitOptions;
import io.shardwright.layout.Layout;
import io.shardwright.layout.Placement;
import io.shardwright.planning.DescribeOptions;
import io.shardwright.planning.Description;
import io.shardwright.planning.Entry;
import io.shardwright.planning.EntryBatch;
import io.shardwright.planning.GlobalPlan;
import io.shardwright.planning.MergeOptions;
import io.shardwright.storage.Storage;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;


class ClosedObjectsTest {
    @TempDir
    Path folder;

    /** One of each class that is closed, by its name; the last ones stand on the first. */
    private Map<String, AutoCloseable> oneOfEach() throws Exception {
        Path path = folder.resolve("p");
        Map<String, AutoCloseable> all = new LinkedHashMap<>();
        State state = State.builder().add("w", new float[] {1, 2}).json("step", 1).build();
        SavePlanner planner = SavePlanner.create(state, 0, 1, new SaveOptions());
        all.put("State", state);
        all.put("Report", Shardwright.save(state, path, new SaveOptions()));
        all.put("Job", Shardwright.saveAsync(state, path, new SaveOptions()));
        ((Job) all.get("Job")).await();
        all.put("SavePlanner", planner);
        all.put("Plan", Plan.of(planner.localPlan()));
        all.put("Context", Context.builder().build());
        all.put("Storage", Storage.memory());
        all.put("Collective", Collective.single());
        all.put("Tensor", Tensor.zeros(DType.FLOAT32, 2));
        all.put("Layout", Layout.of(new long[] {2}, Placement.shard(0)));
        all.put("Mapping", Mapping.shipped("swiglu", Map.of()));
        all.put("Loaded", Shardwright.load(path));
        Checkpoint checkpoint = Checkpoint.open(path);
        all.put("Checkpoint", checkpoint);
        LoadPlanner loads = LoadPlanner.create(checkpoint, state, 0, new LoadOptions());
        Plan plan = loads.localPlan();
        all.put("LoadPlanner", loads);
        all.put("LoadExchange",
                loads.exchange(plan, Shardwright.exchangePlans(List.of(loads.wantList(plan, 1))).get(0)));
        all.put("JobDescription", JobDescription.ofCheckpoint(checkpoint));
        Description description = GlobalPlan.describe(new EntryBatch().add(Entry.tensor("w", DType.FLOAT32, 2)),
                List.of(), new DescribeOptions().rank(0).worldSize(1));
        all.put("GlobalPlan", GlobalPlan.create(List.of(description.digest()), List.of(description.description()),
                List.of(description.part()), new MergeOptions()));
        addTraining(all);
        return all;
    }

    private static void addTraining(Map<String, AutoCloseable> all) {
        Communicator communicator = Communicator.fake(0, 2);
        HsdpMesh mesh = HsdpMesh.of(0, 1);
        Hsdp hsdp = Hsdp.create(mesh, new HsdpOptions());
        all.put("Communicator", communicator);
        all.put("Work", communicator.barrier(null));
        all.put("Device", Device.host(false));
        all.put("HsdpMesh", mesh);
        all.put("Hsdp", hsdp);
        all.put("HsdpUnit", hsdp.unit("layer", new HsdpUnitOptions()));
    }

    /** Public classes of the library that are closed. */
    private static Set<String> closeableClasses() throws Exception {
        return PackagesTest.publicClasses().stream()
                .filter(type -> AutoCloseable.class.isAssignableFrom(type) && !Modifier.isAbstract(type.getModifiers()))
                .map(Class::getSimpleName).collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void everyObjectHasATextOpenAndClosed() throws Exception {
        Map<String, AutoCloseable> all = oneOfEach();
        assertEquals(closeableClasses(), new TreeSet<>(all.keySet()));
        all.forEach((name, object) -> assertTrue(
                object.toString().startsWith(object instanceof Report ? "{" : name + "("), object.toString()));
        for (AutoCloseable object : all.values()) {
            object.close();
        }
        all.forEach((name, object) -> assertTrue(object.toString().startsWith(name + "("), object.toString()));
        assertEquals("Checkpoint(closed)", all.get("Checkpoint").toString());
        assertEquals("Report(closed)", all.get("Report").toString());
    }

    @Test
    void anExceptionKeepsItsFactsWhenItIsSerialised() throws Exception {
        NotFoundException thrown = assertThrows(NotFoundException.class, () -> Checkpoint.open(folder.resolve("nothing")));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new ObjectOutputStream(bytes).writeObject(thrown);
        ShardwrightException read = (ShardwrightException)
                new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
        assertTrue(thrown.details().containsKey("file"));
        assertEquals(thrown.details(), read.details());
        assertEquals(StatusCode.NOT_FOUND, read.code());
        assertEquals(thrown.getMessage(), read.getMessage());
        assertEquals(thrown.isRetryable(), read.isRetryable());
        assertThrows(UnsupportedOperationException.class, () -> read.details().put("a", "b"));
    }

    @Test
    void aStateThatIsNoneIsRefusedAndKeepsWhatWasThere() {
        Path path = folder.resolve("p");
        try (State state = State.builder().add("w", new float[1]).build()) {
            Shardwright.save(state, path, new SaveOptions());
        }
        for (org.junit.jupiter.api.function.Executable call : List.<org.junit.jupiter.api.function.Executable>of(
                () -> Shardwright.save(null, path, new SaveOptions()),
                () -> Shardwright.saveAsync(null, path, new SaveOptions()),
                () -> Shardwright.loadInto(null, path, new LoadOptions()),
                () -> Shardwright.loadAsync(null, path, new LoadOptions()),
                () -> SavePlanner.create(null, 0, 1, new SaveOptions()), () -> State.of(null))) {
            assertEquals("state", assertThrows(InvalidArgumentException.class, call).details().get("parameter"));
        }
        try (Checkpoint checkpoint = Checkpoint.open(path)) {
            assertEquals(List.of("w"), checkpoint.keys());
        }
    }
}
