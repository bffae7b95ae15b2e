// SPDX-License-Identifier: Apache-2.0
// Objects of the JSON texts that the library gives, as typed classes take them apart.
package io.shardwright.internal;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** One JSON object. What is not there is empty, 0 or false: another release of the library may leave it out. */
public final class Facts {
    private final Map<?, ?> map;

    private Facts(Object value) {
        map = value instanceof Map ? (Map<?, ?>) value : Map.of();
    }

    /** The object of a whole text. */
    public static Facts of(String json) {
        return new Facts(Json.decode(json));
    }

    public boolean has(String key) {
        return map.get(key) != null;
    }

    public String text(String key) {
        Object value = map.get(key);
        return value instanceof String ? (String) value : "";
    }

    public long number(String key) {
        return numberOf(map.get(key));
    }

    public double real(String key) {
        Object value = map.get(key);
        return value instanceof Number ? ((Number) value).doubleValue() : 0;
    }

    public boolean flag(String key) {
        return Boolean.TRUE.equals(map.get(key));
    }

    public Facts object(String key) {
        return new Facts(map.get(key));
    }

    public List<Facts> objects(String key) {
        return values(key).stream().map(Facts::new).collect(Collectors.toUnmodifiableList());
    }

    public List<String> texts(String key) {
        return values(key).stream().map(String::valueOf).collect(Collectors.toUnmodifiableList());
    }

    public long[] numbers(String key) {
        return numbersOf(map.get(key));
    }

    /** A list of lists of numbers. */
    public List<long[]> columns(String key) {
        return values(key).stream().map(Facts::numbersOf).collect(Collectors.toUnmodifiableList());
    }

    /** The keys, in their order. */
    public List<String> keys() {
        return map.keySet().stream().map(String::valueOf).collect(Collectors.toUnmodifiableList());
    }

    private List<?> values(String key) {
        Object value = map.get(key);
        return value instanceof List ? (List<?>) value : List.of();
    }

    private static long[] numbersOf(Object value) {
        return value instanceof List ? ((List<?>) value).stream().mapToLong(Facts::numberOf).toArray() : new long[0];
    }

    private static long numberOf(Object value) {
        return value instanceof Number ? ((Number) value).longValue() : 0;
    }
}
