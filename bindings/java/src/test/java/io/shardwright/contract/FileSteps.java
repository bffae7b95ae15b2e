// SPDX-License-Identifier: Apache-2.0
// The steps that change files.
package io.shardwright.contract;

import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Runs file steps below a folder. */
final class FileSteps {
    private final Path root;

    FileSteps(Path root) {
        this.root = root;
    }

    /** A path in which one `*` stands for the only folder that fits. */
    private Path resolve(String text) throws IOException {
        Path path = root;
        for (String part : text.split("/")) {
            if (!part.equals("*")) {
                path = path.resolve(part);
                continue;
            }
            try (Stream<Path> entries = Files.list(path)) {
                List<Path> folders = entries.filter(Files::isDirectory).collect(Collectors.toList());
                ContractRunner.require(folders.size() == 1, folders.size() + " entries fit " + text);
                path = folders.get(0);
            }
        }
        return path;
    }

    /** False when the step is none of files. */
    boolean run(JsonObject step) throws IOException {
        String operation = Values.text(step, "op");
        if (!List.of("make_directory", "write_file", "remove_file", "truncate_file", "flip_bit", "move_and_link")
                .contains(operation)) {
            return false;
        }
        Path path = resolve(Values.text(step, "path"));
        switch (operation) {
            case "make_directory":
                Files.createDirectories(path);
                break;
            case "write_file":
                Files.createDirectories(path.getParent());
                Files.writeString(path, Values.text(step, "text"));
                break;
            case "remove_file":
                Files.delete(path);
                break;
            case "truncate_file":
                byte[] whole = Files.readAllBytes(path);
                Files.write(path, Arrays.copyOf(whole, whole.length - (int) Values.number(step, "drop", 0)));
                break;
            case "flip_bit":
                byte[] bytes = Files.readAllBytes(path);
                bytes[(int) Values.number(step, "offset", 0)] ^= (byte) (1 << Values.number(step, "bit", 0));
                Files.write(path, bytes);
                break;
            default:
                Path to = root.resolve(Values.text(step, "to"));
                Files.move(path, to);
                Files.createSymbolicLink(path, to);
                break;
        }
        return true;
    }
}
