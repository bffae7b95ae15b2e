// SPDX-License-Identifier: Apache-2.0
package io.shardwright;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** Text and blobs as the native part wants them: UTF-8 bytes, NUL-terminated where C expects it. */
final class Text {
    private Text() {}

    static String of(byte[] utf8) {
        return utf8 == null ? "" : new String(utf8, StandardCharsets.UTF_8);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** NUL-terminated; a NUL inside is refused, because C would cut the text there. */
    static byte[] terminated(String text) {
        byte[] bytes = bytes(text);
        for (byte b : bytes) {
            if (b == 0) {
                throw ShardwrightException.of(StatusCode.INVALID_ARGUMENT, "a path holds a NUL character");
            }
        }
        return Arrays.copyOf(bytes, bytes.length + 1);
    }

    static byte[] terminatedOrNull(String text) {
        return text == null ? null : terminated(text);
    }

    /** Texts in one blob, cut by offsets. */
    static final class Blob {
        final byte[] bytes;
        final long[] offsets;

        Blob(List<byte[]> parts) {
            offsets = new long[parts.size() + 1];
            for (int i = 0; i < parts.size(); i++) {
                offsets[i + 1] = offsets[i] + parts.get(i).length;
            }
            bytes = new byte[Math.toIntExact(offsets[parts.size()])];
            for (int i = 0; i < parts.size(); i++) {
                System.arraycopy(parts.get(i), 0, bytes, (int) offsets[i], parts.get(i).length);
            }
        }

        static Blob ofTexts(List<String> texts) {
            return new Blob(texts.stream().map(Text::bytes).collect(java.util.stream.Collectors.toList()));
        }
    }
}
