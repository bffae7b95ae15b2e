// SPDX-License-Identifier: Apache-2.0
// What is in a checkpoint.
package io.shardwright;

import io.shardwright.internal.Facts;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What is in a checkpoint.
 *
 * @param format e.g. {@code native}
 * @param generation id of the save that made it; empty when the format has none
 * @param worldSize ranks that wrote it
 * @param created when it was saved; null when the format does not say
 * @param hasDigests whether stored blocks have digests
 * @param metadata text that was saved with it, by key
 * @param incomplete names of tensors of which elements are not stored
 * @param notes what is worth knowing about it, one sentence each
 * @param chunkCount chunks of all tensors
 * @param tensorBytes packed bytes of all tensors
 * @param objectBytes bytes of all byte objects
 * @param fileBytes bytes of all data files
 * @param bytesByDtype bytes of the tensors of each dtype
 * @param files the data files
 * @param tensors the tensors in stored order, of rank_local ones those of all ranks
 * @param objects the byte objects in stored order
 * @param json all of it as JSON text with {@code "schema": 1}
 */
public record CheckpointInfo(String format, String generation, int worldSize, Instant created, boolean hasDigests,
        Map<String, String> metadata, List<String> incomplete, List<String> notes, long chunkCount, long tensorBytes,
        long objectBytes, long fileBytes, Map<DType, Long> bytesByDtype, List<FileInfo> files, List<TensorInfo> tensors,
        List<ObjectInfo> objects, String json) {
    private static final long NANOSECONDS = 1_000_000_000L;

    /**
     * One data file.
     *
     * @param key relative to the checkpoint
     * @param byteSize its size in bytes
     * @param rank that wrote it; -1 when files are not of ranks
     */
    public record FileInfo(String key, long byteSize, int rank) {}

    /**
     * One byte object.
     *
     * @param name its name
     * @param path nested path as JSON array text; empty = flat
     * @param contentType e.g. {@code application/json}
     * @param kind who holds it
     * @param rank owner of a rank_local object, else -1
     * @param byteSize its size in bytes
     */
    public record ObjectInfo(String name, String path, String contentType, Kind kind, int rank, long byteSize) {}

    static CheckpointInfo of(String json, List<TensorInfo> tensors, Map<String, String> metadata) {
        Facts facts = Facts.of(json);
        Facts bytes = facts.object("bytes");
        long created = facts.number("created_unix_ns");
        return new CheckpointInfo(facts.text("format"), facts.text("generation"), (int) facts.number("world_size"),
                created == 0 ? null : Instant.ofEpochSecond(created / NANOSECONDS, created % NANOSECONDS),
                facts.flag("digests"), Collections.unmodifiableMap(metadata), facts.texts("incomplete"), facts.texts("notes"),
                facts.object("counts").number("chunks"), bytes.number("tensors"), bytes.number("objects"),
                bytes.number("files"), byDtype(facts.object("bytes_by_dtype")),
                facts.objects("files").stream().map(CheckpointInfo::file).collect(Collectors.toUnmodifiableList()),
                List.copyOf(tensors),
                facts.objects("objects").stream().map(CheckpointInfo::object).collect(Collectors.toUnmodifiableList()),
                json);
    }

    private static Map<DType, Long> byDtype(Facts facts) {
        Map<DType, Long> bytes = new LinkedHashMap<>();
        facts.keys().forEach(name -> bytes.put(DType.named(name), facts.number(name)));
        return Collections.unmodifiableMap(bytes);
    }

    private static FileInfo file(Facts file) {
        return new FileInfo(file.text("key"), file.number("bytes"), (int) file.number("rank"));
    }

    private static ObjectInfo object(Facts object) {
        return new ObjectInfo(object.text("name"), object.text("path"), object.text("content_type"),
                Kind.of(object.text("kind")), (int) object.number("rank"), object.number("bytes"));
    }

    /** Format, counts and bytes. */
    @Override
    public String toString() {
        return "CheckpointInfo(" + format + " of " + worldSize + " ranks, " + tensors.size() + " tensors of " + tensorBytes
                + " bytes, " + objects.size() + " objects, " + files.size() + " files)";
    }
}
