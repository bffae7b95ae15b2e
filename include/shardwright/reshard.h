/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint of Megatron as a job with other parallel sizes would have saved it. */
#ifndef SHARDWRIGHT_RESHARD_H
#define SHARDWRIGHT_RESHARD_H

#include "base.h"
#include "context.h"
#include "report.h"
#include "save.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Flag of shw_reshard_options: what was written is not read back and compared.
 * Since: 0.1 unstable */
#define SHW_RESHARD_WITHOUT_COMPARISON 1
/* Flag of shw_reshard_options: everything is proved and nothing is written; the report says what
 * would be.
 * Since: 0.1 unstable */
#define SHW_RESHARD_DRY_RUN 2

/* How the distributed optimizer is stored: with the shapes of its parameters, which jobs of any
 * shape load, or in buckets, which only jobs of equal tensor, pipeline and expert sizes do.
 * Since: 0.1 unstable */
enum { SHW_OPTIMIZER_FULLY_RESHARDABLE = 0, SHW_OPTIMIZER_DP_RESHARDABLE = 1 };

/* Options of a reshard; zero is the default. The parallel sizes are those of the target job, 0 =
 * as in the source (data_parallel: 1; expert_tensor_parallel: as tensor_parallel, unless the source
 * differs there and experts are shared out). `pipeline_layers` are the layers of each pipeline
 * stage; without them stages have as many as in the source where it has as many stages, and else
 * all as many. `job` is the same as JSON text, which what is said here wins over; `map` is JSON
 * text that says what no checkpoint tells: what lies where in buckets, rules of a mapping, when new
 * buckets are full (docs/megatron.md); NULL = none. The others as in shw_convert_options.
 * Since: 0.1 unstable */
typedef struct shw_reshard_options {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t tensor_parallel;
  uint32_t pipeline_parallel;
  uint32_t expert_parallel;
  uint32_t data_parallel;
  int32_t optimizer;
  int32_t overwrite;
  int32_t durability;
  uint32_t threads;
  uint32_t file_mode;
  uint32_t expert_tensor_parallel;
  const char* job;
  const char* map;
  uint64_t memory_budget;
  int64_t deadline_ns;
  shw_cancellation* cancellation;
  const uint32_t* pipeline_layers;
  uint64_t pipeline_layer_count;
} shw_reshard_options;

/* Byte size of the oldest published shw_reshard_options.
 * Since: 0.1 unstable */
#define SHW_RESHARD_OPTIONS_SIZE_V1 88

#define SHW_RESHARD_OPTIONS_INIT \
  {sizeof(shw_reshard_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills options with zeros and their size, as SHW_RESHARD_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_reshard_options_init(shw_reshard_options* options,
                                      uint32_t struct_size) SHW_NOEXCEPT;

/* Saves the checkpoint of Megatron at `source` to `target` for a job of another shape, optimizer
 * included; the source is only read. What lies in a bucket is proved by its contents. Memory, a
 * killed call and a target that was made before are as in shw_convert.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: as shw_convert; INVALID_ARGUMENT for rules that do not fit, with the detail `rule`;
 *   FAILED_PRECONDITION (a bucket of which nothing proves what lies in it; buckets to be made over
 *   which something decides that is not known)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_reshard(shw_context* context, shw_storage* SHW_NULLABLE source_storage, const char* source,
            shw_storage* SHW_NULLABLE target_storage, const char* target,
            const shw_reshard_options* SHW_NULLABLE options, shw_report** out,
            shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif
