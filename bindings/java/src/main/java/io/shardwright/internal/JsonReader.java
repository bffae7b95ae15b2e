// SPDX-License-Identifier: Apache-2.0
// Reads the JSON that states and paths hold.
package io.shardwright.internal;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A strict recursive reader; tags of Json become values again. DATA_LOSS for anything that is no JSON. */
public final class JsonReader {
    private final String text;
    private int at;

    public JsonReader(String text) {
        this.text = text;
    }

    /** The one value of the text. */
    public Object value() {
        Object value = read(0);
        skipSpace();
        if (at != text.length()) {
            throw bad("more text");
        }
        return value;
    }

    private ShardwrightException bad(String what) {
        return ShardwrightException.of(StatusCode.DATA_LOSS, "JSON text has " + what + " at character " + at);
    }

    private void skipSpace() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char next() {
        if (at >= text.length()) {
            throw bad("no end");
        }
        return text.charAt(at);
    }

    private boolean take(char c) {
        skipSpace();
        if (at < text.length() && text.charAt(at) == c) {
            at++;
            return true;
        }
        return false;
    }

    private void expect(char c) {
        if (!take(c)) {
            throw bad("no '" + c + "'");
        }
    }

    private Object read(int depth) {
        if (depth > 2 * Json.DEPTH_MAX) {
            throw bad("too many levels");
        }
        skipSpace();
        char c = next();
        if (c == '{') {
            return readMap(depth);
        } else if (c == '[') {
            return readList(depth);
        } else if (c == '"') {
            return readText();
        } else if (c == '-' || c >= '0' && c <= '9') {
            return readNumber();
        }
        return readWord();
    }

    private Object readWord() {
        for (String word : new String[] {"null", "true", "false"}) {
            if (text.startsWith(word, at)) {
                at += word.length();
                return word.equals("null") ? null : Boolean.valueOf(word);
            }
        }
        throw bad("an unknown word");
    }

    private Object readNumber() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(from, at);
        try {
            if (digits.matches("-?(0|[1-9][0-9]*)")) {
                BigInteger number = new BigInteger(digits);
                return number.bitLength() < Long.SIZE ? (Object) number.longValue() : number;
            }
            if (digits.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) {
                return Double.valueOf(digits);
            }
        } catch (NumberFormatException e) {
            throw bad("a bad number");
        }
        throw bad("a bad number");
    }

    private String readText() {
        StringBuilder out = new StringBuilder();
        expect('"');
        while (next() != '"') {
            char c = text.charAt(at++);
            if (c != '\\') {
                out.append(c);
                continue;
            }
            int escape = "\"\\/bfnrtu".indexOf(next());
            at++;
            if (escape < 0) {
                throw bad("a bad escape");
            } else if (escape < 8) {
                out.append("\"\\/\b\f\n\r\t".charAt(escape));
            } else {
                out.append(readUnit());
            }
        }
        at++;
        return out.toString();
    }

    private char readUnit() {
        if (at + 4 > text.length() || !text.substring(at, at + 4).matches("[0-9a-fA-F]{4}")) {
            throw bad("a bad escape");
        }
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
    }

    private List<Object> readList(int depth) {
        List<Object> values = new ArrayList<>();
        expect('[');
        if (take(']')) {
            return values;
        }
        do {
            values.add(read(depth + 1));
        } while (take(','));
        expect(']');
        return values;
    }

    private Object readMap(int depth) {
        Map<Object, Object> map = new LinkedHashMap<>();
        expect('{');
        if (take('}')) {
            return map;
        }
        do {
            skipSpace();
            String key = readText();
            expect(':');
            map.put(key, read(depth + 1));
        } while (take(','));
        expect('}');
        return map.size() == 1 ? untag(map) : map;
    }

    private Object untag(Map<Object, Object> map) {
        Object number = map.get("$float");
        if (number instanceof String) {
            return number.equals("nan") ? Double.NaN
                    : number.equals("inf") ? Double.POSITIVE_INFINITY : Double.NEGATIVE_INFINITY;
        }
        if (map.get("$tuple") instanceof List) {
            return map.get("$tuple");
        }
        if (map.get("$map") instanceof List) {
            Map<Object, Object> pairs = new LinkedHashMap<>();
            for (Object pair : (List<?>) map.get("$map")) {
                if (!(pair instanceof List) || ((List<?>) pair).size() != 2) {
                    throw bad("a $map without pairs before");
                }
                pairs.put(((List<?>) pair).get(0), ((List<?>) pair).get(1));
            }
            return pairs;
        }
        return map;
    }
}
