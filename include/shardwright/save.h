/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving at three heights: one call with a collective, the same as a job, and the planner, whose
 * buffers the host moves between ranks itself. A save either ends with the new checkpoint at the
 * path, complete and durable, or leaves what was there. `storage` NULL = `path` is a path of the
 * file system; else it is a key prefix in the storage. `collective` NULL = one rank. */
#ifndef SHARDWRIGHT_SAVE_H
#define SHARDWRIGHT_SAVE_H

#include "base.h"
#include "buffer.h"
#include "collective.h"
#include "context.h"
#include "job.h"
#include "plan.h"
#include "report.h"
#include "state.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* What to do with a checkpoint that is at the path: replace it atomically, or ALREADY_EXISTS.
 * Since: 0.1 unstable */
enum { SHW_OVERWRITE_REPLACE = 0, SHW_OVERWRITE_REFUSE = 1 };

/* FULL survives a power loss, NONE only the end of the process.
 * Since: 0.1 unstable */
enum { SHW_DURABILITY_FULL = 0, SHW_DURABILITY_NONE = 1 };

/* Digests of stored blocks.
 * Since: 0.1 unstable */
enum { SHW_DIGESTS_ON = 0, SHW_DIGESTS_OFF = 1 };

/* Whether a job copies the state first (OFF), or reads the host's memory until it is staged (ON):
 * nothing is copied then and no memory is needed for it.
 * Since: 0.1 unstable */
enum { SHW_HOLD_OFF = 0, SHW_HOLD_ON = 1 };

/* What a job runs at. BACKGROUND: all but that copy runs on threads of its own, behind those of the
 * host: on cores that the host keeps busy they get about a tenth, and their writes wait for those
 * of others where the system's scheduler looks at that.
 * Since: 0.1 unstable */
enum { SHW_PRIORITY_NORMAL = 0, SHW_PRIORITY_BACKGROUND = 1 };

/* Who writes an entry that several ranks hold: balanced by bytes; always the lowest rank; as the
 * preset's original does; or all of them, each its own chunk (shw_plan_merge only).
 * Since: 0.1 unstable */
enum { SHW_OWNER_BALANCED = 0, SHW_OWNER_LOWEST_RANK = 1, SHW_OWNER_EXACT = 2, SHW_OWNER_ALL = 3 };

/* Which replicas are compared by digest before one is written: objects and tensors up to 1 MiB,
 * all, or none.
 * Since: 0.1 unstable */
enum { SHW_VERIFY_REPLICAS_AUTO = 0, SHW_VERIFY_REPLICAS_ALL = 1, SHW_VERIFY_REPLICAS_OFF = 2 };

/* Where SHW_FORMAT_MEGATRON keeps the common state: in common.pt, which every megatron-core reads,
 * or among the data as the object common_state, as megatron-core from 0.19 on does.
 * Since: 0.1 unstable */
enum { SHW_COMMON_FILE = 0, SHW_COMMON_OBJECT = 1 };

/* Whether SHW_FORMAT_MEGATRON lists the SHA-256 of each file in integrity.json, which megatron-core
 * from 0.19 on compares on request: each rank hashes its file while it writes it, on one thread.
 * Since: 0.1 unstable */
enum { SHW_INTEGRITY_OFF = 0, SHW_INTEGRITY_SHA256 = 1 };

/* Formats. AUTO is native when saving and what is recognised when loading. SAFETENSORS saves one
 * file to a path that ends in .safetensors, else files and their index into a directory. TORCH_DCP
 * saves a directory that torch.distributed.checkpoint of torch 2.4 to 2.15 loads, with digests
 * beside it that torch takes no notice of. MEGATRON saves one that megatron-core loads as
 * torch_dist: the entries "common" and "common.*" become its common state, all others data.
 * Since: 0.1 unstable */
enum {
  SHW_FORMAT_AUTO = 0,
  SHW_FORMAT_NATIVE = 1,
  SHW_FORMAT_TORCH_DCP = 2,
  SHW_FORMAT_SAFETENSORS = 3,
  SHW_FORMAT_MEGATRON = 4
};

/* Planner behaviour: this library's own, that of HyperParallel's standard planners, of torch's
 * default planners, or of Megatron-core's fully parallel save. A preset says which replica is
 * written with SHW_OWNER_EXACT and how merges of descriptions number; what a load takes is said by
 * its other options, whatever its preset.
 * Since: 0.1 unstable */
enum {
  SHW_PRESET_NATIVE = 0,
  SHW_PRESET_HYPERPARALLEL = 1,
  SHW_PRESET_TORCH = 2,
  SHW_PRESET_MEGATRON = 3
};

/* Options of a save; zero is the default. `kind_globs` is cut by `kind_offsets` (kind_count + 1),
 * the first glob that matches a name gives its SHW_KIND_. `metadata` holds metadata_count pairs of
 * key and value, cut by 2 x metadata_count + 1 offsets. `deadline_ns` is a span, -1 = no limit.
 * `keep_generations` 0 = 1. `threads` and `memory_budget` 0 = those of the context. `file_mode` 0
 * = 0666 and the umask. `cancellation` ends the call early; not for jobs. `progress` is told how
 * far the call or job is, with `progress_user`; planners do not call it. `max_shard_size` is how
 * many bytes of tensors go into one file of SHW_FORMAT_SAFETENSORS, 0 = 5e9; a larger tensor has a
 * file for itself. `hold` and `priority` are those of jobs and may differ between ranks.
 * `common` is an SHW_COMMON_ and says something to SHW_FORMAT_MEGATRON alone. `integrity` is an
 * SHW_INTEGRITY_; other formats than SHW_FORMAT_MEGATRON refuse it (INVALID_ARGUMENT).
 * Since: 0.1 unstable */
