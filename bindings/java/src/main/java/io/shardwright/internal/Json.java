// SPDX-License-Identifier: Apache-2.0
// JSON leaves of states, with tags for what JSON has no form for: {"$float": "nan"}, {"$map": [[key, value], ...]} for maps
// with keys that are not text or begin with "$", {"$tuple": [...]} as other languages write it.
package io.shardwright.internal;

import io.shardwright.planning.Entry;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Map;

/** Writes compact JSON. */
public final class Json {
    public static final int DEPTH_MAX = 200;

    private final StringBuilder out = new StringBuilder();
    private final String where;

    private Json(String where) {
        this.where = where;
    }

    /** UTF-8 text of a value; `where` names it in errors. */
    public static byte[] encode(Object value, String where) {
        Json json = new Json(where);
        json.write(value, 0);
        return Text.bytes(json.out.toString());
    }

    /** Text of one JSON string. */
    public static String quoted(String text) {
        Json json = new Json("");
        json.writeText(text);
        return json.out.toString();
    }

    public static Object decode(String text) {
        return new JsonReader(text).value();
    }

    /** True for what has a JSON form by itself. */
    public static boolean isScalar(Object value) {
        return value == null || value instanceof Boolean || value instanceof String || value instanceof Number;
    }

    private void write(Object value, int depth) {
        if (depth > DEPTH_MAX) {
            throw Invalid.entry(where, "nested deeper than " + DEPTH_MAX + " levels, or holds itself");
        }
        if (value == null || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof String) {
            writeText((String) value);
        } else if (value instanceof Number) {
            writeNumber((Number) value);
        } else if (value instanceof Iterable) {
            writeList((Iterable<?>) value, depth);
        } else if (value instanceof Map) {
            writeMap((Map<?, ?>) value, depth);
        } else {
            throw Invalid.entry(where, "a " + value.getClass().getTypeName()
                    + " is neither a tensor nor a JSON value nor bytes");
        }
    }

    private void writeNumber(Number value) {
        if (value instanceof Double || value instanceof Float) {
            double number = value.doubleValue();
            if (Double.isNaN(number)) {
                out.append("{\"$float\":\"nan\"}");
            } else if (Double.isInfinite(number)) {
                out.append(number > 0 ? "{\"$float\":\"inf\"}" : "{\"$float\":\"-inf\"}");
            } else {
                out.append(number);
            }
        } else if (value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long
                || value instanceof BigInteger || value instanceof BigDecimal) {
            out.append(value);
        } else {
            throw Invalid.entry(where, "a number of type " + value.getClass().getTypeName());
        }
    }

    private void writeText(String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c == '\n') {
                out.append("\\n");
            } else if (c == '\t') {
                out.append("\\t");
            } else if (c == '\r') {
                out.append("\\r");
            } else if (c == '\b') {
                out.append("\\b");
            } else if (c == '\f') {
                out.append("\\f");
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private void writeList(Iterable<?> values, int depth) {
        String separator = "[";
        for (Object value : values) {
            out.append(separator);
            write(value, depth + 1);
            separator = ",";
        }
        out.append(separator.equals("[") ? "[]" : "]");
    }

    private void writeMap(Map<?, ?> map, int depth) {
        boolean plain = map.keySet().stream().allMatch(k -> k instanceof String && !((String) k).startsWith("$"));
        out.append(plain ? "{" : "{\"$map\":[");
        String separator = "";
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(separator).append(plain ? "" : "[");
            if (!isScalar(entry.getKey())) {
                throw Invalid.entry(where, "a key of type " + entry.getKey().getClass().getTypeName());
            }
            write(entry.getKey(), depth + 1);
            out.append(plain ? ":" : ",");
            write(entry.getValue(), depth + 1);
            out.append(plain ? "" : "]");
            separator = ",";
        }
        out.append(plain ? "}" : "]}");
    }
}
