// SPDX-License-Identifier: Apache-2.0
// Opened checkpoints.
package io.shardwright;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** An opened checkpoint. Immutable, thread-safe. */
public final class Checkpoint extends Handle {
    private static final int TENSOR_FACTS = 8;
    private static final int CHUNK_FACTS = 4;

    private Checkpoint(long handle) {
        super(handle, Leak.WARN, shw_nativeJNI::shw_checkpoint_release);
    }

    /**
     * Opens what lies at a path of the file system and recognises its format.
     *
     * @param path the path
     * @return the checkpoint
     * @throws ShardwrightException NOT_FOUND, INVALID_ARGUMENT, DATA_LOSS, UNIMPLEMENTED, PERMISSION_DENIED
     */
    public static Checkpoint open(String path) {
        return open(path, new OpenOptions());
    }

    /**
     * As {@link #open(String)}.
     *
     * @param path a path of the default file system
     * @return the checkpoint
     */
    public static Checkpoint open(Path path) {
        return open(Text.path(path));
    }

    /**
     * As {@link #open(String)}, with options.
     *
     * @param path a path of the file system, or a key prefix in the storage of the options
     * @param options they hold for all reads
     * @return the checkpoint
     */
    public static Checkpoint open(String path, OpenOptions options) {
        return open(path, options, 0);
    }

    /** With a native cancellation, which ends the reads early; 0 = none. */
    static Checkpoint open(String path, OpenOptions options, long cancellation) {
        byte[] text = Text.terminated(path);
        Context context = options.context();
        try (Uses uses = new Uses(); OptionStruct struct = options.struct(cancellation)) {
            return new Checkpoint(shw_nativeJNI.shw_checkpoint_open(uses.of(context),
                    uses.ofNullable(options.storage()), text, struct.address()));
        }
    }

    /**
     * Format.
     *
     * @return e.g. {@code native}
     */
    public String format() {
        return Text.of(with(shw_nativeJNI::shw_checkpoint_format));
    }

    /**
     * Id of the save that made it.
     *
     * @return the generation; empty when the format has none
     */
    public String generation() {
        return Text.of(with(shw_nativeJNI::shw_checkpoint_generation));
    }

    /**
     * Ranks that wrote it.
     *
     * @return their number
     */
    public int worldSize() {
        return with(shw_nativeJNI::shw_checkpoint_world_size);
    }

    /**
     * Time of the save.
     *
     * @return nanoseconds since 1970 UTC; 0 when unknown
     */
    public long createdNs() {
        return with(shw_nativeJNI::shw_checkpoint_created_ns);
    }

    /**
     * Text that was saved with it.
     *
     * @return key to value, ordered by key
     */
    public Map<String, String> metadata() {
        return with(h -> {
            Map<String, String> map = new LinkedHashMap<>();
            long count = shw_nativeJNI.shw_checkpoint_metadata_count(h);
            for (long i = 0; i < count; i++) {
                map.put(Text.of(shw_nativeJNI.shw_checkpoint_metadata_key(h, i)),
                        Text.of(shw_nativeJNI.shw_checkpoint_metadata_value(h, i)));
            }
            return map;
        });
    }

    /**
     * What is in it.
     *
     * @return JSON text with {@code "schema": 1}
     */
    public String info() {
        return with(h -> Parts.text(shw_nativeJNI.shw_checkpoint_info(h)));
    }

    /**
     * Number of tensors.
     *
     * @return the number
     */
    public long tensorCount() {
        return with(shw_nativeJNI::shw_checkpoint_tensor_count);
    }

    /**
     * Names of the tensors.
     *
     * @return in stored order
     */
    public List<String> keys() {
        return with(h -> Parts.texts(shw_nativeJNI.shw_checkpoint_tensor_names(h)));
    }

    /**
     * All tensors.
     *
     * @return in stored order
     */
    public List<TensorInfo> tensors() {
        return with(h -> {
            long[] facts = shw_nativeJNI.tensorFacts(h);
            long[] shapes = shw_nativeJNI.tensorShapes(h);
            List<TensorInfo> infos = new ArrayList<>();
            int from = 0;
            for (int i = 0; i < facts.length / TENSOR_FACTS; i++) {
                int to = from + (int) facts[i * TENSOR_FACTS + 1];
                infos.add(new TensorInfo(Text.of(shw_nativeJNI.shw_checkpoint_tensor_name(h, i)),
                        Text.of(shw_nativeJNI.shw_checkpoint_tensor_path(h, i)), Arrays.copyOfRange(shapes, from, to),
                        facts, i * TENSOR_FACTS));
                from = to;
            }
            return infos;
        });
    }

    /**
     * Where every chunk lies.
     *
     * @return in stored order
     */
    public List<ChunkInfo> chunks() {
        return with(h -> {
            long[] facts = shw_nativeJNI.chunkFacts(h);
            List<ChunkInfo> infos = new ArrayList<>();
            for (int at = 0; at < facts.length; at += CHUNK_FACTS) {
                String file = Text.of(shw_nativeJNI.shw_checkpoint_file_name(h, facts[at + 1]));
                infos.add(new ChunkInfo((int) facts[at], file, facts[at + 2], facts[at + 3]));
            }
            return infos;
        });
    }

    private static long find(long handle, byte[] name) {
        return shw_nativeJNI.shw_checkpoint_find_tensor(handle, name, -1);
    }

