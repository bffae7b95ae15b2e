/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the extension "megatron" as plain calls, for the native modules. The table is
 * asked for at each call, which costs a comparison of names: a module that is only loaded, or lives
 * in a forked child, uses nothing of the library. */
#ifndef SHW_BINDINGS_MEGATRON_H
#define SHW_BINDINGS_MEGATRON_H

#include <stddef.h>

#include "shardwright/shardwright.h"

static inline shw_status megatron_functions(const shw_megatron_api** out, shw_error** err) {
  const void* functions = NULL;
  const shw_status status =
      shw_get_extension(SHW_MEGATRON_NAME, SHW_MEGATRON_VERSION, &functions, err);
  if (status == SHW_OK) *out = functions;
  return status;
}

static inline shw_status megatron_grid_place(const shw_grid_shard* shard, const int64_t* places,
                                             uint64_t count, int64_t* global_shape,
                                             int64_t* offsets, int64_t* fragments,
                                             shw_error** err) {
  const shw_megatron_api* functions = NULL;
  const shw_status status = megatron_functions(&functions, err);
  return status == SHW_OK
             ? functions->grid_place(shard, places, count, global_shape, offsets, fragments, err)
             : status;
}

static inline shw_status megatron_grid_boxes(const shw_grid_shard* shard, int64_t* boxes,
                                             uint64_t capacity, uint64_t* size,
                                             int64_t* local_offsets, shw_error** err) {
  const shw_megatron_api* functions = NULL;
  const shw_status status = megatron_functions(&functions, err);
  return status == SHW_OK ? functions->grid_boxes(shard, boxes, capacity, size, local_offsets, err)
                          : status;
}

static inline shw_status megatron_grid_flat_entry(const shw_grid_shard* shard, int64_t* shape,
                                                  int64_t* offsets, int64_t* sizes,
                                                  shw_error** err) {
  const shw_megatron_api* functions = NULL;
  const shw_status status = megatron_functions(&functions, err);
  return status == SHW_OK ? functions->grid_flat_entry(shard, shape, offsets, sizes, err) : status;
}

static inline shw_status megatron_grid_flat_boxes(const int64_t* shape, int32_t ndim,
                                                  const int64_t* entry, const int64_t* chunk,
                                                  int64_t* boxes, uint64_t capacity, uint64_t* size,
                                                  int64_t* local_offsets, shw_error** err) {
  const shw_megatron_api* functions = NULL;
  const shw_status status = megatron_functions(&functions, err);
  return status == SHW_OK ? functions->grid_flat_boxes(shape, ndim, entry, chunk, boxes, capacity,
                                                       size, local_offsets, err)
                          : status;
}

static inline shw_status megatron_grid_overlap(int64_t stored, int64_t wanted, int64_t index,
                                               int64_t* begin, int64_t* count, shw_error** err) {
  const shw_megatron_api* functions = NULL;
  const shw_status status = megatron_functions(&functions, err);
  return status == SHW_OK ? functions->grid_overlap(stored, wanted, index, begin, count, err)
                          : status;
}

static inline shw_status megatron_plan_owners(uint64_t count, const uint64_t* weights,
                                              const uint32_t* sets, const shw_bool* secondary,
                                              uint64_t set_count, const uint64_t* set_offsets,
                                              const int32_t* holders, int32_t rank_count,
                                              int32_t* owners, shw_error** err) {
  const shw_megatron_api* functions = NULL;
  const shw_status status = megatron_functions(&functions, err);
  return status == SHW_OK ? functions->plan_owners(count, weights, sets, secondary, set_count,
                                                   set_offsets, holders, rank_count, owners, err)
                          : status;
}

#endif
