/* SPDX-License-Identifier: Apache-2.0
 *
 * What a checkpoint holds: tensors, chunks, objects and files, numbered from 0 in the order of the
 * manifest, and their bytes. Texts are borrowed until the checkpoint is released; getters give 0
 * or "" for numbers that do not exist. Names of rank-local entries repeat: each rank that saved one
 * has an entry of its own under the name. Reads verify digests unless the checkpoint was opened
 * otherwise. */
#ifndef SHARDWRIGHT_CHECKPOINT_ENTRIES_H
#define SHARDWRIGHT_CHECKPOINT_ENTRIES_H

#include "base.h"
#include "buffer.h"
#include "checkpoint.h"
#include "report.h"
#include "tensor.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Algorithm of tensor digests: XXH3-128 or SHA-256 of the row-major little-endian bytes.
 * Since: 0.1 unstable */
enum { SHW_DIGEST_XXH3 = 0, SHW_DIGEST_SHA256 = 1 };

/* Facts about a stored tensor. `kind` is one of SHW_KIND_; `rank` is the owner of a rank-local
 * tensor, else -1; its chunks are first_chunk to first_chunk + chunk_count - 1.
 * Since: 0.1 unstable */
typedef struct shw_tensor_info {
  uint32_t struct_size;
  uint32_t flags;
  int32_t dtype;
  int32_t ndim;
  int32_t kind;
  int32_t rank;
  uint64_t element_count;
  uint64_t byte_size;
  uint64_t first_chunk;
  uint64_t chunk_count;
} shw_tensor_info;

/* Facts about a stored chunk: where its bytes lie and which rank wrote them (-1 = unknown).
 * `offset` UINT64_MAX: no run of bytes of the file is the chunk, which is made of some of them when
 * it is read (a strided view that torch.save stored).
 * Since: 0.1 unstable */
typedef struct shw_chunk_info {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t tensor;
  uint64_t file;
  uint64_t offset;
  uint64_t byte_size;
  int32_t rank;
  int32_t reserved0;
} shw_chunk_info;

/* Boxes to be read: item i fills all of targets[i] from tensor tensors[i]. `box_offsets` and
 * `box_sizes` hold as many values per item as the tensor has dimensions, back to back; both NULL =
 * whole tensors. A target has the shape of its box and the tensor's dtype.
 * Since: 0.1 unstable */
typedef struct shw_box_batch {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t count;
  const uint64_t* tensors;
  const shw_tensor* targets;
  const int64_t* box_offsets;
  const int64_t* box_sizes;
} shw_box_batch;

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_TENSOR_INFO_SIZE_V1 56
#define SHW_CHUNK_INFO_SIZE_V1 48
#define SHW_BOX_BATCH_SIZE_V1 48

#define SHW_TENSOR_INFO_INIT {sizeof(shw_tensor_info), 0, 0, 0, 0, 0, 0, 0, 0, 0}
#define SHW_CHUNK_INFO_INIT {sizeof(shw_chunk_info), 0, 0, 0, 0, 0, 0, 0}
#define SHW_BOX_BATCH_INIT {sizeof(shw_box_batch), 0, 0, 0, 0, 0, 0}