    /**
     * Reads a whole tensor.
     *
     * @param name its name
     * @return the tensor, in memory of the library
     * @throws NotFoundException with the nearest names
     */
    public Tensor read(String name) {
        byte[] text = Text.bytes(name);
        return with(h -> new Tensor(shw_nativeJNI.shw_java_read_whole(h, find(h, text))));
    }

    /** A tensor by its position. */
    Tensor readAt(long index) {
        return with(h -> new Tensor(shw_nativeJNI.shw_java_read_whole(h, index)));
    }

    /**
     * Reads a box of a tensor; only the digest blocks that hold it are read.
     *
     * @param name its name
     * @param offsets first element per dimension
     * @param sizes extent per dimension
     * @return the box as a tensor, in memory of the library
     * @throws OutOfRangeException when it leaves the tensor
     */
    public Tensor readBox(String name, long[] offsets, long[] sizes) {
        Box box = new Box(offsets, sizes);
        byte[] text = Text.bytes(name);
        return with(h -> new Tensor(shw_nativeJNI.shw_checkpoint_read_tensor(h, find(h, text), box.offsets(),
                box.sizes(), sizes.length)));
    }

    /**
     * Reads a box of a tensor into memory of the host.
     *
     * @param name its name
     * @param box the box
     * @param target a direct buffer whose remaining bytes are the box; it is filled row-major and little-endian, its
     *     position does not change
     * @throws InvalidArgumentException when the buffer is not direct, read-only or of another size, before anything is read
     */
    public void readBox(String name, Box box, ByteBuffer target) {
        if (!target.isDirect() || target.isReadOnly()) {
            throw ShardwrightException.invalid("target",
                    target.isReadOnly() ? "the target buffer is read-only" : "the target buffer is not direct");
        }
        ByteBuffer bytes = target.slice();
        byte[] text = Text.bytes(name);
        long[] sizes = box.sizes();
        with(h -> shw_nativeJNI.shw_java_read_box(h, find(h, text), box.offsets(), sizes, sizes.length,
                shw_nativeJNI.addressOf(bytes), bytes.remaining()));
        java.lang.ref.Reference.reachabilityFence(bytes);
    }

    /**
     * All byte objects.
     *
     * @return name to object, in stored order
     */
    public Map<String, StoredObject> objects() {
        return with(h -> {
            long count = shw_nativeJNI.shw_checkpoint_object_count(h);
            List<byte[]> contents = Parts.all(shw_nativeJNI.shw_checkpoint_read_objects(h, null, count));
            Map<String, StoredObject> objects = new LinkedHashMap<>();
            for (int i = 0; i < count; i++) {
                objects.put(Text.of(shw_nativeJNI.shw_checkpoint_object_name(h, i)), new StoredObject(
                        Text.of(shw_nativeJNI.shw_checkpoint_object_content_type(h, i)), contents.get(i)));
            }
            return objects;
        });
    }

    /** Nested path per object name. */
    Map<String, String> objectPaths() {
        return with(h -> {
            Map<String, String> paths = new LinkedHashMap<>();
            for (long i = 0; i < shw_nativeJNI.shw_checkpoint_object_count(h); i++) {
                paths.put(Text.of(shw_nativeJNI.shw_checkpoint_object_name(h, i)),
                        Text.of(shw_nativeJNI.shw_checkpoint_object_path(h, i)));
            }
            return paths;
        });
    }

    /**
     * Checks structure, sizes and index digests, deep every byte; all damage is in the findings of the report.
     *
     * @param deep read and check every byte
     * @return what was found
     */
    public Report verify(boolean deep) {
        return verify(shw_nativeConstants.SHW_VERIFY_LIST | (deep ? shw_nativeConstants.SHW_VERIFY_DEEP : 0));
    }

    /**
     * As {@link #verify}, but the first damage is an exception.
     *
     * @param deep read and check every byte
     * @return what was read
     * @throws DataLossException for the first damage
     */
    public Report check(boolean deep) {
        return verify(deep ? shw_nativeConstants.SHW_VERIFY_DEEP : 0);
    }

    private Report verify(int flags) {
        return with(h -> new Report(shw_nativeJNI.shw_checkpoint_verify(h, flags)));
    }

    /**
     * Digest of a whole tensor's row-major bytes, whatever layout or format holds it.
     *
     * @param name its name
     * @param algorithm the algorithm
     * @return lower-case hexadecimal text
     * @throws NotFoundException with the nearest names
     */
    public String digest(String name, DigestAlgorithm algorithm) {
        byte[] text = Text.bytes(name);
        return with(h -> Parts.text(shw_nativeJNI.shw_checkpoint_digests(h, new long[] {find(h, text)}, 1,
                algorithm.number())));
    }

    /**
     * Digests of all tensors.
     *
     * @param algorithm the algorithm
     * @return name to lower-case hexadecimal text, in stored order
     */
    public Map<String, String> digest(DigestAlgorithm algorithm) {
        List<String> names = keys();
        List<String> digests = with(h -> Parts.texts(shw_nativeJNI.shw_checkpoint_digests(h, null, names.size(),
                algorithm.number())));
        Map<String, String> map = new LinkedHashMap<>();
        for (int i = 0; i < names.size(); i++) {
            map.put(names.get(i), digests.get(i));
        }
        return map;
    }

    @Override
    public String toString() {
        return "Checkpoint(" + generation() + ", " + tensorCount() + " tensors)";
    }
}
