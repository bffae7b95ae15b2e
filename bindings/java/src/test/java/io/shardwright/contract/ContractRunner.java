// SPDX-License-Identifier: Apache-2.0
// Runs the behaviour contract of the bindings: ContractRunner contract.json [FOLDER]. Prints a line per scenario and, at the
// end, "N passed, N failed, N skipped".
package io.shardwright.contract;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.shardwright.errors.ShardwrightException;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The program. */
public final class ContractRunner {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private final Path keptFolder;
    private int passed;
    private int failed;
    private int skipped;

    /** `keptFolder`: where scenarios run in folders of their names, which stay; null = in folders that are removed. */
    private ContractRunner(Path keptFolder) {
        this.keptFolder = keptFolder;
    }

    /** A result that is not what the contract wants. */
    static final class Wrong extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Wrong(String message) {
            super(message);
        }
    }

    /**
     * Runs all scenarios of a file; status 1 when one failed.
     *
     * @param arguments the file, and where scenarios leave theirs
     * @throws IOException when it cannot be read
     */
    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 1 && arguments.length != 2) {
            System.err.println("usage: ContractRunner contract.json [FOLDER]");
            System.exit(2);
        }
        JsonObject contract = JsonParser.parseString(Files.readString(Path.of(arguments[0]))).getAsJsonObject();
        ContractRunner runner = new ContractRunner(arguments.length == 2 ? Path.of(arguments[1]) : null);
        for (JsonElement scenario : contract.getAsJsonArray("scenarios")) {
            runner.run(scenario.getAsJsonObject());
        }
        OUT.println(runner.passed + " passed, " + runner.failed + " failed, " + runner.skipped + " skipped");
        System.exit(runner.failed == 0 ? 0 : 1);
    }

    private void run(JsonObject scenario) throws IOException {
        String name = scenario.get("name").getAsString();
        JsonElement reason = scenario.has("skip") ? scenario.getAsJsonObject("skip").get("java") : null;
        if (reason != null) {
            OUT.println("skipped: " + name + ": " + reason.getAsString());
            skipped++;
            return;
        }
        Path folder = keptFolder == null ? Files.createTempDirectory("java-contract")
                : Files.createDirectories(keptFolder.resolve(name));
        try (Interpreter interpreter = new Interpreter(folder)) {
            runSteps(scenario, interpreter);
            interpreter.checkDigests(scenario.getAsJsonObject("digest"));
            OUT.println("passed: " + name);
            passed++;
        } catch (Exception e) {
            OUT.println("FAILED: " + name + ": " + e);
            failed++;
        } finally {
            if (keptFolder == null) {
                remove(folder);
            }
        }
    }

    private static void runSteps(JsonObject scenario, Interpreter interpreter) {
        JsonArray steps = scenario.getAsJsonArray("steps");
        for (int i = 0; i < steps.size(); i++) {
            JsonObject step = steps.get(i).getAsJsonObject();
            Throwable end = null;
            try {
                interpreter.step(step);
            } catch (Exception e) {
                end = e;
            }
            if (end instanceof Wrong) {
                throw (Wrong) end;
            } else if (i + 1 == steps.size()) {
                checkEnd(scenario, end);
            } else if (end != null) {
                throw new Wrong("step " + i + " (" + step.get("op").getAsString() + "): " + end);
            }
        }
    }

    private static void checkEnd(JsonObject scenario, Throwable end) {
        String code = scenario.get("code").getAsString();
        if (end == null) {
            require(code.equals("OK"), "succeeded, " + code + " was expected");
        } else if (end instanceof FailingStorage.Failure) {
            require(code.equals("HOST_EXCEPTION"), "an exception of the host came out");
        } else if (end instanceof ShardwrightException) {
            ShardwrightException error = (ShardwrightException) end;
            require(error.code().name().equals(code), code + " was expected, got " + error.code() + ": " + error);
            checkDetails(scenario.getAsJsonObject("details"), error);
            if (scenario.has("says")) {
                for (JsonElement text : scenario.getAsJsonArray("says")) {
                    require(error.getMessage().contains(text.getAsString()), "the message lacks " + text + ": " + error);
                }
            }
        } else {
            throw new Wrong("another exception came out: " + end);
        }
    }

    /** The error has these details and no others. */
    private static void checkDetails(JsonObject wanted, ShardwrightException error) {
        Set<String> keys = wanted == null ? Set.of() : wanted.keySet();
        require(error.details().keySet().equals(keys),
                "details " + keys + " were expected, got " + error.details() + " of " + error);
        for (String key : keys) {
            require(Values.matches(wanted.get(key).getAsString(), error.details().get(key)),
                    "detail " + key + " is not " + wanted.get(key) + " in " + error.details() + " of " + error);
        }
    }

    static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new Wrong(otherwise);
        }
    }

    private static void remove(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            List<Path> deepestFirst = all.sorted(Comparator.reverseOrder()).collect(Collectors.toList());
            for (Path path : deepestFirst) {
                Files.delete(path);
            }
        }
    }
}
