// SPDX-License-Identifier: Apache-2.0
// Reads any checkpoint from Java: prints the SHA-256 digest of every tensor and a slice of one.
package io.shardwright.examples;

import io.shardwright.Checkpoint;
import io.shardwright.DigestAlgorithm;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.Tensor;
import io.shardwright.TensorInfo;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * {@code JavaReader CHECKPOINT NAME}: tab-separated lines "tensor", name, dtype, shape, digest; then "slice", name, bytes of
 * NAME[2:4, 0:4] in hex.
 */
public final class JavaReader {
    private JavaReader() {}

    private static void print(PrintStream out, String path, String name) {
        try (Checkpoint checkpoint = Checkpoint.open(Path.of(path))) {
            Map<String, String> digests = checkpoint.digest(DigestAlgorithm.SHA256);
            for (TensorInfo info : checkpoint.tensors()) {
                String shape = Arrays.stream(info.shape()).mapToObj(Long::toString).collect(Collectors.joining(","));
                out.print("tensor\t" + info.name() + "\t" + info.dtype() + "\t" + shape + "\t" + digests.get(info.name())
                        + "\n");
            }
            try (Tensor slice = checkpoint.readBox(name, new long[] {2, 0}, new long[] {2, 4})) {
                StringBuilder hex = new StringBuilder();
                for (byte b : slice.toByteArray()) {
                    hex.append(String.format("%02x", b));
                }
                out.print("slice\t" + name + "\t" + hex + "\n");
            }
        }
    }

    /**
     * Prints the lines to stdout, in UTF-8.
     *
     * @param arguments CHECKPOINT NAME
     */
    public static void main(String[] arguments) {
        if (arguments.length != 2) {
            System.err.println("usage: JavaReader CHECKPOINT NAME");
            System.exit(2);
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        try {
            print(out, arguments[0], arguments[1]);
        } catch (ShardwrightException e) {
            System.err.println(e.code() + ": " + e.getMessage());
            System.exit(1);
        }
    }
}
