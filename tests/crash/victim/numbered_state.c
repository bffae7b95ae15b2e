/* SPDX-License-Identifier: Apache-2.0
 *
 * Awkward sizes, held by all ranks, and two tensors that are cut into rows. One has a name that
 * Megatron-core's directories keep in a file of its own. */
#include "numbered_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE_EVERY = 8 };

struct shape {
  const char* name;
  int64_t rows;
  int64_t row_bytes;
  int is_cut; /* each rank holds some of the rows */
};

static const struct shape shapes[NUMBERED_TENSORS] = {
    {"empty", 0, 1, 0},         {"one", 1, 1, 0},         {"below", 1, 4095, 0},
    {"page", 1, 4096, 0},       {"above", 1, 4097, 0},    {"rows", 12, 200, 1},
    {"common.state", 1, 40, 0}, {"large", 24, 131072, 1},
};

static unsigned char value(uint64_t number, uint64_t tensor, uint64_t position) {
  uint64_t mixed = (number << 40) ^ (tensor << 32) ^ position;
  mixed = (mixed ^ mixed >> 31) * 0x9e3779b97f4a7c15U;
  return (unsigned char)(mixed >> 56);
}

static int64_t first_row(const struct shape* shape, int32_t rank, int32_t ranks) {
  return shape->is_cut ? shape->rows * rank / ranks : 0;
}

static int64_t end_row(const struct shape* shape, int32_t rank, int32_t ranks) {
  return shape->is_cut ? shape->rows * (rank + 1) / ranks : shape->rows;
}

/* The tensor's bytes that this rank holds: [*begin, *end) of all its bytes. */
static void part_of(const struct numbered_state* state, uint64_t tensor, uint64_t* begin,
                    uint64_t* end) {
  const struct shape* shape = &shapes[tensor];
  *begin = (uint64_t)(first_row(shape, state->rank, state->ranks) * shape->row_bytes);
  *end = (uint64_t)(end_row(shape, state->rank, state->ranks) * shape->row_bytes);
}

static int add_tensor(struct numbered_state* out, uint64_t index) {
  const struct shape* shape = &shapes[index];
  const int64_t first = first_row(shape, out->rank, out->ranks);
  const int64_t global[] = {shape->rows, shape->row_bytes};
  const int64_t offsets[] = {first, 0};
  const int64_t sizes[] = {end_row(shape, out->rank, out->ranks) - first, shape->row_bytes};
  const uint64_t name_offsets[] = {0, strlen(shape->name)};
  const uint64_t shape_offsets[] = {0, 2};
  const uint64_t box_ranges[] = {0, 1};
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = out->memory[index];
  tensor.device_type = SHW_DEVICE_CPU;
  tensor.dtype = SHW_UINT8;
  tensor.shape = sizes;
  tensor.ndim = 2;
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = shape->name;
  batch.name_offsets = name_offsets;
  batch.tensors = &tensor;
  if (shape->is_cut) {
    batch.global_shapes = global;
    batch.global_shape_offsets = shape_offsets;
    batch.box_ranges = box_ranges;
    batch.box_offsets = offsets;
    batch.box_sizes = sizes;
  }
  return shw_state_add_tensors(out->state, &batch, NULL) == SHW_OK;
}

static int add_number(shw_state* state, uint64_t number) {
  char text[24];
  const int digits = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
  const uint64_t name_offsets[] = {0, 6};
  const uint64_t data_offsets[] = {0, (uint64_t)digits};
  shw_object_batch batch = SHW_OBJECT_BATCH_INIT;
  batch.count = 1;
  batch.names = "number";
  batch.name_offsets = name_offsets;
  batch.data = text;
  batch.data_offsets = data_offsets;
  return shw_state_add_objects(state, &batch, NULL) == SHW_OK;
}

