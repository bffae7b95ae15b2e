// SPDX-License-Identifier: Apache-2.0
// Mappings: how entries are stored.
package io.shardwright;

import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.shw_nativeJNI;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Rules that say under which names, in which shapes and in which boxes the entries of a state are stored; for
 * {@link State#mapped}. Immutable, thread-safe; closing is not necessary.
 */
public final class Mapping extends Handle {
    private Mapping(long handle) {
        super(handle, Leak.QUIET, shw_nativeJNI::shw_mapping_release);
    }

    /**
     * Rules in JSON.
     *
     * @param json the rules, as docs/formats/mapping.md describes them
     * @param parameters values of "$name" in them
     * @return the mapping
     * @throws InvalidArgumentException naming line, rule and member of what is wrong, and parameters that are missing or not
     *     known
     */
    public static Mapping of(String json, Map<String, Long> parameters) {
        Structs.MappingSpec spec = specOf(parameters);
        spec.json = Text.bytes(json);
        return made(spec);
    }

    /**
     * Rules that the library brings.
     *
     * @param name "swiglu", "gpt", "gpt_swiglu", "moe" or "mamba"
     * @param parameters values of "$name" in them
     * @return the mapping
     * @throws NotFoundException when there is none of that name
     * @throws InvalidArgumentException for parameters that are missing or not known
     */
    public static Mapping shipped(String name, Map<String, Long> parameters) {
        Structs.MappingSpec spec = specOf(parameters);
        spec.shipped = Text.terminated(name);
        return made(spec);
    }

    private static Structs.MappingSpec specOf(Map<String, Long> parameters) {
        Map<String, Long> ordered = new LinkedHashMap<>(parameters);
        Structs.MappingSpec spec = new Structs.MappingSpec();
        Text.Blob names = Text.Blob.ofTexts(new ArrayList<>(ordered.keySet()));
        spec.parameterNames = names.bytes;
        spec.parameterNameOffsets = names.offsets;
        spec.parameterValues = ordered.values().stream().mapToLong(Long::longValue).toArray();
        spec.parameterCount = ordered.size();
        return spec;
    }

    private static Mapping made(Structs.MappingSpec spec) {
        NativeLoader.load();
        return new Mapping(shw_nativeJNI.shw_mapping_create(spec));
    }

    /** The handle of a new state. */
    long map(long state) {
        return with(h -> shw_nativeJNI.shw_state_map(state, h));
    }
}
