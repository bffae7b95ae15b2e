/* SPDX-License-Identifier: Apache-2.0
 *
 * Units of HSDP: the parameters that are gathered and reduced together. Between uses each rank
 * holds its shard of them. A host makes a unit, adds parameters, seals it (all ranks), then calls
 * one function per phase of an iteration: pre_forward, post_forward, pre_backward, post_backward;
 * or the steps that these are made of. A unit is SHARDED, GATHERING, UNSHARDED or SECONDARY; a call
 * that is not legal in its state is FAILED_PRECONDITION naming both. */
#ifndef SHARDWRIGHT_HSDP_UNIT_H
#define SHARDWRIGHT_HSDP_UNIT_H

#include "base.h"
#include "communicator.h"
#include "hsdp.h"
#include "layout.h"
#include "tensor.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A unit of a context, which it keeps alive.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_unit shw_hsdp_unit;

/* What becomes of gathered parameters after forward: RESHARD, but KEEP for a unit inside whose
 * forward others run (a root); they are freed and gathered again for backward; kept until backward
 * has used them; each rank keeps 1/n of them and backward gathers over n ranks.
 * Since: 0.1 unstable */
enum {
  SHW_HSDP_RESHARD_AUTO = 0,
  SHW_HSDP_RESHARD = 1,
  SHW_HSDP_KEEP = 2,
  SHW_HSDP_RESHARD_SECONDARY = 3
};

/* How parameters lie in the shards: each is cut along one dimension as torch.chunk cuts; or all are
 * one range of rows that is cut evenly, so that gathered parameters need no copy.
 * Since: 0.1 unstable */
enum { SHW_HSDP_LAYOUT_ROW = 0, SHW_HSDP_LAYOUT_RAGGED = 1 };

/* What a parameter without a gradient adds to a reduction: zeros; nothing, in which case the ranks
 * must agree on which have none.
 * Since: 0.1 unstable */
enum { SHW_HSDP_UNUSED_ZERO = 0, SHW_HSDP_UNUSED_SKIP = 1 };

/* Flags of shw_hsdp_unit_options: shards and their gradients stay in memory of the host, pinned
 * where the device has such, and travel to the device to be gathered; whole parameters lie in
 * memory that the host gives by shw_hsdp_unit_set_memory. Where the device is the host, the first
 * changes nothing.
 * Since: 0.1 unstable */
#define SHW_HSDP_UNIT_OFFLOAD 1
#define SHW_HSDP_UNIT_HOST_MEMORY 2

/* Options of a unit. Dtypes are SHW_BOOL to SHW_UINT4, 0 = as the parameter is stored: in which
 * parameters are gathered, gradients are summed (0 = `grad_dtype`), outputs are wanted (kept for
 * the host), and gradients of shards are. `layout` SHW_HSDP_LAYOUT_, `reshard_after_forward`
 * SHW_HSDP_RESHARD_, `secondary_size` its n (a divisor of the shard axis), `unused`
 * SHW_HSDP_UNUSED_.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_unit_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t param_dtype;
  int32_t reduce_dtype;
  int32_t output_dtype;
  int32_t grad_dtype;
  int32_t layout;
  int32_t reshard_after_forward;
  int64_t secondary_size;
  int32_t unused;
  int32_t reserved0;
} shw_hsdp_unit_options;

/* Flags of a parameter: it gets no gradient; it is not sharded, its gradients are summed over all
 * ranks; it is left out, as if it were not in the batch.
 * Since: 0.1 unstable */
#define SHW_HSDP_PARAM_FROZEN 1
#define SHW_HSDP_PARAM_REPLICATE 2
#define SHW_HSDP_PARAM_IGNORE 4