int numbered_create(struct numbered_state* out, uint64_t number, int32_t rank, int32_t ranks,
                    int is_filled) {
  memset(out, 0, sizeof(*out));
  out->rank = rank;
  out->ranks = ranks;
  out->tensor_count = number % LARGE_EVERY == 7 ? NUMBERED_TENSORS : NUMBERED_TENSORS - 1;
  if (shw_state_create(&out->state, NULL) != SHW_OK) return 0;
  for (uint64_t t = 0; t < out->tensor_count; ++t) {
    uint64_t begin = 0;
    uint64_t end = 0;
    part_of(out, t, &begin, &end);
    out->memory[t] = calloc(1, end - begin + 1);
    if (out->memory[t] == NULL) return 0;
    for (uint64_t i = begin; is_filled && i < end; ++i)
      out->memory[t][i - begin] = value(number, t, i);
    if (!add_tensor(out, t)) return 0;
  }
  return add_number(out->state, is_filled ? number : 0);
}

static int tensors_hold(const struct numbered_state* state, uint64_t number) {
  for (uint64_t t = 0; t < state->tensor_count; ++t) {
    uint64_t begin = 0;
    uint64_t end = 0;
    part_of(state, t, &begin, &end);
    for (uint64_t i = begin; i < end; ++i) {
      if (state->memory[t][i - begin] != value(number, t, i)) return 0;
    }
  }
  return 1;
}

int numbered_holds(const struct numbered_state* state, uint64_t number) {
  char text[24];
  const int digits = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
  uint64_t size = 0;
  const void* stored = shw_state_object_data(state->state, 0, &size);
  if (size != (uint64_t)digits || memcmp(stored, text, size) != 0) return 0;
  return tensors_hold(state, number);
}

/* Other formats have metadata of their own beside it. */
uint64_t numbered_of(const shw_checkpoint* checkpoint) {
  for (uint64_t i = 0; i < shw_checkpoint_metadata_count(checkpoint); ++i) {
    if (strcmp(shw_checkpoint_metadata_key(checkpoint, i, NULL), "number") == 0)
      return strtoull(shw_checkpoint_metadata_value(checkpoint, i, NULL), NULL, 10);
  }
  return 0;
}

void numbered_release(struct numbered_state* state) {
  shw_state_release(state->state);
  for (uint64_t t = 0; t < NUMBERED_TENSORS; ++t) free(state->memory[t]);
  memset(state, 0, sizeof(*state));
}

static shw_status load_all(const shw_checkpoint* checkpoint, shw_state* state, shw_error** err) {
  shw_load_planner* planner = NULL;
  shw_plan* plan = NULL;
  shw_report* report = NULL;
  shw_status status = shw_load_planner_create(checkpoint, state, 0, NULL, &planner, err);
  if (status == SHW_OK) status = shw_load_planner_local_plan(planner, &plan, err);
  if (status == SHW_OK) status = shw_load_execute(planner, plan, &report, err);
  shw_report_release(report);
  shw_plan_release(plan);
  shw_load_planner_release(planner);
  return status;
}

shw_status numbered_read(shw_context* context, const char* path, uint64_t* number, char* text,
                         uint64_t text_size) {
  shw_error* error = NULL;
  shw_checkpoint* checkpoint = NULL;
  struct numbered_state state = {0};
  *number = 0;
  text[0] = '\0';
  shw_status status = shw_checkpoint_open(context, NULL, path, NULL, &checkpoint, &error);
  if (status == SHW_OK) {
    *number = numbered_of(checkpoint);
    status = numbered_create(&state, *number, 0, 1, 0) ? load_all(checkpoint, state.state, &error)
                                                       : SHW_RESOURCE_EXHAUSTED;
  }
  if (status == SHW_OK && !numbered_holds(&state, *number)) {
    status = SHW_INTERNAL;
    snprintf(text, text_size, "save %llu came back with other bytes", (unsigned long long)*number);
  } else if (status != SHW_OK) {
    snprintf(text, text_size, "%s: %s", shw_status_name(status), shw_error_message(error, NULL));
  }
  numbered_release(&state);
  shw_checkpoint_release(checkpoint);
  shw_error_release(error);
  return status;
}

int numbered_tensors_at(shw_context* context, const char* path, uint64_t number) {
  shw_checkpoint* checkpoint = NULL;
  struct numbered_state state = {0};
  int found = shw_checkpoint_open(context, NULL, path, NULL, &checkpoint, NULL) == SHW_OK &&
              numbered_create(&state, number, 0, 1, 0) &&
              load_all(checkpoint, state.state, NULL) == SHW_OK && tensors_hold(&state, number);
  numbered_release(&state);
  shw_checkpoint_release(checkpoint);
  return found;
}
