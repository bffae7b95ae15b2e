// SPDX-License-Identifier: Apache-2.0
// Opened checkpoints.
package io.shardwright;

import io.shardwright.errors.DataLossException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.NotFoundException;
import io.shardwright.errors.OutOfRangeException;
import io.shardwright.errors.ShardwrightException;
import io.shardwright.internal.Handle;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Structs;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeConstants;
import io.shardwright.internal.shw_nativeJNI;
import io.shardwright.layout.Box;
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

/** An opened checkpoint. Immutable, thread-safe. */
public final class Checkpoint extends Handle {
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
     * @param path a path of the default file system
     * @return the checkpoint
     * @throws ShardwrightException NOT_FOUND, INVALID_ARGUMENT, DATA_LOSS, UNIMPLEMENTED, PERMISSION_DENIED
     */
    public static Checkpoint open(Path path) {
        return open(path, new OpenOptions());
    }

    /**
     * As {@link #open(Path)}, with options.
     *
     * @param path a path of the default file system
     * @param options they hold for all reads
     * @return the checkpoint
     */
    public static Checkpoint open(Path path, OpenOptions options) {
        return open(Location.of(path), options);
    }

    /**
     * As {@link #open(Path, OpenOptions)}, also in a storage.
     *
     * @param location where it lies
     * @param options they hold for all reads
     * @return the checkpoint
     */
    public static Checkpoint open(Location location, OpenOptions options) {
        return open(location, options, 0);
    }

    /** With a native cancellation, which ends the reads early; 0 = none. */
    static Checkpoint open(Location location, OpenOptions options, long cancellation) {
        byte[] text = Location.textOf(location);
        Context context = options.context();
        try (Uses uses = new Uses()) {
            return new Checkpoint(shw_nativeJNI.shw_checkpoint_open(uses.of(context),
                    uses.ofNullable(location.storage()), text, options.struct(cancellation)), options.rank());
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
     * @return format, counts, bytes, files, tensors and objects
     */
    public CheckpointInfo info() {
        return CheckpointInfo.of(with(h -> Parts.text(shw_nativeJNI.shw_checkpoint_info(h))), tensors(), metadata());
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

    private static Structs.TensorInfoColumns tensorInfos(long handle) {
        return shw_nativeJNI.shw_checkpoint_tensor_infos(handle, 0, shw_nativeJNI.shw_checkpoint_tensor_count(handle));
    }

    private static int[] tensorRanks(long handle) {
        return tensorInfos(handle).rank;
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
            Structs.TensorInfoColumns found = tensorInfos(h);
            long[] shapes = shw_nativeJNI.tensorShapes(h);
            List<TensorInfo> infos = new ArrayList<>(found.ndim.length);
            int from = 0;
            for (int i = 0; i < found.ndim.length; i++) {
                int to = from + found.ndim[i];
                infos.add(new TensorInfo(Text.of(shw_nativeJNI.shw_checkpoint_tensor_name(h, i)),
                        Text.of(shw_nativeJNI.shw_checkpoint_tensor_path(h, i)), Arrays.copyOfRange(shapes, from, to),
                        found, i));
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
            Structs.ChunkInfoColumns found = shw_nativeJNI.shw_checkpoint_chunk_infos(h, 0,
                    shw_nativeJNI.shw_checkpoint_chunk_count(h));
            List<ChunkInfo> infos = new ArrayList<>(found.file.length);
            for (int i = 0; i < found.file.length; i++) {
                infos.add(new ChunkInfo(found, i, Text.of(shw_nativeJNI.shw_checkpoint_file_name(h, found.file[i]))));
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
            throw Invalid.parameter("target",
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

    /**
     * One byte object as a stream, for those that are larger than memory need be. The checkpoint must stay open as long
     * as the stream is read. One thread at a time.
     *
     * @param name name of the object
     * @return a stream that begins at the first byte and can skip
     * @throws ShardwrightException NOT_FOUND with the nearest names
     */
    public java.io.InputStream openObject(String name) {
        byte[] text = Text.bytes(name);
        return with(h -> {
            long index = shw_nativeJNI.shw_checkpoint_find_object(h, text, rank);
            return new ObjectStream(this, index, shw_nativeJNI.shw_checkpoint_object_size(h, index));
        });
    }

    /**
     * What a byte object is, for people; nothing of it is run.
     *
     * @param name name of the object
     * @return one JSON object as text: {@code content_type}, {@code bytes}, and {@code value}, in which a pickle says what
     *     would be made of it
     * @throws ShardwrightException NOT_FOUND with the nearest names
     */
    public String describeObject(String name) {
        byte[] text = Text.bytes(name);
        return with(h -> Parts.text(shw_nativeJNI.shw_checkpoint_describe_object(h,
                shw_nativeJNI.shw_checkpoint_find_object(h, text, rank))));
    }

    /** Bytes of an object from an offset on; fewer only where it ends. */
    byte[] objectPart(long index, long offset, int size) {
        return with(h -> Parts.all(shw_nativeJNI.shw_checkpoint_read_object_part(h, index, offset, size)).get(0));
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
    protected String facts() {
        return generation() + ", " + tensorCount() + " tensors";
    }
}