/* Fills a struct with zeros and its size, as SHW_TENSOR_INFO_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_tensor_info_init(shw_tensor_info* info, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills a struct with zeros and its size, as SHW_CHUNK_INFO_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_chunk_info_init(shw_chunk_info* info, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills a batch with zeros and its size, as SHW_BOX_BATCH_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_box_batch_init(shw_box_batch* batch, uint32_t struct_size) SHW_NOEXCEPT;

/* Number of tensors.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_checkpoint_tensor_count(const shw_checkpoint* checkpoint) SHW_NOEXCEPT;

/* Name of a tensor.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_tensor_name(const shw_checkpoint* checkpoint, uint64_t index,
                                               uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Nested path of a tensor; "" when it is flat.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_tensor_path(const shw_checkpoint* checkpoint, uint64_t index,
                                               uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Extents of a tensor, as many as its info says; NULL when there is no such tensor.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const int64_t* shw_checkpoint_tensor_shape(const shw_checkpoint* checkpoint,
                                                   uint64_t index) SHW_NOEXCEPT;

/* Describes `count` tensors from number `first` on; each `struct_size` must be set and equal.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_tensor_infos(const shw_checkpoint* checkpoint, uint64_t first, uint64_t count,
                            shw_tensor_info* infos, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gives the names of all tensors, one per part; those of rank-local tensors repeat.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_tensor_names(
    const shw_checkpoint* checkpoint, shw_buffer** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Finds a tensor by name; `out` receives its number. Of rank-local tensors that of `rank` is taken.
 * NOT_FOUND carries the three nearest names.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_find_tensor(const shw_checkpoint* checkpoint, const char* name, uint64_t name_size,
                           int32_t rank, uint64_t* out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Number of chunks of all tensors.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_checkpoint_chunk_count(const shw_checkpoint* checkpoint) SHW_NOEXCEPT;

/* Describes `count` chunks from number `first` on; each `struct_size` must be set and equal. Reads
 * the indexes of files that were not needed before.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, DATA_LOSS, ABORTED, storage
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_chunk_infos(const shw_checkpoint* checkpoint, uint64_t first, uint64_t count,
                           shw_chunk_info* infos, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes the box of a chunk: as many offsets as its tensor has dimensions, then the sizes. `size`
 * receives the number of values; BUFFER_TOO_SMALL when it is above `capacity`.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_chunk_box(const shw_checkpoint* checkpoint,
                                                         uint64_t index, int64_t* SHW_NULLABLE box,
                                                         uint64_t capacity, uint64_t* size,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Number of byte objects.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_checkpoint_object_count(const shw_checkpoint* checkpoint) SHW_NOEXCEPT;

/* Name of an object.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_object_name(const shw_checkpoint* checkpoint, uint64_t index,
                                               uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Nested path of an object; "" when it is flat.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_object_path(const shw_checkpoint* checkpoint, uint64_t index,
                                               uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Content type of an object, such as "application/json".
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_object_content_type(const shw_checkpoint* checkpoint,
                                                       uint64_t index,
                                                       uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Number of bytes of an object.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_checkpoint_object_size(const shw_checkpoint* checkpoint,
                                            uint64_t index) SHW_NOEXCEPT;

/* Owner of a rank-local object, else -1.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_checkpoint_object_rank(const shw_checkpoint* checkpoint,
                                           uint64_t index) SHW_NOEXCEPT;

/* Gives the names of all objects, one per part; those of rank-local objects repeat.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_object_names(
    const shw_checkpoint* checkpoint, shw_buffer** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Finds an object by name; as shw_checkpoint_find_tensor.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_find_object(const shw_checkpoint* checkpoint, const char* name, uint64_t name_size,
                           int32_t rank, uint64_t* out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Reads `count` objects (NULL `indices` = 0, 1, ...), one per part of `out`.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, ABORTED, DATA_LOSS, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_read_objects(
    const shw_checkpoint* checkpoint, const uint64_t* SHW_NULLABLE indices, uint64_t count,
    shw_buffer** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* What an object is, for people: one JSON object with `content_type`, `bytes` and `value`. JSON is
 * itself; of a pickle, or an archive of torch.save, `value` says what would be made of it, in at
 * most about 256 KiB, and nothing is; text is text, anything else null.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, ABORTED, DATA_LOSS, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_describe_object(const shw_checkpoint* checkpoint, uint64_t index, shw_buffer** out,
                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Reads `size` bytes of an object from `offset` on into one part, fewer only where the object ends:
 * what other formats hold may be larger than memory.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, ABORTED, DATA_LOSS, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_read_object_part(
    const shw_checkpoint* checkpoint, uint64_t index, uint64_t offset, uint64_t size,
    shw_buffer** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Number of data files.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_checkpoint_file_count(const shw_checkpoint* checkpoint) SHW_NOEXCEPT;

/* Key of a data file, relative to the checkpoint.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_checkpoint_file_name(const shw_checkpoint* checkpoint, uint64_t index,
                                             uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Number of bytes of a data file.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_checkpoint_file_size(const shw_checkpoint* checkpoint,
                                          uint64_t index) SHW_NOEXCEPT;

/* Reads boxes of tensors into memory of the caller. On failure the targets may hold part of the
 * bytes.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, ABORTED, DATA_LOSS, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_checkpoint_read_boxes(const shw_checkpoint* checkpoint, const shw_box_batch* batch,
                          shw_report** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Reads one box (both NULL = the whole tensor) into a new tensor; `ndim` is that of the tensor.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, ABORTED, DATA_LOSS, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_read_tensor(
    const shw_checkpoint* checkpoint, uint64_t index, const int64_t* SHW_NULLABLE box_offsets,
    const int64_t* SHW_NULLABLE box_sizes, int32_t ndim, shw_owned_tensor** out,
    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Computes the digests of `count` tensors (NULL `indices` = 0, 1, ...): one part of `out` per
 * tensor, lower-case hexadecimal text that does not depend on layout and format.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, ABORTED, DATA_LOSS, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_checkpoint_digests(const shw_checkpoint* checkpoint,
                                                       const uint64_t* SHW_NULLABLE indices,
                                                       uint64_t count, int32_t algorithm,
                                                       shw_buffer** out,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_CHECKPOINT_ENTRIES_H */
