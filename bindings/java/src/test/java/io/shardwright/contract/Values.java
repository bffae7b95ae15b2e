// SPDX-License-Identifier: Apache-2.0
// Texts, numbers and tensor bytes of the contract.
package io.shardwright.contract;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.shardwright.DType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Reads values of a step. */
final class Values {
    private Values() {}

    /** A JSON string, or {"repeat": text, "count": n}; "" when it is absent. */
    static String text(JsonObject step, String key) {
        JsonElement value = step.get(key);
        if (value == null || value.isJsonNull()) {
            return "";
        }
        if (value.isJsonObject()) {
            return value.getAsJsonObject().get("repeat").getAsString().repeat(value.getAsJsonObject().get("count").getAsInt());
        }
        return value.getAsString();
    }

    /** The texts are equal, or the wanted one holds a '*' for the part of the found one that is not fixed. */
    static boolean matches(String wanted, String found) {
        int star = wanted.indexOf('*');
        if (star < 0) {
            return found.equals(wanted);
        }
        return found.length() + 1 >= wanted.length()
                && found.startsWith(wanted.substring(0, star))
                && found.endsWith(wanted.substring(star + 1));
    }

    static long number(JsonObject step, String key, long otherwise) {
        return step.has(key) ? step.get(key).getAsLong() : otherwise;
    }

    static boolean flag(JsonObject step, String key) {
        return step.has(key) && step.get(key).getAsBoolean();
    }

    static long[] numbers(JsonObject step, String key) {
        if (!step.has(key)) {
            return new long[0];
        }
        long[] values = new long[step.getAsJsonArray(key).size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = step.getAsJsonArray(key).get(i).getAsLong();
        }
        return values;
    }

    static byte[] hex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte b : bytes) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }

    /** Row-major bytes of a step: its hex, or by its pattern. */
    static byte[] pattern(JsonObject step, DType dtype, long[] shape) {
        if (step.has("hex")) {
            return hex(text(step, "hex"));
        }
        long count = 1;
        for (long extent : shape) {
            count *= extent;
        }
        byte[] bytes = new byte[Math.toIntExact(dtype.byteSize(count))];
        long seed = number(step, "seed", 0);
        String pattern = step.has("pattern") ? text(step, "pattern") : "bytes";
        if (pattern.equals("index")) {
            fillIndex(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN), dtype.dtypeName(), count);
        } else if (pattern.equals("bytes")) {
            boolean bool = dtype.equals(DType.BOOL);
            for (int k = 0; k < bytes.length; k++) {
                bytes[k] = (byte) (bool ? (seed + k) % 2 : (seed + 31L * k) % 251);
            }
        }
        return bytes;
    }

    private static void fillIndex(ByteBuffer bytes, String dtype, long count) {
        for (long i = 0; i < count; i++) {
            switch (dtype) {
                case "float32": bytes.putFloat(i); break;
                case "float64": bytes.putDouble(i); break;
                case "int32": bytes.putInt((int) i); break;
                default: bytes.putLong(i); break;
            }
        }
    }

    /** Moves whole-byte elements of a matrix between row-major and column order. */
    static byte[] reorder(byte[] bytes, long[] shape, boolean toColumns) {
        int rows = (int) shape[0];
        int columns = (int) shape[1];
        int width = bytes.length / Math.max(1, rows * columns);
        byte[] out = new byte[bytes.length];
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < columns; c++) {
                int rowMajor = (r * columns + c) * width;
                int columnMajor = (c * rows + r) * width;
                System.arraycopy(bytes, toColumns ? rowMajor : columnMajor, out, toColumns ? columnMajor : rowMajor, width);
            }
        }
        return out;
    }
}
