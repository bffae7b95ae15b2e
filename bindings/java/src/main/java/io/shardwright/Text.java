// SPDX-License-Identifier: Apache-2.0
// Text and blobs between Java and the native part.
package io.shardwright;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** UTF-8 bytes, NUL-terminated where C expects it. JNI strings are not used: they are modified UTF-8. */
final class Text {
    private static final char[] HEX = "0123456789abcdef".toCharArray();

    private Text() {}

    static String of(byte[] utf8) {
        return utf8 == null ? "" : new String(utf8, StandardCharsets.UTF_8);
    }

    /** INVALID_ARGUMENT for half a surrogate pair, which UTF-8 cannot hold. */
    static byte[] bytes(String text) {
        if (!hasSurrogates(text)) {
            return text.getBytes(StandardCharsets.UTF_8); // an encoder per text costs several times as much
        }
        try {
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            return Arrays.copyOf(encoded.array(), encoded.limit());
        } catch (CharacterCodingException e) {
            throw ShardwrightException.of(StatusCode.INVALID_ARGUMENT,
                    "text with an unpaired surrogate cannot be written as UTF-8: " + e.getMessage());
        }
    }

    private static boolean hasSurrogates(String text) {
        for (int i = 0; i < text.length(); i++) {
            if (Character.isSurrogate(text.charAt(i))) {
                return true;
            }
        }
        return false;
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

    /** Absolute text of a path of the default file system. */
    static String path(Path path) {
        return path.toAbsolutePath().toString();
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder(2 * bytes.length);
        for (byte b : bytes) {
            text.append(HEX[(b >> 4) & 15]).append(HEX[b & 15]);
        }
        return text.toString();
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
            if (offsets[parts.size()] > Integer.MAX_VALUE - 8) {
                throw ShardwrightException.of(StatusCode.RESOURCE_EXHAUSTED,
                        offsets[parts.size()] + " bytes of one call do not fit a Java array");
            }
            bytes = new byte[(int) offsets[parts.size()]];
            for (int i = 0; i < parts.size(); i++) {
                System.arraycopy(parts.get(i), 0, bytes, (int) offsets[i], parts.get(i).length);
            }
        }

        static Blob ofTexts(List<String> texts) {
            return new Blob(texts.stream().map(Text::bytes).collect(Collectors.toList()));
        }
    }
}
