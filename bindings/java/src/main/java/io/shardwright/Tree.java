// SPDX-License-Identifier: Apache-2.0
// From entries with paths back to a nested tree.
package io.shardwright;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import io.shardwright.internal.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Collects entries; keys keep their types, integers as Long. Not thread-safe. */
final class Tree {
    private final Map<Object, Object> top = new LinkedHashMap<>();

    /** A list whose positions arrive in any order. */
    private static final class Positions {
        final TreeMap<Long, Object> values = new TreeMap<>();
    }

    /** Adds an entry; an empty path is a flat one. DATA_LOSS for a path that is none, or two kinds of container at one place. */
    void put(String name, String path, Object value) {
        if (path.isEmpty()) {
            top.put(name, value);
            return;
        }
        Object parts = Json.decode(path);
        if (!(parts instanceof List) || ((List<?>) parts).isEmpty()) {
            throw bad(name, path);
        }
        Object container = top;
        List<?> keys = (List<?>) parts;
        for (int i = 0; i < keys.size() - 1; i++) {
            Object inner = get(container, keys.get(i), name, path);
            if (inner == null) {
                inner = keys.get(i + 1) instanceof List ? new Positions() : new LinkedHashMap<>();
                set(container, keys.get(i), inner, name, path);
            }
            container = inner;
        }
        set(container, keys.get(keys.size() - 1), value, name, path);
    }

    private static ShardwrightException bad(String name, String path) {
        return ShardwrightException.of(StatusCode.DATA_LOSS, "entry " + name + " has the nested path " + path
                + ", which does not fit the other entries");
    }

    private static Long position(Object key, String name, String path) {
        if (key instanceof List && ((List<?>) key).size() == 1 && ((List<?>) key).get(0) instanceof Long) {
            return (Long) ((List<?>) key).get(0);
        }
        throw bad(name, path);
    }

    private static Object get(Object container, Object key, String name, String path) {
        if (container instanceof Positions) {
            return ((Positions) container).values.get(position(key, name, path));
        }
        if (container instanceof Map && !(key instanceof List)) {
            return ((Map<?, ?>) container).get(key);
        }
        throw bad(name, path);
    }

    @SuppressWarnings("unchecked") // maps here are those of put
    private static void set(Object container, Object key, Object value, String name, String path) {
        if (container instanceof Positions) {
            ((Positions) container).values.put(position(key, name, path), value);
        } else if (container instanceof Map && !(key instanceof List)) {
            ((Map<Object, Object>) container).put(key, value);
        } else {
            throw bad(name, path);
        }
    }

    /** The tree with lists in place of positions. */
    @SuppressWarnings("unchecked")
    Map<Object, Object> root() {
        return (Map<Object, Object>) finished(top);
    }

    private static Object finished(Object value) {
        if (value instanceof Positions) {
            List<Object> list = new ArrayList<>();
            ((Positions) value).values.values().forEach(v -> list.add(finished(v)));
            return list;
        }
        if (value instanceof LinkedHashMap) {
            Map<Object, Object> map = new LinkedHashMap<>();
            ((Map<?, ?>) value).forEach((k, v) -> map.put(k, finished(v)));
            return map;
        }
        return value;
    }
}
