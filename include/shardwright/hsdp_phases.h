/* SPDX-License-Identifier: Apache-2.0
 *
 * A unit of HSDP in an iteration: its phases and the steps that these are made of, views of its
 * parameters and gradients, and what a host may set. All calls of a context come one at a time, in
 * the same order on all ranks. */
#ifndef SHARDWRIGHT_HSDP_PHASES_H
#define SHARDWRIGHT_HSDP_PHASES_H

#include "base.h"
#include "communicator.h"
#include "hsdp.h"
#include "hsdp_unit.h"
#include "tensor.h"
#include "work.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Flag of shw_hsdp_phase_options: forward inside of backward (activation recomputation). Gathers
 * where needed, and neither reshards nor counts as a run of the unit.
 * Since: 0.1 unstable */
#define SHW_HSDP_RECOMPUTE 1

/* Options of a phase. `reserved0` stands for the stream of a device and is 0.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_phase_options {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t reserved0;
} shw_hsdp_phase_options;

/* Byte size of the oldest published shw_hsdp_phase_options.
 * Since: 0.1 unstable */
#define SHW_HSDP_PHASE_OPTIONS_SIZE_V1 16

#define SHW_HSDP_PHASE_OPTIONS_INIT {sizeof(shw_hsdp_phase_options), 0, 0}

/* Where a unit reshards: after forward the policy decides; after backward it always does.
 * Since: 0.1 unstable */
enum { SHW_HSDP_FORWARD = 0, SHW_HSDP_BACKWARD = 1 };

/* How gradients are handed in: a copy is added to what is there; they are read where they lie and
 * stay as they are until they were reduced.
 * Since: 0.1 unstable */
enum { SHW_HSDP_ADD = 0, SHW_HSDP_TAKE = 1 };

/* States of a unit: this rank holds its shard; a gather is under way; whole parameters are there;
 * 1/n of them is.
 * Since: 0.1 unstable */
enum {
  SHW_HSDP_SHARDED = 0,
  SHW_HSDP_GATHERING = 1,
  SHW_HSDP_UNSHARDED = 2,
  SHW_HSDP_SECONDARY = 3
};

/* How far the gradients of a unit are: none; whole, of this rank; packed; on their way over the
 * shard axis; summed over it, waiting for the replicas; on their way over the replicas; in the
 * gradient of the shard.
 * Since: 0.1 unstable */
enum {
  SHW_HSDP_GRAD_NONE = 0,
  SHW_HSDP_GRAD_LOCAL = 1,
  SHW_HSDP_GRAD_PACKED = 2,
  SHW_HSDP_GRAD_SCATTERING = 3,
  SHW_HSDP_GRAD_PARTIAL = 4,
  SHW_HSDP_GRAD_REPLICATING = 5,
  SHW_HSDP_GRAD_READY = 6
};

/* What is looked at: the part of the shard, the whole parameter, the gradient of the shard.
 * Since: 0.1 unstable */
enum { SHW_HSDP_VIEW_LOCAL = 0, SHW_HSDP_VIEW_FULL = 1, SHW_HSDP_VIEW_GRAD = 2 };

