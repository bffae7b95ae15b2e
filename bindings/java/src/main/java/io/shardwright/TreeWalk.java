// SPDX-License-Identifier: Apache-2.0
// From a nested tree to the entries of a state.
package io.shardwright;

import io.shardwright.internal.Invalid;
import io.shardwright.internal.Json;
import io.shardwright.planning.Entry;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Names of nested entries are joined with "."; paths keep the type of each key. A container below which no tensor and no
 * bytes are left is one JSON object; the containers above it are structure.
 */
final class TreeWalk {
    private final State.Builder builder;

    TreeWalk(State.Builder builder) {
        this.builder = builder;
    }

    /** A place in the tree: joined name, and path text that is still open for further parts. */
    private static final class Place {
        static final Place TOP = new Place("", "");

        final String name;
        final String path;

        Place(String name, String path) {
            this.name = name;
            this.path = path;
        }

        Place below(Object key, boolean inMap) {
            String part;
            if (key instanceof String) {
                part = Json.quoted((String) key);
            } else if (key instanceof Integer || key instanceof Long) {
                part = inMap ? key.toString() : "[" + key + "]";
            } else {
                throw Invalid.entry(name, "a map has a key " + key
                        + "; keys above a tensor must be text or integers");
            }
            return path.isEmpty() ? new Place(key.toString(), "[" + part)
                    : new Place(name + "." + key, path + "," + part);
        }

        /** Path of an entry: one text key alone is flat. */
        String closed(boolean flat) {
            return flat ? "" : path + "]";
        }
    }

    void add(Map<?, ?> tree) {
        walkMap(tree, Place.TOP, true, 0);
    }

    private boolean walkMap(Map<?, ?> map, Place at, boolean top, int depth) {
        Map<Object, Object> pending = new LinkedHashMap<>();
        boolean holds = false;
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            holds |= visit(entry.getKey(), entry.getValue(), at, true, depth, pending);
        }
        flush(pending, at, true, holds || top);
        return holds;
    }

    private boolean walkList(List<?> list, Place at, int depth) {
        Map<Object, Object> pending = new LinkedHashMap<>();
        boolean holds = false;
        for (int i = 0; i < list.size(); i++) {
            holds |= visit(i, list.get(i), at, false, depth, pending);
        }
        flush(pending, at, false, holds);
        return holds;
    }

    /** JSON values beside tensors are objects of their own; without tensors the container above is the object. */
    private void flush(Map<Object, Object> pending, Place at, boolean inMap, boolean separate) {
        if (!separate) {
            return;
        }
        pending.forEach((key, value) -> {
            Place place = at.below(key, inMap);
            builder.object(place.name, place.closed(isFlat(at, key)), "application/json",
                    Json.encode(value, place.name), Kind.AUTO);
        });
    }

    private static boolean isFlat(Place parent, Object key) {
        return parent == Place.TOP && key instanceof String;
    }

    /** Adds a value; false when it is JSON only, and then it is pending. */
    private boolean visit(Object key, Object value, Place at, boolean inMap, int depth, Map<Object, Object> pending) {
        if (depth > Json.DEPTH_MAX) {
            throw Invalid.entry(at.name, "nested deeper than " + Json.DEPTH_MAX
                    + " levels, or holds itself");
        }
        boolean container = value instanceof Map || value instanceof List;
        if (Json.isScalar(value) || container && isJson(value, depth)) {
            pending.put(key, value);
            return false;
        }
        Place place = at.below(key, inMap);
        if (value instanceof Map) {
            return walkMap((Map<?, ?>) value, place, false, depth + 1);
        } else if (value instanceof List) {
            return walkList((List<?>) value, place, depth + 1);
        }
        leaf(place, place.closed(isFlat(at, key)), value);
        return true;
    }

    private static boolean isJson(Object value, int depth) {
        if (value instanceof Map) {
            return depth <= Json.DEPTH_MAX && ((Map<?, ?>) value).values().stream().allMatch(v -> isJson(v, depth + 1));
        } else if (value instanceof List) {
            return depth <= Json.DEPTH_MAX && ((List<?>) value).stream().allMatch(v -> isJson(v, depth + 1));
        }
        return Json.isScalar(value);
    }

    private void leaf(Place place, String path, Object value) {
        if (value instanceof byte[]) {
            builder.object(place.name, path, "application/octet-stream", (byte[]) value, Kind.AUTO);
        } else if (value instanceof HostTensor) {
            builder.add(place.name, path, (HostTensor) value);
        } else if (value instanceof Tensor) {
            builder.add(place.name, path, HostTensor.of((Tensor) value));
        } else if (HostMemory.dtypeOf(value) != null) {
            builder.add(place.name, path, HostTensor.of(value));
        } else {
            throw Invalid.entry(place.name, "a " + value.getClass().getTypeName()
                    + " is neither a tensor nor a JSON value nor bytes");
        }
    }
}
