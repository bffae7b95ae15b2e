/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: rules that give each rank the boxes of a tensor that it holds; and the geometry of
 * shards that no mesh describes: shards of a grid, flat ranges. Layouts are immutable and shared by
 * states.
 *
 * A piece is a box of the tensor and the element of the rank's local tensor, row-major, at which it
 * begins; shw_tensor_batch says how it lies there. */
#ifndef SHARDWRIGHT_LAYOUT_H
#define SHARDWRIGHT_LAYOUT_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* What a mesh axis does to a tensor: every rank holds all of it; it is split along one dimension
 * (uneven as torch.chunk does it, after the axes before); the same with a stride, so that a rank
 * holds a part of each of `factor` parts, which may be several boxes (torch's _StridedShard); ranks
 * hold summands, which is refused with FAILED_PRECONDITION; the row-major elements that the other
 * axes leave are split, so that the local tensor has one dimension.
 * Since: 0.1 unstable */
enum {
  SHW_PLACEMENT_REPLICATE = 0,
  SHW_PLACEMENT_SHARD = 1,
  SHW_PLACEMENT_STRIDED_SHARD = 2,
  SHW_PLACEMENT_PARTIAL = 3,
  SHW_PLACEMENT_FLAT = 4
};

/* A mesh and what its axes do.
 * Since: 0.1 unstable */
typedef struct shw_layout shw_layout;

/* Describes a layout. `mesh_shape` has `mesh_ndim` extents; `axis_names` is a blob that
 * `axis_name_offsets` (mesh_ndim + 1 values) cuts, both NULL = unnamed; `ranks` lists the global
 * ranks of the mesh in row-major order, NULL = 0, 1, 2, ... Either the placement arrays have
 * `mesh_ndim` values: SHW_PLACEMENT_ kind, tensor dimension (negative counts from the end), stride
 * factor; dims and factors may be NULL where no kind needs them. Or `tensor_map`, cut by
 * `tensor_map_offsets` (tensor_ndim + 1 values, not NULL), lists for each tensor dimension the mesh
 * axes that split it, outermost first, counted from the right (0 = last axis, -1 = none).
 * Since: 0.1 unstable */
typedef struct shw_layout_spec {
  uint32_t struct_size;
  uint32_t flags;
  int32_t mesh_ndim;
  int32_t reserved0;
  const int64_t* mesh_shape;
  const char* axis_names;
  const uint64_t* axis_name_offsets;
  const int32_t* ranks;
  uint64_t rank_count;
  const int32_t* placement_kinds;
  const int32_t* placement_dims;
  const int32_t* placement_factors;
  const int32_t* tensor_map;
  const uint64_t* tensor_map_offsets;
  int32_t tensor_ndim;
  int32_t reserved1;
} shw_layout_spec;

/* Byte size of the oldest published shw_layout_spec.
 * Since: 0.1 unstable */
#define SHW_LAYOUT_SPEC_SIZE_V1 80

#define SHW_LAYOUT_SPEC_INIT {sizeof(shw_layout_spec), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a spec with zeros and its size, as SHW_LAYOUT_SPEC_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_layout_spec_init(shw_layout_spec* spec, uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a layout; everything in `spec` is copied. UNIMPLEMENTED names an axis that is called
 * "interleaved_parallel" under a tensor map.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION (a partial placement), UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_layout_create(const shw_layout_spec* spec, shw_layout** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Number of ranks in the mesh.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_layout_rank_count(const shw_layout* layout) SHW_NOEXCEPT;

/* 1 when `rank` is in the mesh.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API shw_bool shw_layout_contains(const shw_layout* layout, int32_t rank) SHW_NOEXCEPT;

/* Number of boxes that `rank` holds of a tensor of this global shape: 0 when it is not in the mesh.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED (strided and flat axes together)
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_layout_box_count(const shw_layout* layout,
                                                     const int64_t* SHW_NULLABLE shape,
                                                     int32_t ndim, int32_t rank, uint64_t* out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes the boxes that `rank` holds: for each box `ndim` offsets, then `ndim` sizes. A box may be
 * empty; it then begins at the end of each dimension of which the rank holds nothing. `size`
 * receives the number of values; BUFFER_TOO_SMALL, nothing else written, when it is above
 * `capacity` (also counted in values).
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_layout_boxes(const shw_layout* layout,
                                                 const int64_t* SHW_NULLABLE shape, int32_t ndim,
                                                 int32_t rank, int64_t* SHW_NULLABLE boxes,
                                                 uint64_t capacity, uint64_t* size,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes for each of these boxes the element of the local tensor at which it begins; `size` and
 * `capacity` as in shw_layout_boxes.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_layout_local_offsets(const shw_layout* layout,
                                                         const int64_t* SHW_NULLABLE shape,
                                                         int32_t ndim, int32_t rank,
                                                         int64_t* SHW_NULLABLE offsets,
                                                         uint64_t capacity, uint64_t* size,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes the shape of the local tensor of `rank`: `ndim` extents, or the number of elements where
 * an axis is flat, or 0 outside the mesh; `size` and `capacity` as in shw_layout_boxes.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_layout_local_shape(const shw_layout* layout,
                                                       const int64_t* SHW_NULLABLE shape,
                                                       int32_t ndim, int32_t rank,
                                                       int64_t* SHW_NULLABLE extents,
                                                       uint64_t capacity, uint64_t* size,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the layout; states that use it keep it alive. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: layout
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_layout_release(shw_layout* SHW_NULLABLE layout) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_LAYOUT_H */
