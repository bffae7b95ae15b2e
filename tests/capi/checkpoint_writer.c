/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves generation after generation at one path until it is killed: checkpoint_writer PATH BYTES
 * [COUNT]. In generation n all values of tensor "value" are n and metadata "n" says so; each line
 * "saved n" on stdout means that generation n is durable. */
#include "support/states.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: checkpoint_writer PATH BYTES [COUNT]\n");
    return 2;
  }
  const int64_t count = (int64_t)(strtoull(argv[2], NULL, 10) / sizeof(float));
  const int64_t generations = argc > 3 ? strtoll(argv[3], NULL, 10) : INT64_MAX;
  float* values = malloc((size_t)count * sizeof(float) + 1);
  CHECK(values != NULL);
  shw_context* context = make_context();
  shw_state* state = make_state();
  add_floats(state, "value", values, &count, 1);
  for (int64_t n = 1; n <= generations; ++n) {
    shw_error* error = NULL;
    shw_report* report = NULL;
    char metadata[32];
    const int digits = snprintf(metadata, sizeof(metadata), "n%lld", (long long)n);
    const uint64_t offsets[] = {0, 1, (uint64_t)digits};
    shw_save_options options = SHW_SAVE_OPTIONS_INIT;
    options.metadata = metadata;
    options.metadata_offsets = offsets;
    options.metadata_count = 1;
    for (int64_t i = 0; i < count; ++i) values[i] = (float)n;
    CHECK_OK(shw_save(context, state, NULL, argv[1], NULL, &options, &report, &error));
    shw_report_release(report);
    printf("saved %lld\n", (long long)n);
    fflush(stdout);
  }
  shw_state_release(state);
  shw_context_release(context);
  free(values);
  return 0;
}
