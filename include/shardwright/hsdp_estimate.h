/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of HSDP: what units hold, and what an iteration of units will need, foretold by the same
 * layouts and the same schedule before anything runs. What is measured is what was foretold, byte
 * for byte. */
#ifndef SHARDWRIGHT_HSDP_ESTIMATE_H
#define SHARDWRIGHT_HSDP_ESTIMATE_H

#include "base.h"
#include "hsdp.h"
#include "hsdp_unit.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* What memory of a unit is for: parameters of this rank; the same in the dtype that travels; shards
 * of all ranks; whole parameters; whole gradients, summed on this rank; gradients as parts for all
 * ranks; parts of all ranks before they are added; their sum; the same, waiting for the replicas;
 * the part of gathered parameters that is kept from forward to backward; the gradient of the shard.
 * Since: 0.1 unstable */
enum {
  SHW_HSDP_MEMORY_SHARD = 0,
  SHW_HSDP_MEMORY_CAST = 1,
  SHW_HSDP_MEMORY_GATHERED = 2,
  SHW_HSDP_MEMORY_PARAMS = 3,
  SHW_HSDP_MEMORY_LOCAL_GRADS = 4,
  SHW_HSDP_MEMORY_PACKED = 5,
  SHW_HSDP_MEMORY_LANDING = 6,
  SHW_HSDP_MEMORY_SCATTERED = 7,
  SHW_HSDP_MEMORY_PARTIAL = 8,
  SHW_HSDP_MEMORY_SECONDARY = 9,
  SHW_HSDP_MEMORY_SHARD_GRADS = 10,
  SHW_HSDP_MEMORY_ALL = -1
};

/* Memory that the library holds for units: bytes and buffers now, the most bytes there were, and
 * buffers that there ever were. `padding_bytes` of this rank's shards, part of `current_bytes`.
 * `unsharded_units` are not SHARDED now.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_memory {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t current_bytes;
  uint64_t peak_bytes;
  uint64_t current_buffers;
  uint64_t total_buffers;
  uint64_t padding_bytes;
  uint64_t unsharded_units;
} shw_hsdp_memory;

/* Flags of shw_hsdp_estimate_unit: its forward and backward are around those of all others (the
 * first unit only); the host hands gradients in to be added, so that they are summed in memory of
 * the library; whole parameters lie in memory of the host.
 * Since: 0.1 unstable */
#define SHW_HSDP_ESTIMATE_ROOT 1
#define SHW_HSDP_ESTIMATE_ADDS_GRADS 2
#define SHW_HSDP_ESTIMATE_HOST_MEMORY 4

/* A unit whose memory is foretold. Tensors of the batch need no data.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_estimate_unit {
  uint32_t struct_size;
  uint32_t flags;
  const shw_hsdp_param_batch* params;
  const shw_hsdp_unit_options* options;
} shw_hsdp_estimate_unit;

/* Flag of shw_hsdp_estimate_world: communicators add in rank order by themselves, without the parts
 * of all ranks in memory of the library.
 * Since: 0.1 unstable */
#define SHW_HSDP_ESTIMATE_ORDERED_SUMS 1

/* Ranks along the axes of the mesh, 1 where there is none.
 * Since: 0.1 unstable */
typedef struct shw_hsdp_estimate_world {
  uint32_t struct_size;
  uint32_t flags;
  int64_t shard_size;
  int64_t replicate_size;
} shw_hsdp_estimate_world;

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_HSDP_MEMORY_SIZE_V1 56
#define SHW_HSDP_ESTIMATE_UNIT_SIZE_V1 24
#define SHW_HSDP_ESTIMATE_WORLD_SIZE_V1 24

#define SHW_HSDP_MEMORY_INIT {sizeof(shw_hsdp_memory), 0, 0, 0, 0, 0, 0, 0}
#define SHW_HSDP_ESTIMATE_UNIT_INIT {sizeof(shw_hsdp_estimate_unit), 0, 0, 0}
#define SHW_HSDP_ESTIMATE_WORLD_INIT {sizeof(shw_hsdp_estimate_world), 0, 0, 0}

/* Fills a struct with zeros and its size, as its INIT macro does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_memory_init(shw_hsdp_memory* memory, uint32_t struct_size) SHW_NOEXCEPT;

/* As shw_hsdp_memory_init.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_estimate_unit_init(shw_hsdp_estimate_unit* unit,
                                         uint32_t struct_size) SHW_NOEXCEPT;

/* As shw_hsdp_memory_init.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_hsdp_estimate_world_init(shw_hsdp_estimate_world* world,
                                          uint32_t struct_size) SHW_NOEXCEPT;

/* Foretells what one rank holds in iterations in which `count` units run forward in their order and
 * backward in the reverse one, and gradients of the shards are dropped before the next: `out` is
 * what shw_hsdp_stats would say of `kind` (SHW_HSDP_MEMORY_), padding aside; what a transport
 * allocates is not in it. `mesh` and `device` of `options` are not looked at, its axes only as far
 * as they are -1. `options` of a unit may be NULL.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_estimate(const shw_hsdp_estimate_unit* SHW_NULLABLE units,
                                                  uint64_t count,
                                                  const shw_hsdp_estimate_world* world,
                                                  const shw_hsdp_options* SHW_NULLABLE options,
                                                  int32_t kind, shw_hsdp_memory* out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Memory that is and was held for one kind (SHW_HSDP_MEMORY_) in all units of a context, of its
 * device: what offloaded units have in memory of the host beside one is not counted. Padding and
 * unsharded units are told for SHW_HSDP_MEMORY_ALL.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_stats(const shw_hsdp* hsdp, int32_t kind,
                                               shw_hsdp_memory* out,
                                               shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Memory that is and was held for one unit, padding included.
 * Threads: exclusive(hsdp)
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_hsdp_unit_stats(const shw_hsdp_unit* unit, shw_hsdp_memory* out,
                                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_HSDP_ESTIMATE_H */
