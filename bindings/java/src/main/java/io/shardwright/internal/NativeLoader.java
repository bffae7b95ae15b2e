// SPDX-License-Identifier: Apache-2.0
// Finds and loads the two shared libraries.
package io.shardwright.internal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads the core library and the JNI library, once. Order: the system property {@code shardwright.library.path}, the
 * environment variable {@code SHW_LIBRARY_PATH}, {@code java.library.path}, then the copies inside the jar.
 */
public final class NativeLoader {
    private static final String CORE = "libshardwright.so.0";
    private static final String JNI = "libshardwrightjni.so";
    private static final String RESOURCES = "/META-INF/native/linux-" + System.getProperty("os.arch").replace("amd64", "x86_64") + "/";
    private static boolean loaded;

    private NativeLoader() {}

    /** Loads the libraries or throws UnsatisfiedLinkError with everything that was tried. */
    public static synchronized void load() {
        if (loaded) {
            return;
        }
        List<String> tried = new ArrayList<>();
        for (Path folder : folders()) {
            if (tryFolder(folder, tried)) {
                finish();
                return;
            }
        }
        Path unpacked = unpack(tried);
        if (unpacked == null || !tryFolder(unpacked, tried)) {
            throw new UnsatisfiedLinkError("the shardwright libraries were not found; tried " + String.join("; ", tried));
        }
        finish();
    }

    private static List<Path> folders() {
        List<Path> found = new ArrayList<>();
        addFolder(found, System.getProperty("shardwright.library.path"));
        addFolder(found, System.getenv("SHW_LIBRARY_PATH"));
        for (String part : System.getProperty("java.library.path", "").split(":")) {
            addFolder(found, part);
        }
        return found;
    }

    private static void addFolder(List<Path> folders, String text) {
        if (text != null && !text.isEmpty()) {
            Path path = Path.of(text).toAbsolutePath();
            folders.add(Files.isRegularFile(path) ? path.getParent() : path);
        }
    }

    private static boolean tryFolder(Path folder, List<String> tried) {
        Path core = folder.resolve(CORE);
        Path jni = folder.resolve(JNI);
        if (!Files.isRegularFile(core) || !Files.isRegularFile(jni)) {
            tried.add(folder + ": no " + CORE + " with " + JNI);
            return false;
        }
        try {
            System.load(core.toString());
            System.load(jni.toString());
            return true;
        } catch (UnsatisfiedLinkError e) {
            tried.add(folder + ": " + e.getMessage());
            return false;
        }
    }

    /** Copies the libraries of the jar into a private directory that goes at exit; null when the jar has none. */
    private static Path unpack(List<String> tried) {
        try {
            Path folder = Files.createTempDirectory("shardwright-native",
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            folder.toFile().deleteOnExit();
            for (String name : new String[] {CORE, JNI}) {
                try (InputStream in = NativeLoader.class.getResourceAsStream(RESOURCES + name)) {
                    if (in == null) {
                        tried.add("jar resource " + RESOURCES + name);
                        Files.delete(folder);
                        return null;
                    }
                    Files.copy(in, folder.resolve(name), StandardCopyOption.REPLACE_EXISTING);
                    folder.resolve(name).toFile().deleteOnExit();
                }
            }
            return folder;
        } catch (IOException e) {
            tried.add("unpacking the jar: " + e);
            return null;
        }
    }

    /** Whether classes of this version go with a library of that interface: while its major is 0, only the same minor does. */
    static boolean fits(long major, long minor) {
        boolean minorFits = major == 0 ? minor == shw_nativeConstants.SHW_ABI_MINOR
                : minor >= shw_nativeConstants.SHW_ABI_MINOR;
        return major == shw_nativeConstants.SHW_ABI_MAJOR && minorFits;
    }

    private static void finish() {
        long version = shw_nativeJNI.abiVersion();
        long major = version >>> 32;
        long minor = version & 0xFFFFFFFFL;
        if (!fits(major, minor)) {
            throw new UnsatisfiedLinkError("libshardwright has interface " + major + "." + minor + ", these classes were made for "
                    + shw_nativeConstants.SHW_ABI_MAJOR + "." + shw_nativeConstants.SHW_ABI_MINOR);
        }
        loaded = true;
    }
}