/* Fills options with zeros and their size, as SHW_HSDP_PHASE_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_phase_options_init(shw_hsdp_phase_options* options,
                                         uint32_t struct_size) SHW_NOEXCEPT;

/* Before forward of the unit: waits for its whole parameters, and gathers what probably comes next.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_hsdp_unit_pre_forward(shw_hsdp_unit* unit, const shw_hsdp_phase_options* SHW_NULLABLE options,
                          shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* After forward of the unit: reshards as its policy says.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_hsdp_unit_post_forward(shw_hsdp_unit* unit, const shw_hsdp_phase_options* SHW_NULLABLE options,
                           shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Before backward of the unit: waits for its whole parameters, and gathers what ran before it.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_hsdp_unit_pre_backward(shw_hsdp_unit* unit, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* After backward of the unit, its gradients were handed in: reduces and reshards as the settings
 * say. A second call within one backward does nothing.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_hsdp_unit_post_backward(shw_hsdp_unit* unit, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gathers. `out` NULL: returns when the unit is UNSHARDED; else the gather is under way, and
 * waiting for the work makes the unit UNSHARDED. The shards of all ranks stay as they are until
 * then.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_unshard(shw_hsdp_unit* unit,
                                                      shw_work** SHW_NULLABLE out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Waits for a gather under way; nothing where there is none.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_wait(shw_hsdp_unit* unit,
                                                   shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Reshards in a phase (SHW_HSDP_FORWARD, SHW_HSDP_BACKWARD). A gather under way is waited for and
 * dropped; its work does nothing then.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_reshard(shw_hsdp_unit* unit, int32_t phase,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Hands in gradients of whole parameters, all or none: `grads[i]` (dense, row-major, of the global
 * shape and any floating dtype) is that of parameter `params[i]`. It lies in memory of the host or
 * of the context's device, where what wrote it has ended (`stream` 0). `mode`: SHW_HSDP_ADD or
 * SHW_HSDP_TAKE, which copies what does not lie in the context's memory.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION, UNIMPLEMENTED, RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_add_grads(shw_hsdp_unit* unit, const uint64_t* params,
                                                        const shw_tensor* grads, uint64_t count,
                                                        int32_t mode,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_hsdp_unit_add_grads with versioned DLPack tensors. On success all are consumed: their
 * deleters run once when they are not read any more.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: managed
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION, UNIMPLEMENTED, RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_add_grads_dlpack(
    shw_hsdp_unit* unit, const uint64_t* params, struct DLManagedTensorVersioned* const* managed,
    uint64_t count, int32_t mode, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_hsdp_unit_add_grads_dlpack with legacy DLPack tensors.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: managed
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION, UNIMPLEMENTED, RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_add_grads_dlpack_legacy(
    shw_hsdp_unit* unit, const uint64_t* params, struct DLManagedTensor* const* managed,
    uint64_t count, int32_t mode, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Packs the gradients that were handed in, reshards, and reduces. `out` NULL: returns when they are
 * in the gradient of the shard (or in the partial sum); else waiting for the work brings them
 * there. So does polling it, until it is OK, as far as nothing waits for other ranks: sums over
 * replicas by a transport that is not asynchronous (SHW_COMMUNICATOR_ASYNC) begin in a wait. Both
 * change the unit, so they are calls of its context.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   RESOURCE_EXHAUSTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_reduce(shw_hsdp_unit* unit,
                                                     shw_work** SHW_NULLABLE out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* State of the unit, SHW_HSDP_SHARDED to SHW_HSDP_SECONDARY.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_hsdp_unit_state(const shw_hsdp_unit* unit) SHW_NOEXCEPT;

/* How far its gradients are, SHW_HSDP_GRAD_; where several are under way, the furthest.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_hsdp_unit_grad_state(const shw_hsdp_unit* unit) SHW_NOEXCEPT;

/* Describes `count` parameters from `first` on as SHW_HSDP_VIEW_ says: dense, row-major, padding
 * excluded, on the context's device (`device_type`, `device_id`), where the library has written all
 * of it. Memory is borrowed until the unit's state changes next, shapes until it is released.
 * `data` is NULL where there is no gradient. Whole parameters are there only while UNSHARDED.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_views(shw_hsdp_unit* unit, int32_t view,
                                                    uint64_t first, uint64_t count, shw_tensor* out,
                                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* One view as a versioned DLPack tensor, which keeps the context alive. A gradient stays as it is
 * when shw_hsdp_zero_grads has dropped it, for as long as the tensor lives: a host takes gradients
 * without a copy by exporting and dropping them. FAILED_PRECONDITION where there is no gradient.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_view_dlpack(
    shw_hsdp_unit* unit, int32_t view, uint64_t index, struct DLManagedTensorVersioned** out,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_hsdp_unit_view_dlpack, a legacy DLPack tensor.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_view_dlpack_legacy(
    shw_hsdp_unit* unit, int32_t view, uint64_t index, struct DLManagedTensor** out,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gives memory of the context's device for the whole parameters from `first` on, `sizes[i]` bytes
 * at `memory[i]`, to a unit made with SHW_HSDP_UNIT_HOST_MEMORY; it is used whenever the unit is
 * gathered from now on. While the unit is not UNSHARDED the host may free or move it, and gives it
 * anew before the next gather is waited for. For hosts to which a call of shw_hsdp_allocator is
 * expensive.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION (in use, or made without the flag)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_set_memory(shw_hsdp_unit* unit, uint64_t first,
                                                         uint64_t count, void* const* memory,
                                                         const uint64_t* sizes,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sets a value of the unit, SHW_HSDP_REQUIRES_GRADIENT_SYNC to SHW_HSDP_UNUSED_POLICY, from now on
 * and equally on all ranks.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_set_i64(shw_hsdp_unit* unit, int32_t key,
                                                      int64_t value,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The value that shw_hsdp_unit_set_i64 sets.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_get_i64(const shw_hsdp_unit* unit, int32_t key,
                                                      int64_t* out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The value that shw_hsdp_unit_set_f64 sets.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_get_f64(const shw_hsdp_unit* unit, int32_t key,
                                                      double* out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sets SHW_HSDP_DIVIDE_FACTOR of the unit.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_set_f64(shw_hsdp_unit* unit, int32_t key,
                                                      double value,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sets the units that are gathered ahead when this one runs (SHW_HSDP_FORWARD_PREFETCH,
 * SHW_HSDP_BACKWARD_PREFETCH), in place of what the last iteration foretells; none restores that.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT (also a unit of another context)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_set_units(shw_hsdp_unit* unit, int32_t key,
                                                        shw_hsdp_unit* const* SHW_NULLABLE units,
                                                        uint64_t count,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* A parameter gets no gradients, or gets them again, from the next pre_forward on.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION (not sealed)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_set_frozen(shw_hsdp_unit* unit, uint64_t index,
                                                         shw_bool frozen,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_HSDP_PHASES_H */
