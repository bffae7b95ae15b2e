/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole workflow in C on one rank: describe tensors, save, open, read a slice, load back. Run
 * it with a directory to write to: c_minimal /tmp/checkpoint */
#include <stdio.h>
#include <string.h>

#include <shardwright/shardwright.h>

/* Prints the error and gives 1, so that a failed step can end main. */
static int failed(const char* step, shw_error* error) {
  fprintf(stderr, "%s: %s: %s\n", step, shw_status_name(shw_error_code(error)),
          shw_error_message(error, NULL));
  shw_error_release(error);
  return 1;
}

/* A state of two tensors and one JSON object; the memory stays ours. */
static shw_status describe(shw_state* state, float* weight, int64_t* step, shw_error** err) {
  static const int64_t shape[] = {4, 6};
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = weight;
  tensor.dtype = SHW_FLOAT32;
  tensor.ndim = 2;
  tensor.shape = shape;
  shw_status status =
      shw_state_add_tensor(state, "layer.weight", 12, &tensor, NULL, NULL, SHW_KIND_AUTO, err);
  if (status != SHW_OK) return status;

  shw_tensor scalar = SHW_TENSOR_INIT;
  scalar.data = step;
  scalar.dtype = SHW_INT64;
  status = shw_state_add_tensor(state, "step", 4, &scalar, NULL, NULL, SHW_KIND_AUTO, err);
  if (status != SHW_OK) return status;

  return shw_state_add_object(state, "config", 6, "application/json", "{\"layers\":1}", 12,
                              SHW_KIND_AUTO, err);
}

/* Saves with the step as metadata, which `shardwright info` shows. */
static shw_status save(shw_context* context, const shw_state* state, const char* path,
                       shw_report** report, shw_error** err) {
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  shw_buffer* texts = NULL;
  shw_status status = shw_save_options_set_metadata(&options, "step", "100", &texts, err);
  if (status == SHW_OK) status = shw_save(context, state, NULL, path, NULL, &options, report, err);
  shw_buffer_release(texts);
  return status;
}

static int show_slice(shw_checkpoint* checkpoint) {
  shw_error* error = NULL;
  uint64_t index = 0;
  if (shw_checkpoint_find_tensor(checkpoint, "layer.weight", 12, -1, &index, &error) != SHW_OK) {
    return failed("find", error);
  }
  static const int64_t offsets[] = {1, 2}, sizes[] = {2, 3};
  shw_owned_tensor* slice = NULL;
  if (shw_checkpoint_read_tensor(checkpoint, index, offsets, sizes, 2, &slice, &error) != SHW_OK) {
    return failed("read", error);
  }
  shw_tensor described = SHW_TENSOR_INIT;
  if (shw_owned_tensor_describe(slice, &described, &error) != SHW_OK)
    return failed("describe", error);
  const float* values = described.data;
  printf("layer.weight[1:3, 2:5] = %g %g %g | %g %g %g\n", values[0], values[1], values[2],
         values[3], values[4], values[5]);
  shw_owned_tensor_release(slice);
  return 0;
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "c_minimal_checkpoint";
  float weight[24];
  int64_t step = 100;
  for (int i = 0; i < 24; ++i) weight[i] = (float)i;

  shw_error* error = NULL;
  shw_context* context = NULL;
  shw_state* state = NULL;
  shw_report* report = NULL;
  shw_checkpoint* checkpoint = NULL;
  if (shw_context_create(NULL, &context, &error) != SHW_OK) return failed("context", error);
  if (shw_state_create(&state, &error) != SHW_OK) return failed("state", error);
  if (describe(state, weight, &step, &error) != SHW_OK) return failed("describe", error);
  if (save(context, state, path, &report, &error) != SHW_OK) return failed("save", error);
  printf("saved: %s\n", shw_report_json(report, NULL));
  shw_report_release(report);

  if (shw_checkpoint_open(context, NULL, path, NULL, &checkpoint, &error) != SHW_OK) {
    return failed("open", error);
  }
  if (show_slice(checkpoint) != 0) return 1;
  shw_checkpoint_release(checkpoint);

  memset(weight, 0, sizeof(weight));
  step = 0;
  report = NULL;
  if (shw_load(context, state, NULL, path, NULL, NULL, &report, &error) != SHW_OK) {
    return failed("load", error);
  }
  printf("loaded: step %lld, layer.weight ends with %g\n", (long long)step, weight[23]);
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
  return step == 100 && weight[23] == 23.0F ? 0 : 1;
}
