/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: a mesh of ranks and one placement per mesh axis, a rule that gives each rank the boxes
 * of a tensor that it holds. Layouts are immutable and shared by states. */
#ifndef SHARDWRIGHT_LAYOUT_H
#define SHARDWRIGHT_LAYOUT_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* What a mesh axis does to a tensor: every rank holds all of it; it is split along one dimension
 * (uneven as torch.chunk does it); split with a stride; ranks hold summands. The last two are
 * refused with UNIMPLEMENTED.
 * Since: 0.1 unstable */
enum {
  SHW_PLACEMENT_REPLICATE = 0,
  SHW_PLACEMENT_SHARD = 1,
  SHW_PLACEMENT_STRIDED_SHARD = 2,
  SHW_PLACEMENT_PARTIAL = 3
};

/* Mesh and placements of a rule.
 * Since: 0.1 unstable */
typedef struct shw_layout shw_layout;

/* Describes a layout. `mesh_shape` has `mesh_ndim` extents; `axis_names` is a blob that
 * `axis_name_offsets` (mesh_ndim + 1 values) cuts, both NULL = unnamed; `ranks` lists the global
 * ranks of the mesh in row-major order, NULL = 0, 1, 2, ...; the placement arrays have `mesh_ndim`
 * values: SHW_PLACEMENT_ kind, tensor dimension (negative counts from the end), stride factor.
 * `placement_dims` and `placement_factors` may be NULL where no kind needs them.
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
} shw_layout_spec;

/* Byte size of the oldest published shw_layout_spec.
 * Since: 0.1 unstable */
#define SHW_LAYOUT_SPEC_SIZE_V1 80

#define SHW_LAYOUT_SPEC_INIT {sizeof(shw_layout_spec), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a spec with zeros and its size, as SHW_LAYOUT_SPEC_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_layout_spec_init(shw_layout_spec* spec, uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a layout; everything in `spec` is copied.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
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

/* Number of boxes that `rank` holds of a tensor of this global shape: 0 when it is not in the mesh.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_layout_box_count(const shw_layout* layout,
                                                     const int64_t* SHW_NULLABLE shape,
                                                     int32_t ndim, int32_t rank, uint64_t* out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes the boxes that `rank` holds: for each box `ndim` offsets, then `ndim` sizes. `size`
 * receives the number of values; BUFFER_TOO_SMALL, nothing else written, when it is above
 * `capacity` (also counted in values).
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, BUFFER_TOO_SMALL
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_layout_boxes(const shw_layout* layout,
                                                 const int64_t* SHW_NULLABLE shape, int32_t ndim,
                                                 int32_t rank, int64_t* SHW_NULLABLE boxes,
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
