// SPDX-License-Identifier: Apache-2.0
// Items of torch.distributed.checkpoint for an index that somebody else makes.
package io.shardwright;

import io.shardwright.errors.AlreadyExistsException;
import io.shardwright.errors.DataLossException;
import io.shardwright.errors.InvalidArgumentException;
import io.shardwright.errors.UnimplementedException;
import io.shardwright.internal.DirectBlob;
import io.shardwright.internal.Invalid;
import io.shardwright.internal.NativeLoader;
import io.shardwright.internal.Parts;
import io.shardwright.internal.Text;
import io.shardwright.internal.Uses;
import io.shardwright.internal.shw_nativeJNI;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Items of torch.distributed.checkpoint for hosts whose own planner and index say which they are, such as a storage writer of a
 * trainer that keeps torch's {@code .metadata}. A save with {@link Format#TORCH_DCP} does all of this by itself.
 *
 * <p>All ranks agree on a generation, 32 lower-case hex digits that nobody has used before. Each rank writes its entries into
 * files of its own; one rank makes the index and puts the digests of what all wrote beside it:
 *
 * <pre>{@code
 * TorchItems.Written mine = TorchItems.write(state, folder, "__" + rank + "_0." + generation + ".distcp", new SaveOptions());
 * // ... the index has the offsets and lengths of mine.places(); the results of all ranks travel to one of them ...
 * TorchItems.writeDigests(folder, bytesOfTheIndex, results, new SaveOptions());
 * }</pre>
 */
public final class TorchItems {
    private TorchItems() {}

    /**
     * Where an item lies in its file.
     *
     * @param name name of the entry, the key of the index
     * @param offset first byte in the file
     * @param length bytes of the item
     */
    public record Place(String name, long offset, long length) {}

    /**
     * What a file of items holds.
     *
     * @param places every item: of each tensor its boxes in their order, then the objects
     * @param result for {@link #writeDigests}; may travel to another rank
     */
    public record Written(List<Place> places, byte[] result) {}

    /**
     * Writes all of a state into a new file of items of a directory, which is made where it is not there; no other rank takes
     * part, and nothing refers to the file yet. After a failure nothing of the file is left.
     *
     * @param state what is written; the name of an entry is its key in the index
     * @param location the directory
     * @param name {@code __R_K.GENERATION.distcp} of rank R, its K-th file
     * @param options durability, digests, fileMode, threads, memoryBudget, deadline and context count
     * @return where the items lie
     * @throws InvalidArgumentException for another name
     * @throws AlreadyExistsException for a file that is there
     * @throws UnimplementedException for element types that torch has not
     */
    public static Written write(State state, Location location, String name, SaveOptions options) {
        byte[] text = Location.textOf(location);
        byte[] file = Text.terminated(Objects.requireNonNull(name, "name"));
        try (Uses uses = new Uses(); WaitingCall call = WaitingCall.begin(0)) {
            long contextHandle = uses.of(options.context());
            long stateHandle = uses.of(state);
            long storage = uses.ofNullable(location.storage());
            state.beforeSave();
            List<byte[]> parts = Parts.all(shw_nativeJNI.shw_torch_items_write(contextHandle, stateHandle, storage, text, file,
                    options.struct(call.cancellation(), uses)));
            return new Written(places(stateHandle, Parts.longsOf(parts.get(0))), parts.get(1));
        }
    }

    /** Rows of entry, offset and length; objects are numbered behind the tensors. */
    private static List<Place> places(long state, long[] rows) {
        long tensors = shw_nativeJNI.shw_state_tensor_count(state);
        List<Place> places = new ArrayList<>(rows.length / 3);
        for (int at = 0; at < rows.length; at += 3) {
            byte[] name = rows[at] < tensors ? shw_nativeJNI.shw_state_tensor_name(state, rows[at])
                    : shw_nativeJNI.shw_state_object_name(state, rows[at] - tensors);
            places.add(new Place(Text.of(name), rows[at + 1], rows[at + 2]));
        }
        return List.copyOf(places);
    }

    /**
     * Puts the digests of an index beside it, before or after {@code .metadata} itself is put in place.
     *
     * @param location the directory
     * @param index the very bytes that {@code .metadata} has or is going to have
     * @param results those of {@link #write}, of all ranks and files; items of the index that are in none of them have no
     *     digests
     * @param options durability and context count
     * @throws InvalidArgumentException for results of several generations, and for none
     * @throws DataLossException for bytes that are no index
     */
    public static void writeDigests(Location location, byte[] index, List<byte[]> results, SaveOptions options) {
        byte[] text = Location.textOf(location);
        if (index == null) {
            throw Invalid.parameter("index", "the index is null");
        }
        NativeLoader.load();
        DirectBlob blob = new DirectBlob(results);
        try (Uses uses = new Uses()) {
            shw_nativeJNI.shw_torch_digests_write(uses.of(options.context()), uses.ofNullable(location.storage()), text, index,
                    blob.address(), blob.offsets(), blob.count(), options.struct());
        } finally {
            blob.keep();
        }
    }
}
