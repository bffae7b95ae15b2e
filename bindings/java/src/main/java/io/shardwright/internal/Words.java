// SPDX-License-Identifier: Apache-2.0
// Words of option values, equal in all languages.
package io.shardwright.internal;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Between enum constants and the words of the options table. */
public final class Words {
    private Words() {}

    public static String of(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }

    /** INVALID_ARGUMENT naming option, word and what there is. */
    public static <E extends Enum<E>> E named(String option, String word, E[] values) {
        List<String> known = new ArrayList<>();
        for (E value : values) {
            if (of(value).equals(word)) {
                return value;
            }
            known.add(of(value));
        }
        throw Invalid.parameter(option,
                "option " + option + " is " + word + "; it must be one of " + String.join(", ", known));
    }
}
