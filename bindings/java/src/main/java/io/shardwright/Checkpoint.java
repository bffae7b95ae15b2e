// SPDX-License-Identifier: Apache-2.0
// Opened checkpoints.
package io.shardwright;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/** An opened checkpoint. Immutable, thread-safe. */
public final class Checkpoint extends Handle {
    private static final int TENSOR_FACTS = 8;
    private static final int RANK_FACT = 3;
    private static final int CHUNK_FACTS = 4;
    private static final int ALL_RANKS = -1;

    /** Whose rank_local entries names stand for; ALL_RANKS = those of the lowest rank that has one. */
    private final int rank;

    private Checkpoint(long handle, int rank) {
        super(handle, Leak.WARN, shw_nativeJNI::shw_checkpoint_release);
        this.rank = rank;
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
                    uses.ofNullable(options.storage()), text, struct.address()), options.rank());
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
     * Number of stored tensors, of rank_local ones one per rank.
     *
     * @return the number
     */
    public long tensorCount() {
        return with(shw_nativeJNI::shw_checkpoint_tensor_count);
    }

    /**
     * Names of the tensors, each once; opened with a rank, those that this rank is given.
     *
     * @return in stored order
     */
    public List<String> keys() {
        return new ArrayList<>(shownTensors().keySet());
    }

    /**
     * Ranks that have a rank_local tensor or object of a name.
     *
     * @param name its name
     * @return ascending; empty for an entry that all ranks share
     * @throws NotFoundException with the nearest names
     */
    public List<Integer> ranks(String name) {
        byte[] text = Text.bytes(name);
        return with(h -> {
            TreeSet<Integer> found = new TreeSet<>();
            List<String> names = tensorNames(h);
            int[] owners = tensorRanks(h);
            for (int i = 0; i < owners.length; i++) {
                if (names.get(i).equals(name)) {
                    found.add(owners[i]);
                }
            }
            List<String> objects = objectNames(h);
            for (int i = 0; i < objects.size(); i++) {
                if (objects.get(i).equals(name)) {
                    found.add(shw_nativeJNI.shw_checkpoint_object_rank(h, i));
                }
            }
            if (found.isEmpty()) {
                shw_nativeJNI.shw_checkpoint_find_tensor(h, text, ALL_RANKS); // names the nearest
            }
            return new ArrayList<>(found.tailSet(0));
        });
    }

    private static List<String> tensorNames(long handle) {
        return Parts.texts(shw_nativeJNI.shw_checkpoint_tensor_names(handle));
    }

    private static int[] tensorRanks(long handle) {
        long[] facts = shw_nativeJNI.tensorFacts(handle);
        return IntStream.range(0, facts.length / TENSOR_FACTS).map(i -> (int) facts[i * TENSOR_FACTS + RANK_FACT]).toArray();
    }

    private static List<String> objectNames(long handle) {
        return Parts.texts(shw_nativeJNI.shw_checkpoint_object_names(handle));
    }

    /** Number of the tensor that each name stands for, in stored order. */
    Map<String, Integer> shownTensors() {
        return with(h -> {
            int[] owners = tensorRanks(h);
            return shown(tensorNames(h), i -> owners[i]);
        });
    }

    /** Of entries of one name: seen by a rank its own, else the shared one; seen by all the shared one, else the lowest. */
    private Map<String, Integer> shown(List<String> names, IntUnaryOperator rankOf) {
        Map<String, Integer> found = new LinkedHashMap<>();
        for (int i = 0; i < names.size(); i++) {
            int owner = rankOf.applyAsInt(i);
            if (rank < 0 || owner < 0 || owner == rank) {
                found.merge(names.get(i), i, (a, b) ->
                        (rankOf.applyAsInt(a) < rankOf.applyAsInt(b)) == (rank < 0) ? a : b);
            }
        }
        return found;
    }

    /**
     * All stored tensors, of rank_local ones those of all ranks.
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

    private long find(long handle, byte[] name) {
        return shw_nativeJNI.shw_checkpoint_find_tensor(handle, name, rank);
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
     * Byte objects; opened with a rank, those that this rank is given.
     *
     * @return name to object, in stored order
     */
    public Map<String, StoredObject> objects() {
        return with(h -> {
            Map<String, Integer> shown = shownObjects(h);
            long[] indices = shown.values().stream().mapToLong(Integer::longValue).toArray();
            Iterator<byte[]> contents =
                    Parts.all(shw_nativeJNI.shw_checkpoint_read_objects(h, indices, indices.length)).iterator();
            Map<String, StoredObject> objects = new LinkedHashMap<>();
            shown.forEach((name, i) -> objects.put(name, new StoredObject(
                    Text.of(shw_nativeJNI.shw_checkpoint_object_content_type(h, i)), contents.next())));
            return objects;
        });
    }

    private Map<String, Integer> shownObjects(long handle) {
        return shown(objectNames(handle), i -> shw_nativeJNI.shw_checkpoint_object_rank(handle, i));
    }

    /** Nested path per object name. */
    Map<String, String> objectPaths() {
        return with(h -> {
            Map<String, String> paths = new LinkedHashMap<>();
            shownObjects(h).forEach((name, i) -> paths.put(name, Text.of(shw_nativeJNI.shw_checkpoint_object_path(h, i))));
            return paths;
        });
    }

    /**
     * Checks the manifest and each file's size, header and index, deep every byte; all of it is read again.
     *
     * @param deep read and check every byte
     * @return what was read
     * @throws DataLossException with the place of the first damage; {@link #findDamage} lists all
     */
    public Report verify(boolean deep) {
        int flags = deep ? shw_nativeConstants.SHW_VERIFY_DEEP : 0;
        return with(h -> new Report(shw_nativeJNI.shw_checkpoint_verify(h, flags)));
    }

    /**
     * As {@link #verify}, but all damage is in the findings of the report.
     *
     * @param deep read and check every byte
     * @return what was found
     */
    public Report findDamage(boolean deep) {
        int flags = deep ? shw_nativeConstants.SHW_VERIFY_DEEP : 0;
        return with(h -> new Report(shw_nativeJNI.shw_checkpoint_find_damage(h, flags)));
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
     * Digests of the tensors that keys() names.
     *
     * @param algorithm the algorithm
     * @return name to lower-case hexadecimal text, in stored order
     */
    public Map<String, String> digest(DigestAlgorithm algorithm) {
        Map<String, Integer> shown = shownTensors();
        long[] indices = shown.values().stream().mapToLong(Integer::longValue).toArray();
        Iterator<String> digests = with(h -> Parts.texts(shw_nativeJNI.shw_checkpoint_digests(h, indices, indices.length,
                algorithm.number()))).iterator();
        Map<String, String> map = new LinkedHashMap<>();
        shown.keySet().forEach(name -> map.put(name, digests.next()));
        return map;
    }

    @Override
    String facts() {
        return generation() + ", " + tensorCount() + " tensors";
    }
}
