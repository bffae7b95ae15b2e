// SPDX-License-Identifier: Apache-2.0
// What the packages show: nothing of the package internal.
package io.shardwright;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PackagesTest {
    @TempDir
    Path folder;

    private static final String INTERNAL = "io.shardwright.internal";

    /** Public classes of the library, those of the package internal left out. */
    static List<Class<?>> publicClasses() throws Exception {
        Path classes = Path.of(Shardwright.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        List<Class<?>> found = new ArrayList<>();
        try (Stream<Path> files = Files.walk(classes.resolve("io/shardwright"))) {
            for (Path file : files.filter(f -> f.toString().matches(".*/[A-Z]\\w*\\.class")).collect(Collectors.toList())) {
                String name = classes.relativize(file).toString().replace('/', '.');
                Class<?> type = Class.forName(name.substring(0, name.length() - ".class".length()));
                if (Modifier.isPublic(type.getModifiers()) && !type.getPackageName().equals(INTERNAL)) {
                    found.add(type);
                }
            }
        }
        return found;
    }

    private static boolean isSeen(int modifiers) {
        return Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers);
    }

    private static boolean isInternal(Class<?> type) {
        Class<?> element = type;
        while (element.isArray()) {
            element = element.getComponentType();
        }
        return element.getPackageName().equals(INTERNAL);
    }

    /** Members that a user sees and that name a class of the package internal. */
    private static List<String> leaks(Class<?> type) {
        List<String> found = new ArrayList<>();
        List<Executable> calls = new ArrayList<>(List.of(type.getDeclaredConstructors()));
        calls.addAll(List.of(type.getDeclaredMethods()));
        for (Executable call : calls) {
            boolean named = Stream.of(call.getParameterTypes()).anyMatch(PackagesTest::isInternal)
                    || call instanceof Method && isInternal(((Method) call).getReturnType());
            if (isSeen(call.getModifiers()) && named) {
                found.add(call.toString());
            }
        }
        for (Field field : type.getDeclaredFields()) {
            if (isSeen(field.getModifiers()) && isInternal(field.getType())) {
                found.add(field.toString());
            }
        }
        return found;
    }

    @Test
    void noMemberThatUsersSeeNamesAnInternalClass() throws Exception {
        for (Class<?> type : publicClasses()) {
            assertEquals(List.of(), leaks(type));
        }
        assertEquals(1, leaks(Leaking.class).size());
    }

    /** What the test would find. */
    public static final class Leaking {
        /** Leaks. */
        public io.shardwright.internal.Parts parts;
    }

    @Test
    void everyTopicHasAPackage() throws Exception {
        List<String> packages = publicClasses().stream().map(Class::getPackageName).distinct().sorted()
                .collect(Collectors.toList());
        assertEquals(List.of("io.shardwright", "io.shardwright.collective", "io.shardwright.errors",
                "io.shardwright.estimate", "io.shardwright.hsdp", "io.shardwright.layout", "io.shardwright.planning", "io.shardwright.storage"),
                packages);
        assertTrue(publicClasses().size() > 80);
    }

    /** What the compiler says of a module that uses the library with this statement; empty = it compiles. */
    private String compiled(String statement) throws Exception {
        Path sources = Files.createDirectories(folder.resolve("sources/user"));
        Files.writeString(sources.resolve("../module-info.java"), "module user { requires io.shardwright; }");
        Files.writeString(sources.resolve("User.java"), "package user;\nclass User { void use() { " + statement + " } }");
        String library = Path.of(Shardwright.class.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
        StringWriter said = new StringWriter();
        int status = ToolProvider.findFirst("javac").orElseThrow().run(new PrintWriter(said), new PrintWriter(said),
                // No class path: that of the tests has the library as well.
                "--module-path", library, "--class-path", sources.toString(), "-d", folder.resolve("classes").toString(),
                sources.resolve("../module-info.java").toString(), sources.resolve("User.java").toString());
        return status == 0 ? "" : said.toString();
    }

    @Test
    void theModuleExportsEveryTopicAndKeepsTheRest() throws Exception {
        String checkpoint = "try (var c = io.shardwright.Checkpoint.open(java.nio.file.Path.of(\"p\"))) "
                + "{ System.out.println(c.info().files() + c.toString()); }";
        assertEquals("", compiled(checkpoint));
        StringBuilder all = new StringBuilder();
        for (Class<?> type : publicClasses()) {
            all.append("{ ").append(type.getCanonicalName()).append(" x = null; }");
        }
        assertEquals("", compiled(all.toString()));
        String refused = compiled("io.shardwright.internal.Parts x = null;");
        assertTrue(refused.contains("does not export it"), refused);
    }
}
