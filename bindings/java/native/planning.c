/* SPDX-License-Identifier: Apache-2.0
 *
 * Who writes each shard, as the buffer that other calls of planning give. */
#include <stdlib.h>

#include "bindings/java/native/native.h"
#include "bindings/native/megatron.h"

/* The one part of out: a rank (int32) per shard. */
shw_status shw_java_plan_owners(uint64_t count, const uint64_t* weights, const int32_t* sets,
                                const char* secondary, uint64_t set_count,
                                const uint64_t* set_offsets, const int32_t* holders,
                                int32_t rank_count, shw_buffer** out, shw_error** err) {
  int32_t* owners = malloc((count + 1) * sizeof(*owners));
  if (owners == NULL) return shw_java_out_of_memory(err);
  shw_status status =
      megatron_plan_owners(count, weights, (const uint32_t*)sets, (const shw_bool*)secondary,
                           set_count, set_offsets, holders, rank_count, owners, err);
  if (status == SHW_OK) status = shw_buffer_create(owners, count * sizeof(*owners), out, err);
  free(owners);
  return status;
}
