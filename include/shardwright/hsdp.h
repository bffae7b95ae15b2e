/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid sharded data parallel training (HSDP) as one rank sees it: parameters are sharded over one
 * axis of a mesh and may be replicated over another. Units of them (hsdp_unit.h) are gathered
 * before use; their gradients are summed over the shard axis in rank order, then over the replicas
 * in rank order, scaled, cast and added to the gradient of the shard, so that a run has the bits of
 * one process that adds in the same order. Calls of one context come from any thread, one at a
 * time, and in the same order on all ranks.
 *
 * A wait that fails ends the context on all ranks: what is pending returns the first cause, other
 * calls FAILED_PRECONDITION with it, until shw_hsdp_reset. */
#ifndef SHARDWRIGHT_HSDP_H
#define SHARDWRIGHT_HSDP_H

#include "base.h"
#include "communicator.h"
#include "context.h"
#include "device.h"
#include "layout.h"
#include "state.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* The mesh of a context: what this rank is in it, and the communicators along its axes.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_mesh shw_hsdp_mesh;

/* The units that train together on one rank.
 * Since: 0.1 unstable */
typedef struct shw_hsdp shw_hsdp;

/* What a communicator of an axis is for: gathers, and reductions unless they have their own;
 * reductions; neighbours that each keep a part of gathered parameters after forward.
 * Since: 0.1 unstable */
enum { SHW_HSDP_LANE_GATHER = 0, SHW_HSDP_LANE_REDUCE = 1, SHW_HSDP_LANE_SECONDARY = 2 };

/* Flag of shw_hsdp_options: communicators may sum in an order of their own; results then depend on
 * it.
 * Since: 0.1 unstable */
#define SHW_HSDP_UNORDERED 1

/* Options of a context. All units have their memory on `device` (NULL = the host). Parameters are
 * sharded over `shard_axis` of the mesh (-1: whole on each rank) and replicated over
 * `replicate_axis` (the same axis or -1 = none). `lanes`: work beside the caller, 0 = none, 1 = one
 * lane for all, 3 = one each for gathers, reductions and sums over replicas. At most
 * `max_inflight_reduce` packed gradients live at once (0 = 1). `prefetch_depth` units are gathered
 * ahead (0 = 1, -1 = none), of `prefetch_bytes_max` bytes at most (0 = no limit). Ranks compare
 * what they issued after the first `order_guard_steps` iterations (0 = 3, -1 = never). Each
 * collective has `timeout_ns` (0 = 1,800 s, -1 = no limit).
 * Since: 0.1 unstable */
typedef struct shw_hsdp_options {
  uint32_t struct_size;
  uint32_t flags;
  shw_hsdp_mesh* mesh;
  const shw_device* device;
  int32_t shard_axis;
  int32_t replicate_axis;
  int32_t lanes;
  int32_t max_inflight_reduce;
  int32_t prefetch_depth;
  int32_t order_guard_steps;
  uint64_t prefetch_bytes_max;
  int64_t timeout_ns;
} shw_hsdp_options;

/* What a host may set, of a context or of its units. Of a unit: whether post_backward reduces, or
 * gradients stay on this rank (1); whether sums over the shard axis go on to the replicas, or wait
 * (1); SHW_HSDP_RESHARD_ after forward; its n (set before SHW_HSDP_RESHARD_SECONDARY); whether it
 * reshards after backward (1); SHW_HSDP_REDUCE_; whether backward needs its parameters (1); whether
 * resharding keeps the memory of whole parameters (0); SHW_HSDP_UNUSED_; what averages are divided
 * by (0 = the ranks that share data); units that are gathered ahead. Of the context, as in its
 * options; and whether no backward follows in this iteration (1).
 * Since: 0.1 unstable */
enum {
  SHW_HSDP_REQUIRES_GRADIENT_SYNC = 0,
  SHW_HSDP_REQUIRES_ALL_REDUCE = 1,
  SHW_HSDP_RESHARD_AFTER_FORWARD = 2,
  SHW_HSDP_SECONDARY_SIZE = 3,
  SHW_HSDP_RESHARD_AFTER_BACKWARD = 4,
  SHW_HSDP_REDUCE_OP = 5,
  SHW_HSDP_UNSHARD_IN_BACKWARD = 6,
  SHW_HSDP_KEEP_UNSHARDED = 7,
  SHW_HSDP_UNUSED_POLICY = 8,
  SHW_HSDP_DIVIDE_FACTOR = 9,
  SHW_HSDP_FORWARD_PREFETCH = 10,
  SHW_HSDP_BACKWARD_PREFETCH = 11,
  SHW_HSDP_MAX_INFLIGHT_REDUCE = 12,
  SHW_HSDP_PREFETCH_DEPTH = 13,
  SHW_HSDP_IS_LAST_BACKWARD = 14
};

/* What becomes of gradients: their mean over the ranks that share data, or their sum.
 * Since: 0.1 unstable */
enum { SHW_HSDP_REDUCE_AVERAGE = 0, SHW_HSDP_REDUCE_SUM = 1 };

/* What shw_hsdp_add_to_state adds: parameters, or the gradients that are there.
 * Since: 0.1 unstable */
enum { SHW_HSDP_PARAMS = 0, SHW_HSDP_GRADS = 1 };

