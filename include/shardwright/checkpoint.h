/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints as a whole: open, describe, verify, clean up. An open checkpoint is immutable. Texts
 * are borrowed until the checkpoint is released; getters give 0 or "" for numbers that do not
 * exist. What a checkpoint holds is reached through checkpoint_entries.h. */
#ifndef SHARDWRIGHT_CHECKPOINT_H
#define SHARDWRIGHT_CHECKPOINT_H

#include "base.h"
#include "buffer.h"
#include "context.h"
#include "job.h"
#include "report.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Whether digests are checked when payload is read.
 * Since: 0.1 unstable */
enum { SHW_VERIFY_ON_READ = 0, SHW_VERIFY_OFF = 1 };

/* Where large reads of storage with direct I/O go: what lies in the page cache is copied from there
 * and the rest comes from the device round it; all from the device; all through the page cache.
 * Since: 0.1 unstable */
enum { SHW_READ_PATH_AUTO = 0, SHW_READ_PATH_DIRECT = 1, SHW_READ_PATH_BUFFERED = 2 };

/* Flag of shw_checkpoint_verify and shw_checkpoint_find_damage: read every byte.
 * Since: 0.1 unstable */
#define SHW_VERIFY_DEEP 1

/* Flag of shw_checkpoint_gc: remove; without it the report says what would be removed.
 * Since: 0.1 unstable */
#define SHW_GC_APPLY 1

/* Flags of shw_checkpoint_remove: remove; without it the report says what would be removed. And:
 * a name ends behind the prefix, or goes on with '.' or '/', so that "layer1" has no "layer10".
 * Since: 0.1 unstable */
#define SHW_REMOVE_APPLY 1
#define SHW_REMOVE_WHOLE_PARTS 2

/* An open checkpoint.
 * Since: 0.1 unstable */
typedef struct shw_checkpoint shw_checkpoint;

/* Options of opening. `format` is SHW_FORMAT_AUTO or the only one that is accepted, which is taken
 * where others would come first (SHW_FORMAT_TORCH_DCP of a directory of Megatron); the others hold
 * for all reads: SHW_VERIFY_, SHW_READ_PATH_, worker threads, staging bytes, span per call
 * (0 = default, -1 = none), what ends them early.
 * Since: 0.1 unstable */
typedef struct shw_checkpoint_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t verify;
  int32_t format;
  uint32_t threads;
  int32_t read_path;
  uint64_t memory_budget;
  int64_t deadline_ns;
  shw_cancellation* cancellation;
} shw_checkpoint_options;

/* Byte size of the oldest published shw_checkpoint_options.
 * Since: 0.1 unstable */
#define SHW_CHECKPOINT_OPTIONS_SIZE_V1 40

#define SHW_CHECKPOINT_OPTIONS_INIT {sizeof(shw_checkpoint_options), 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills options with zeros and their size, as SHW_CHECKPOINT_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_checkpoint_options_init(shw_checkpoint_options* options,
                                         uint32_t struct_size) SHW_NOEXCEPT;

