/* SPDX-License-Identifier: Apache-2.0
 *
 * Items of torch.distributed.checkpoint for hosts whose own planner and index say which they are,
 * such as a storage writer inside of torch's save. Each rank writes its items into files and puts
 * their places into its own results; who makes the index adds the digests:
 *   1  all agree on a generation, 32 lower-case hex digits that nobody has used before;
 *   2  each rank: shw_torch_items_write for each of its files, named __R_K.GENERATION.distcp, with
 *      entries whose names are the keys of the index;
 *   3  one rank: makes the bytes of .metadata, calls shw_torch_digests_write with them and with
 *      what all calls of step 2 gave, and puts the bytes in place.
 * Saves with SHW_FORMAT_TORCH_DCP do all of this by themselves. */
#ifndef SHARDWRIGHT_TORCH_ITEMS_H
#define SHARDWRIGHT_TORCH_ITEMS_H

#include "base.h"
#include "buffer.h"
#include "context.h"
#include "save.h"
#include "state.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Writes a state as items into a new file `name`, [TEXT]__R_K.GENERATION.distcp, of the directory
 * `path`: each piece of each tensor, empty ones too, then each object. Of the options durability,
 * digests, file_mode, threads, memory_budget, deadline and cancellation count. The first part of
 * `out` has three 8-byte numbers in the machine's order for each item: the entry (of an object its
 * number behind all tensors), then offset and length in the file; the second is for
 * shw_torch_digests_write. After a failure nothing is left.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, ALREADY_EXISTS, UNIMPLEMENTED, RESOURCE_EXHAUSTED, PERMISSION_DENIED,
 *   UNAVAILABLE, DATA_LOSS, CANCELLED, DEADLINE_EXCEEDED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_torch_items_write(shw_context* context, const shw_state* state,
                                                      shw_storage* SHW_NULLABLE storage,
                                                      const char* path, const char* name,
                                                      const shw_save_options* SHW_NULLABLE options,
                                                      shw_buffer** out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes the digests of an index into the directory `path`, as .shardwright.GENERATION.digests.
 * `data` are the `size` bytes that .metadata has, or is going to have: digests count for these very
 * bytes. `results` are second parts of shw_torch_items_write, a blob cut by result_count + 1
 * offsets; items of the index that are in none of them have no digests. Files of several
 * generations are INVALID_ARGUMENT. Of the options durability counts.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, DATA_LOSS, PERMISSION_DENIED, UNIMPLEMENTED, RESOURCE_EXHAUSTED,
 *   UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_torch_digests_write(
    shw_context* context, shw_storage* SHW_NULLABLE storage, const char* path, const void* data,
    uint64_t size, const void* results, const uint64_t* result_offsets, uint64_t result_count,
    const shw_save_options* SHW_NULLABLE options, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_TORCH_ITEMS_H */