typedef struct shw_save_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t overwrite;
  int32_t durability;
  int32_t digests;
  int32_t owner;
  int32_t verify_replicas;
  int32_t format;
  int32_t preset;
  uint32_t threads;
  uint32_t file_mode;
  uint32_t keep_generations;
  uint64_t memory_budget;
  int64_t deadline_ns;
  const char* trace_path;
  const char* kind_globs;
  const uint64_t* kind_offsets;
  const int32_t* kind_values;
  uint64_t kind_count;
  const char* metadata;
  const uint64_t* metadata_offsets;
  uint64_t metadata_count;
  shw_cancellation* cancellation;
  shw_progress_fn progress;
  void* progress_user;
  uint64_t max_shard_size;
  int32_t hold;
  int32_t priority;
  int32_t common;
  int32_t integrity;
} shw_save_options;

/* Byte size of the oldest published shw_save_options.
 * Since: 0.1 unstable */
#define SHW_SAVE_OPTIONS_SIZE_V1 128

#define SHW_SAVE_OPTIONS_INIT \
  {sizeof(shw_save_options),  \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0,                         \
   0}

/* Plans one save of one rank.
 * Since: 0.1 unstable */
typedef struct shw_save_planner shw_save_planner;

/* Fills options with zeros and their size, as SHW_SAVE_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_save_options_init(shw_save_options* options, uint32_t struct_size) SHW_NOEXCEPT;

/* Sets a metadata pair of the options: adds it, or replaces the value of its key. `out` keeps the
 * texts of all pairs, those that were there included, and is released after the last use of the
 * options; what an earlier call for them gave may go at once.
 * Threads: exclusive(options)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_save_options_set_metadata(shw_save_options* options, const char* key, const char* value,
                              shw_buffer** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Saves the states of all ranks as one checkpoint and returns when it is committed. All ranks
 * return the same status.
 * Threads: exclusive(collective)
 * Blocks: collective
 * Owns: out
 * Errors: INVALID_ARGUMENT, ALREADY_EXISTS, PERMISSION_DENIED, ABORTED, DEADLINE_EXCEEDED,
 *   UNAVAILABLE, DATA_LOSS, UNIMPLEMENTED, HOST_EXCEPTION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_save(shw_context* context, const shw_state* state,
                                         shw_storage* SHW_NULLABLE storage, const char* path,
                                         shw_collective* SHW_NULLABLE collective,
                                         const shw_save_options* SHW_NULLABLE options,
                                         shw_report** out,
                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Starts the save as a job. The memory of the state's tensors must stay unchanged until the job is
 * staged; the collective belongs to the job until it is terminal. The jobs of a context run one
 * after another, so ranks of one process need a context each.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_save_async(shw_context* context, const shw_state* state,
                                               shw_storage* SHW_NULLABLE storage, const char* path,
                                               shw_collective* SHW_NULLABLE collective,
                                               const shw_save_options* SHW_NULLABLE options,
                                               shw_job** out,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes the memory into which jobs copy such a state, with all its pages, so that the first one is
 * as fast as those after it. The context keeps it; while a job has it this makes more.
 * RESOURCE_EXHAUSTED when there is not so much.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_prepare(shw_context* context, const shw_state* state,
                                            shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes the planner of rank `rank` of `world_size`; it keeps context and state alive.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_save_planner_create(shw_context* context, const shw_state* state, int32_t rank,
                        int32_t world_size, const shw_save_options* SHW_NULLABLE options,
                        shw_save_planner** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Describes this rank's state: a plan buffer for the rank that calls global_plan.
 * Threads: exclusive(planner)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_save_planner_local_plan(
    shw_save_planner* planner, shw_buffer** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* On the rank that will commit: checks the target, draws the generation and merges the local plans
 * of all ranks (a blob cut by world_size + 1 offsets, rank order). `out` has one part per rank:
 * what that rank gives to finish.
 * Threads: exclusive(planner)
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ALREADY_EXISTS, PERMISSION_DENIED, DATA_LOSS,
 *   UNAVAILABLE, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_save_planner_global_plan(
    shw_save_planner* planner, shw_storage* SHW_NULLABLE storage, const char* path,
    const void* plans, const uint64_t* plan_offsets, uint64_t plan_count, shw_buffer** out,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Takes this rank's part of the global plan and checks that it fits the state.
 * Threads: exclusive(planner)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, DATA_LOSS, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_save_planner_finish(shw_save_planner* planner, const void* plan,
                                                        uint64_t plan_size, shw_plan** out,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes this rank's file. `out` is the result buffer for the rank that commits. When writing
 * fails the error is returned and nothing of this rank is left behind.
 * Threads: exclusive(planner)
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, PERMISSION_DENIED, UNAVAILABLE, DATA_LOSS,
 *   CANCELLED, DEADLINE_EXCEEDED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_save_execute(shw_save_planner* planner, const shw_plan* plan,
                                                 shw_storage* SHW_NULLABLE storage,
                                                 const char* path, shw_buffer** out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* On the rank that made the global plan: checks the results of all ranks (a blob cut by world_size
 * + 1 offsets, rank order; an empty part = that rank failed) and commits at the path of the global
 * plan, or removes what was written.
 * Threads: exclusive(planner)
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, DATA_LOSS, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_save_commit(shw_save_planner* planner, const void* results,
                                                const uint64_t* result_offsets,
                                                uint64_t result_count, shw_report** out,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the planner. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: planner
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_save_planner_release(shw_save_planner* SHW_NULLABLE planner) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_SAVE_H */