/* Opens a checkpoint and recognises its format. `storage` NULL = `path` is a path of the file
 * system; else it is a key prefix inside the storage. `path` is not kept.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, DATA_LOSS, UNIMPLEMENTED, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_open(shw_context* context, shw_storage* SHW_NULLABLE storage, const char* path,
                    const shw_checkpoint_options* SHW_NULLABLE options, shw_checkpoint** out,
                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Name of the format, such as "native".
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_format(const shw_checkpoint* checkpoint,
                                          uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Generation that is read; "" when the format has none.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_generation(const shw_checkpoint* checkpoint,
                                              uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Number of ranks that saved it.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_checkpoint_world_size(const shw_checkpoint* checkpoint) SHW_NOEXCEPT;

/* Time of the save in nanoseconds since 1970 UTC; 0 when unknown.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int64_t shw_checkpoint_created_ns(const shw_checkpoint* checkpoint) SHW_NOEXCEPT;

/* Number of metadata pairs; they are ordered by key.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_checkpoint_metadata_count(const shw_checkpoint* checkpoint) SHW_NOEXCEPT;

/* Key of a metadata pair.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_metadata_key(const shw_checkpoint* checkpoint, uint64_t index,
                                                uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Value of a metadata pair.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_metadata_value(const shw_checkpoint* checkpoint, uint64_t index,
                                                  uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* The checkpoint as JSON text with "schema": 1: format, generation, counts, metadata, files,
 * tensors, objects.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_info(const shw_checkpoint* checkpoint,
                                                    shw_buffer** out,
                                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Checks the manifest and each file's size, header and index, with SHW_VERIFY_DEEP every byte. All
 * of it is read again, whatever this handle read before. The report says what was read; damage is
 * DATA_LOSS with the place of the first in its details.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, DATA_LOSS, ABORTED, UNIMPLEMENTED, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_verify(const shw_checkpoint* checkpoint,
                                                      uint64_t flags, shw_report** out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* As shw_checkpoint_verify, but lists all damage in the report instead of failing with the first.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, ABORTED, UNIMPLEMENTED, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_find_damage(const shw_checkpoint* checkpoint, uint64_t flags, shw_report** out,
                           shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Finds (with SHW_GC_APPLY removes) generations at a path that its manifest does not name and whose
 * newest file is older than `grace_ns` (0 = 24 hours, -1 = any age). It has the path for itself: it
 * removes nothing and notes it in the report while a save runs there, and saves that begin wait.
 * Without a manifest that it can read it refuses: DATA_LOSS when it is damaged, FAILED_PRECONDITION
 * when there are generations without one, or with less than 24 hours on a storage without locks.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION, DATA_LOSS, PERMISSION_DENIED,
 *   UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_gc(shw_context* context,
                                                  shw_storage* SHW_NULLABLE storage,
                                                  const char* path, int64_t grace_ns,
                                                  uint64_t flags, shw_report** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Finds (with SHW_REMOVE_APPLY removes) tensors and objects of a checkpoint of torch DCP or
 * Megatron whose names begin with `prefix` (UTF-8, not empty) as its index has them, and files that
 * hold nothing else. The index without them, which loses nothing else, is durable before a file
 * goes; digests and integrity.json follow. The report lists the entries with their bytes as
 * removed, and counts the files. It has the path for itself. One that was cut off is ended first.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND (also: no name begins so), UNIMPLEMENTED (other formats),
 *   FAILED_PRECONDITION (a save was killed there, and nothing is removed), DATA_LOSS, UNAVAILABLE
 *   (also: a save runs there), PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_remove(shw_context* context,
                                                      shw_storage* SHW_NULLABLE storage,
                                                      const char* path, const char* prefix,
                                                      uint64_t flags, shw_report** out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Lists the checkpoints step-NNNNNNNN, and iter_NNNNNNN of Megatron, below a run directory and
 * names the newest whole one, as JSON text with "schema": 1. "tracker" is the text of Megatron's
 * latest_checkpointed_iteration.txt and "tracked" the step that it names; "" for what is not there.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_list_steps(shw_context* context, shw_storage* SHW_NULLABLE storage, const char* path,
                          shw_buffer** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Finds the newest whole step of a run directory: `out` is the path to open, `path` joined with
 * step-NNNNNNNN or iter_NNNNNNN. Looks at the newest step first. One that is damaged, uncommitted
 * or no checkpoint is passed over with a warning in the log; when a step cannot be looked at at
 * all, that is the error, so that no older step stands in for it. NOT_FOUND: there is no step, or
 * none is whole.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, ABORTED, UNIMPLEMENTED, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_latest(shw_context* context,
                                                      shw_storage* SHW_NULLABLE storage,
                                                      const char* path, shw_buffer** out,
                                                      shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the checkpoint. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: checkpoint
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_checkpoint_release(shw_checkpoint* SHW_NULLABLE checkpoint) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_CHECKPOINT_H */
