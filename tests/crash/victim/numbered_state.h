/* SPDX-License-Identifier: Apache-2.0
 *
 * States that victims and tests agree on by a number alone: every byte follows from the number, so
 * a checkpoint that mixes two saves is seen. One number in eight gives some MiB more. */
#ifndef SHARDWRIGHT_TESTS_CRASH_NUMBERED_STATE_H
#define SHARDWRIGHT_TESTS_CRASH_NUMBERED_STATE_H

#include <shardwright/shardwright.h>

#if defined(__cplusplus)
extern "C" {
#endif

enum { NUMBERED_TENSORS = 8 };

/* What one of `ranks` ranks holds. */
struct numbered_state {
  shw_state* state;
  int32_t rank;
  int32_t ranks;
  uint64_t tensor_count;
  unsigned char* memory[NUMBERED_TENSORS];
};

/* 1 when it could be made: with the bytes of the number, or of zeros to load into. */
int numbered_create(struct numbered_state* out, uint64_t number, int32_t rank, int32_t ranks,
                    int is_filled);
/* 1 when every byte is that of the number. */
int numbered_holds(const struct numbered_state* state, uint64_t number);
/* Number in the metadata of a checkpoint; 0 when there is none. */
uint64_t numbered_of(const shw_checkpoint* checkpoint);
void numbered_release(struct numbered_state* state);

/* Opens what lies at the path and reads all of it into `*number`. A checkpoint that holds other
 * bytes than its number says is SHW_INTERNAL. `text` receives why it failed. */
shw_status numbered_read(shw_context* context, const char* path, uint64_t* number, char* text,
                         uint64_t text_size);

/* 1 when what lies at the path has all tensors of the number with their bytes. Nothing else is
 * looked at: no object, and no metadata, which Megatron-core has no place for. */
int numbered_tensors_at(shw_context* context, const char* path, uint64_t number);

#if defined(__cplusplus)
}
#endif

#endif