/* Parameters in flat arrays: `count` names cut by `name_offsets` (count + 1 values); `tensors`,
 * dense and row-major, of the global shape, `data` NULL = the shard begins as zero; in memory of
 * the host or of the context's device, where what wrote it has ended (`stream` 0); the dimension
 * that is cut (negative counts from the end; NULL = 0 for all); SHW_HSDP_PARAM_ flags (NULL =
 * none). Parameter i has the further names alias_ranges[i] to alias_ranges[i+1] (count + 1 values)
 * of the blob `aliases` cut by `alias_offsets`; all three NULL = none.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_param_batch {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t count;
  const char* names;
  const uint64_t* name_offsets;
  const shw_tensor* tensors;
  const int32_t* shard_dims;
  const uint32_t* param_flags;
  const char* aliases;
  const uint64_t* alias_offsets;
  const uint64_t* alias_ranges;
} shw_hsdp_param_batch;

/* Part of a parameter that a rank holds, padding excluded; `ndim` values each, borrowed until the
 * unit is released.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_box {
  uint32_t struct_size;
  uint32_t flags;
  int32_t ndim;
  int32_t reserved0;
  const int64_t* offsets;
  const int64_t* sizes;
  const int64_t* global_shape;
} shw_hsdp_box;

/* Memory for a whole parameter: `bytes` of it, content undefined.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_hsdp_allocate_fn)(void* user, uint64_t param, uint64_t bytes,
                                                       void** out, shw_error** err);

/* Takes back what shw_hsdp_allocate_fn gave.
 * Threads: exclusive(user)
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_hsdp_deallocate_fn)(void* user, uint64_t param, void* memory,
                                                   uint64_t bytes);

/* Ends the use of `user`; called once.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_hsdp_allocator_release_fn)(void* user);

/* A host that owns the memory of whole parameters, which the context's device reaches. `release`
 * may be NULL.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_allocator {
  uint32_t struct_size;
  uint32_t flags;
  void* user;
  shw_hsdp_allocate_fn allocate;
  shw_hsdp_deallocate_fn deallocate;
  shw_hsdp_allocator_release_fn release;
} shw_hsdp_allocator;

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_HSDP_UNIT_OPTIONS_SIZE_V1 48
#define SHW_HSDP_PARAM_BATCH_SIZE_V1 80
#define SHW_HSDP_BOX_SIZE_V1 40
#define SHW_HSDP_ALLOCATOR_SIZE_V1 40

#define SHW_HSDP_UNIT_OPTIONS_INIT {sizeof(shw_hsdp_unit_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define SHW_HSDP_PARAM_BATCH_INIT {sizeof(shw_hsdp_param_batch), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define SHW_HSDP_BOX_INIT {sizeof(shw_hsdp_box), 0, 0, 0, 0, 0, 0}
#define SHW_HSDP_ALLOCATOR_INIT {sizeof(shw_hsdp_allocator), 0, 0, 0, 0, 0}

/* Fills a struct with zeros and its size, as its INIT macro does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_unit_options_init(shw_hsdp_unit_options* options,
                                        uint32_t struct_size) SHW_NOEXCEPT;

/* As shw_hsdp_unit_options_init.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_param_batch_init(shw_hsdp_param_batch* batch,
                                       uint32_t struct_size) SHW_NOEXCEPT;

/* As shw_hsdp_unit_options_init.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_box_init(shw_hsdp_box* box, uint32_t struct_size) SHW_NOEXCEPT;

/* As shw_hsdp_unit_options_init.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_allocator_init(shw_hsdp_allocator* allocator,
                                     uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a unit. Its name is for messages, and equal on all ranks.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_hsdp_unit_create(shw_hsdp* hsdp, const char* name, uint64_t name_size,
                     const shw_hsdp_unit_options* SHW_NULLABLE options, shw_hsdp_unit** out,
                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Adds all parameters of the batch or none; they are numbered from 0 in the order in which they are
 * added. Full tensors are borrowed until the unit is sealed, names copied.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION (sealed), UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_add_params(shw_hsdp_unit* unit,
                                                         const shw_hsdp_param_batch* batch,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_hsdp_unit_add_params with versioned DLPack tensors, `batch->count` of them, in place of
 * `batch->tensors`. On success all are consumed: their deleters run once when the unit is sealed or
 * ends.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: managed
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION (sealed), UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_add_params_dlpack(
    shw_hsdp_unit* unit, const shw_hsdp_param_batch* batch,
    struct DLManagedTensorVersioned* const* managed, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_hsdp_unit_add_params_dlpack with legacy DLPack tensors.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: managed
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION (sealed), UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_add_params_dlpack_legacy(
    shw_hsdp_unit* unit, const shw_hsdp_param_batch* batch, struct DLManagedTensor* const* managed,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Whole parameters lie in memory that the host gives from now on, which is memory of the context's
 * device. The table is copied; on success the unit owns `allocator->user` and calls its release
 * once. Called on the thread that calls the unit.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION (sealed)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_hsdp_unit_set_allocator(shw_hsdp_unit* unit, const shw_hsdp_allocator* allocator,
                            shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Lays the unit out, compares that on all ranks (INVALID_ARGUMENT on all of them, naming the unit
 * and a rank that differs), makes the shards and fills them.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, ABORTED, DEADLINE_EXCEEDED,
 *   UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_seal(shw_hsdp_unit* unit,
                                                   shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Number of parameters.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_hsdp_unit_param_count(const shw_hsdp_unit* unit) SHW_NOEXCEPT;

/* Name of a parameter of a sealed unit; "" when there is none. Borrowed until the unit is released.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_hsdp_unit_param_name(const shw_hsdp_unit* unit, uint64_t index,
                                             uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* What this rank holds of a parameter.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION (not sealed)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_box(shw_hsdp_unit* unit, uint64_t index,
                                                  shw_hsdp_box* out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Layout of a parameter over the mesh, for state of the host that is cut as the parameter is, such
 * as that of an optimizer. UNIMPLEMENTED: the cut of a ragged unit is no rule of a mesh; use
 * shw_hsdp_unit_box.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION (not sealed), UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_layout(shw_hsdp_unit* unit, uint64_t index,
                                                     shw_layout** out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the unit; it goes on in its context, which keeps its parameters and runs it no more.
 * NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: unit
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_unit_release(shw_hsdp_unit* SHW_NULLABLE unit) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_HSDP_UNIT_H */