/* Byte size of the oldest published shw_hsdp_options.
 * Since: 0.1 unstable */
#define SHW_HSDP_OPTIONS_SIZE_V1 64

#define SHW_HSDP_OPTIONS_INIT {sizeof(shw_hsdp_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills options with zeros and their size, as SHW_HSDP_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_options_init(shw_hsdp_options* options, uint32_t struct_size) SHW_NOEXCEPT;

/* Makes the mesh of `rank`, which is one of its ranks. Of `spec` the fields of the mesh count:
 * shape, axis names, ranks; the others are NULL or zero.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_mesh_create(const shw_layout_spec* spec, int32_t rank,
                                                     shw_hsdp_mesh** out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sets the communicator of an axis for a lane (SHW_HSDP_LANE_); it stays alive with the mesh. Its
 * ranks are those along the axis in the order of their coordinates; for SHW_HSDP_LANE_SECONDARY the
 * n neighbours [k n, k n + n) with this rank among them, for each n that units use. Before the
 * context is created, and again between a failure and shw_hsdp_reset.
 * Threads: exclusive(mesh)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT (size or rank do not fit the axis)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_mesh_set_communicator(
    shw_hsdp_mesh* mesh, int32_t axis, int32_t lane, shw_communicator* communicator,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the mesh; contexts keep it alive. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: mesh
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_mesh_release(shw_hsdp_mesh* SHW_NULLABLE mesh) SHW_NOEXCEPT;

/* Makes a context of units, which keeps `context`, mesh and device alive. FAILED_PRECONDITION: an
 * axis of several ranks has no communicator, or one that does not sum in rank order.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, UNIMPLEMENTED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_create(shw_context* context,
                                                const shw_hsdp_options* options, shw_hsdp** out,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The backward is over: reduces what was not reduced yet. In the last backward of an iteration (see
 * SHW_HSDP_IS_LAST_BACKWARD) also waits for all reductions, drops what was gathered in vain, and in
 * the first iterations compares with the other ranks in which order units ran (ABORTED naming the
 * first unit that differs and both ranks).
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_hsdp_finalize_backward(shw_hsdp* hsdp, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Parameters of the shards have changed (an optimizer step, a load): what was gathered before is of
 * no use. Shards of a unit that is being gathered stay as they are: a host that may have asked for
 * that calls this before the change, too. `event` of the device after which they are there, 0 =
 * they are there, and what wrote them has ended. FAILED_PRECONDITION names a unit whose gradients
 * still wait for the replicas.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   UNIMPLEMENTED (an event)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_step_event(shw_hsdp* hsdp, uint64_t event,
                                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Recovery, on all ranks: gives up what is under way and drops all gradients and all that was
 * gathered. After a failure the mesh needs new communicators first (FAILED_PRECONDITION names one
 * that has failed).
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_reset(shw_hsdp* hsdp,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Norm of order `p` (positive; infinity: the largest) of the gradients of all shards, replicas
 * counted once; equal on all ranks. Collective over the shard axis.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_global_norm(shw_hsdp* hsdp, double p, double* out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Multiplies all gradients of the shards by a finite factor.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_scale_grads(shw_hsdp* hsdp, double factor,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Drops all gradients of the shards.
 * Threads: exclusive(hsdp)
 * Blocks: collective
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_zero_grads(shw_hsdp* hsdp,
                                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sets a value of the context (SHW_HSDP_MAX_INFLIGHT_REDUCE, SHW_HSDP_PREFETCH_DEPTH,
 * SHW_HSDP_IS_LAST_BACKWARD), or one of shw_hsdp_unit_set_i64 in all units. Equal on all ranks.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_set_i64(shw_hsdp* hsdp, int32_t key, int64_t value,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* The value of the context that shw_hsdp_set_i64 sets (SHW_HSDP_MAX_INFLIGHT_REDUCE,
 * SHW_HSDP_PREFETCH_DEPTH, SHW_HSDP_IS_LAST_BACKWARD); those of units are read of each.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_get_i64(const shw_hsdp* hsdp, int32_t key, int64_t* out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Sets one of the values of shw_hsdp_unit_set_f64 in all units. Equal on all ranks.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_set_f64(shw_hsdp* hsdp, int32_t key, double value,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Adds what this rank holds of all sealed units to a state, under `prefix` (`prefix_size` bytes;
 * "" = none) followed by the names of the parameters; aliases are one entry. Memory is borrowed:
 * the state keeps the context alive. Where it lies on a device, saves and loads copy it by that
 * device, and so tensors that are added later and lie there. Entries have the layout of their
 * shards, those of ragged units boxes; padding is in none. After a load call shw_hsdp_step_event.
 * `what`: SHW_HSDP_PARAMS, or SHW_HSDP_GRADS, for which FAILED_PRECONDITION names a unit whose
 * gradients still travel or wait for the replicas.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ALREADY_EXISTS
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_add_to_state(shw_hsdp* hsdp,
                                                      const char* SHW_NULLABLE prefix,
                                                      uint64_t prefix_size, int32_t what,
                                                      shw_state* state,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the context: what is under way is given up, and other ranks that wait for it are told.
 * Its units, works and states keep it alive. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: hsdp
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_release(shw_hsdp* SHW_NULLABLE hsdp) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_HSDP_H */
