// SPDX-License-Identifier: Apache-2.0
// Text and blobs between Java and the native part.
package io.shardwright.internal;

import io.shardwright.errors.ShardwrightException;
import io.shardwright.errors.StatusCode;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** UTF-8 bytes, NUL-terminated where C expects it. JNI strings are not used: they are modified UTF-8. */
public final class Text {
    /** What Path makes of s3://bucket. */
    private static final Pattern URI_LIKE = Pattern.compile("^[A-Za-z][A-Za-z0-9+.-]+:/");
    private static final char[] HEX = "0123456789abcdef".toCharArray();

    private Text() {}

    public static String of(byte[] utf8) {
        return utf8 == null ? "" : new String(utf8, StandardCharsets.UTF_8);
    }

    /** INVALID_ARGUMENT for half a surrogate pair, which UTF-8 cannot hold. */
    public static byte[] bytes(String text) {
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

    /** A path, NUL-terminated; a NUL inside is refused, because C would cut the text there. */
    public static byte[] terminated(String path) {
        return terminated("a path", path);
    }

    /** The same of any text; what: the beginning of the message. */
    public static byte[] terminated(String what, String text) {
        byte[] bytes = bytes(text);
        for (byte b : bytes) {
            if (b == 0) {
                throw ShardwrightException.of(StatusCode.INVALID_ARGUMENT, what + " holds a NUL character");
            }
        }
        return Arrays.copyOf(bytes, bytes.length + 1);
    }

    /** As path; null stays null. */
    public static byte[] pathOrNull(Path path) {
        return path == null ? null : path(path);
    }

    /** The bytes of a path as the system has them, made absolute, NUL-terminated. */
    public static byte[] path(Path path) {
        if (path.getFileSystem() != FileSystems.getDefault()) {
            throw Invalid.parameter("path", "path " + path + " is of the file system "
                    + path.getFileSystem().provider().getScheme() + "; files there are reached by a storage of the host");
        }
        String text = path.toString();
        if (text.isEmpty() || URI_LIKE.matcher(text).find()) {
            return terminated(text.replaceFirst(":/+", "://")); // the library says what is wrong with it
        }
        return systemBytes(path.toUri().getRawPath());
    }

    /** Of the path of a URI, which holds each byte of a name as it is: text cannot, where names are not of the locale. */
    private static byte[] systemBytes(String escaped) {
        byte[] from = escaped.getBytes(StandardCharsets.US_ASCII);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int i = 0; i < from.length; i++) {
            boolean isEscape = from[i] == '%';
            bytes.write(isEscape ? Integer.parseInt(escaped.substring(i + 1, i + 3), 16) : from[i]);
            i += isEscape ? 2 : 0;
        }
        byte[] made = bytes.toByteArray();
        // The URI of a directory ends with a slash, its path does not.
        int size = made.length > 1 && made[made.length - 1] == '/' ? made.length - 1 : made.length;
        return Arrays.copyOf(Arrays.copyOf(made, size), size + 1);
    }

    public static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder(2 * bytes.length);
        for (byte b : bytes) {
            text.append(HEX[(b >> 4) & 15]).append(HEX[b & 15]);
        }
        return text.toString();
    }

    /** Texts in one blob, cut by offsets. */
    public static final class Blob {
        public final byte[] bytes;
        public final long[] offsets;

        public Blob(List<byte[]> parts) {
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

        public static Blob ofTexts(List<String> texts) {
            return new Blob(texts.stream().map(Text::bytes).collect(Collectors.toList()));
        }
    }
}
