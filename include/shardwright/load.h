/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading into a state: one call with a collective, the same as a job, and the planner. Tensors are
 * filled in place, objects of the state receive the stored bytes. Nothing is cast, skipped or left
 * unfilled in silence: the report says it, or the load fails. */
#ifndef SHARDWRIGHT_LOAD_H
#define SHARDWRIGHT_LOAD_H

#include "base.h"
#include "checkpoint.h"
#include "checkpoint_entries.h"
#include "collective.h"
#include "context.h"
#include "job.h"
#include "plan.h"
#include "report.h"
#include "save.h"
#include "state.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Wanted but not stored: an error, or listed in the report with the destination untouched.
 * Since: 0.1 unstable */
enum { SHW_MISSING_ERROR = 0, SHW_MISSING_REPORT = 1 };

/* Stored but not wanted: listed in the report, or an error.
 * Since: 0.1 unstable */
enum { SHW_UNEXPECTED_REPORT = 0, SHW_UNEXPECTED_ERROR = 1 };

/* Dtype that differs between stored and wanted: an error, or converted and reported.
 * Since: 0.1 unstable */
enum { SHW_CAST_ERROR = 0, SHW_CAST_ALLOW = 1 };

/* Global shape that differs between stored and wanted: an error, or both anchored at the origin:
 * what only the stored shape has is not read, what only the wanted shape has becomes zero, and the
 * report says so. The number of dimensions never differs.
 * Since: 0.1 unstable */
enum { SHW_SHAPE_ERROR = 0, SHW_SHAPE_CROP_AND_PAD = 1 };

/* Blocks that ranks of several machines want. AUTO: one rank reads a block and it goes to the
 * others through the collective, where that ends first, as measured in the first moments of the
 * load, and the collective has all_to_all_v. OFF: each machine reads for itself. ALWAYS: they are
 * exchanged without measuring. All ranks say the same.
 * Since: 0.1 unstable */
enum { SHW_EXCHANGE_AUTO = 0, SHW_EXCHANGE_OFF = 1, SHW_EXCHANGE_ALWAYS = 2 };

/* Options of a load; zero is the default. `strict_globs` is cut by strict_count + 1 offsets; the
 * first glob that matches a name replaces missing, unexpected and cast for it: three values per
 * glob in `strict_rules`; `strict_shapes` holds one SHW_SHAPE_ value per glob, NULL = `shape` for
 * all. `verify`, `read_path`, `cast`, `format`, `preset`, `shape` and `exchange` take SHW_VERIFY_,
 * SHW_READ_PATH_, SHW_CAST_, SHW_FORMAT_, SHW_PRESET_, SHW_SHAPE_ and SHW_EXCHANGE_ values.
 * `deadline_ns` is a span, -1 = no limit. `threads` and `memory_budget` 0 = those of the context.
 * `cancellation` ends the call early; not for jobs. `progress` is told how far the call or job is,
 * with `progress_user`; planners do not call it, and know no `exchange`.
 * Since: 0.1 unstable */
typedef struct shw_load_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t missing;
  int32_t unexpected;
  int32_t cast;
  int32_t verify;
  int32_t format;
  int32_t preset;
  uint32_t threads;
  uint32_t reserved0;
  uint64_t memory_budget;
  int64_t deadline_ns;
  const char* trace_path;
  const char* strict_globs;
  const uint64_t* strict_offsets;
  const int32_t* strict_rules;
  uint64_t strict_count;
  shw_cancellation* cancellation;
  const int32_t* strict_shapes;
  int32_t shape;
  int32_t read_path;
  shw_progress_fn progress;
  void* progress_user;
  int32_t exchange;
  uint32_t reserved1;
} shw_load_options;

/* Byte size of the oldest published shw_load_options.
 * Since: 0.1 unstable */
#define SHW_LOAD_OPTIONS_SIZE_V1 96

#define SHW_LOAD_OPTIONS_INIT \
  {sizeof(shw_load_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Plans one load of one rank.
 * Since: 0.1 unstable */
typedef struct shw_load_planner shw_load_planner;

/* Fills options with zeros and their size, as SHW_LOAD_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_load_options_init(shw_load_options* options, uint32_t struct_size) SHW_NOEXCEPT;

/* Opens the checkpoint at `path` and fills the state of every rank from it. All ranks return the
 * same status. When it fails after reading began, tensors may hold part of the bytes.
 * Threads: exclusive(state)
 * Blocks: collective
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, DATA_LOSS, ABORTED, DEADLINE_EXCEEDED, UNAVAILABLE,
 *   PERMISSION_DENIED, UNIMPLEMENTED, HOST_EXCEPTION
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_load(shw_context* context, shw_state* state,
                                         shw_storage* SHW_NULLABLE storage, const char* path,
                                         shw_collective* SHW_NULLABLE collective,
                                         const shw_load_options* SHW_NULLABLE options,
                                         shw_report** out,
                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Starts the load as a job. State, tensor memory and collective belong to the job until it is
 * terminal.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_load_async(shw_context* context, shw_state* state,
                                               shw_storage* SHW_NULLABLE storage, const char* path,
                                               shw_collective* SHW_NULLABLE collective,
                                               const shw_load_options* SHW_NULLABLE options,
                                               shw_job** out,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes the planner of rank `rank` (which selects rank-local entries); it keeps checkpoint and
 * state alive.
 * Threads: exclusive(state)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_load_planner_create(const shw_checkpoint* checkpoint, shw_state* state, int32_t rank,
                        const shw_load_options* SHW_NULLABLE options, shw_load_planner** out,
                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Matches what the state wants with what is stored.
 * Threads: exclusive(planner)
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_load_planner_local_plan(
    shw_load_planner* planner, shw_plan** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Reads what the plan says into the state. A plan of another state or checkpoint is
 * FAILED_PRECONDITION.
 * Threads: exclusive(planner)
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, DATA_LOSS, ABORTED, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_load_execute(shw_load_planner* planner, const shw_plan* plan,
                                                 shw_report** out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the planner. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: planner
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_load_planner_release(shw_load_planner* SHW_NULLABLE planner) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_LOAD_H */
