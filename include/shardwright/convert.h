/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint of any format, saved again in another one, in bounded memory. */
#ifndef SHARDWRIGHT_CONVERT_H
#define SHARDWRIGHT_CONVERT_H

#include "base.h"
#include "context.h"
#include "report.h"
#include "save.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Flag of shw_convert_options: the tensor digests of source and target are not compared in the end.
 * Since: 0.1 unstable */
#define SHW_CONVERT_WITHOUT_COMPARISON 1

/* Options of a conversion; zero is the default. `format` is that of the target, 0 = native.
 * `overwrite` 0 = SHW_OVERWRITE_REPLACE. `memory_budget` is staging memory for reading and writing
 * together, 0 = that of the context. `max_shard_size` is how many bytes of tensors go into one
 * file, 0 = 5e9. `common`, `integrity`, `threads`, `file_mode`, `durability`, `deadline_ns` and
 * `cancellation` as in shw_save_options.
 * Since: 0.1 unstable */
typedef struct shw_convert_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t format;
  int32_t overwrite;
  int32_t durability;
  uint32_t threads;
  uint32_t file_mode;
  int32_t common;
  uint64_t memory_budget;
  uint64_t max_shard_size;
  int64_t deadline_ns;
  shw_cancellation* cancellation;
  int32_t integrity;
  uint32_t reserved0;
} shw_convert_options;

/* Byte size of the oldest published shw_convert_options.
 * Since: 0.1 unstable */
#define SHW_CONVERT_OPTIONS_SIZE_V1 64

#define SHW_CONVERT_OPTIONS_INIT \
  {sizeof(shw_convert_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills options with zeros and their size, as SHW_CONVERT_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_convert_options_init(shw_convert_options* options,
                                      uint32_t struct_size) SHW_NOEXCEPT;

/* Saves the checkpoint at `source` (of a format that shw_checkpoint_open takes, or of the zarr
 * backend of Megatron-core up to 0.14) to `target`, never inside of it, in another format; the
 * source is only read. Memory is bounded by the budget, but for byte objects. What was written
 * stays when the call fails, and the same call goes on with it; shw_checkpoint_gc removes it. A
 * target that this call has made before is compared and left as it is.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, UNIMPLEMENTED (what the format cannot hold),
 *   DATA_LOSS (damage, or a tensor that differs in the end), RESOURCE_EXHAUSTED, CANCELLED,
 *   DEADLINE_EXCEEDED, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_convert(shw_context* context, shw_storage* SHW_NULLABLE source_storage, const char* source,
            shw_storage* SHW_NULLABLE target_storage, const char* target,
            const shw_convert_options* SHW_NULLABLE options, shw_report** out,
            shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif
