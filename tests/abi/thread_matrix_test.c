/* SPDX-License-Identifier: Apache-2.0
 *
 * Const calls on shared objects from many threads at a time, releases from any thread, jobs polled
 * and cancelled from others. Meant for ThreadSanitizer; without it, a test of results. */
#include <pthread.h>

#include "support/scratch.h"
#include "support/states.h"

enum { THREADS = 4, ROUNDS = 50 };

struct shared {
  shw_context* context;
  shw_checkpoint* checkpoint;
  shw_state* state;
  shw_report* report;
  shw_job* job;
  shw_storage* storage;
  const char* path;
};

static float values[600];

static void read_everything(const struct shared* shared) {
  shw_error* error = NULL;
  float slice[6];
  const uint64_t tensor = tensor_number(shared->checkpoint, "w");
  const int64_t offsets[] = {1, 0}, sizes[] = {2, 3};
  const shw_tensor target = float_tensor(slice, sizes, 2);
  shw_box_batch batch = SHW_BOX_BATCH_INIT;
  shw_report* report = NULL;
  shw_buffer* digest = NULL;
  batch.count = 1;
  batch.tensors = &tensor;
  batch.targets = &target;
  batch.box_offsets = offsets;
  batch.box_sizes = sizes;
  CHECK_OK(shw_checkpoint_read_boxes(shared->checkpoint, &batch, &report, &error));
  CHECK(slice[0] == 3 && slice[5] == 8);
  CHECK_OK(
      shw_checkpoint_digests(shared->checkpoint, &tensor, 1, SHW_DIGEST_XXH3, &digest, &error));
  CHECK_INT(shw_buffer_size(digest), 32);
  CHECK_TEXT(shw_checkpoint_tensor_name(shared->checkpoint, tensor, NULL), "w");
  shw_buffer_release(digest);
  shw_report_release(report);
}

static void ask_everything(const struct shared* shared) {
  shw_error* error = NULL;
  uint64_t index = 0;
  shw_progress progress = SHW_PROGRESS_INIT;
  shw_tensor tensor = SHW_TENSOR_INIT;
  CHECK_OK(shw_state_find_tensor(shared->state, "w", 1, &index, &error));
  CHECK_OK(shw_state_tensor(shared->state, index, &tensor, &error));
  CHECK(strlen(shw_report_json(shared->report, NULL)) > 0);
  CHECK_OK(shw_job_progress(shared->job, &progress, &error));
  CHECK(shw_job_poll(shared->job) >= progress.state);
  CHECK_FAILS(shw_state_find_tensor(shared->state, "x", 1, &index, &error), SHW_NOT_FOUND,
              "nearest: w");
}

static void use_storage(const struct shared* shared, int number) {
  shw_error* error = NULL;
  char key[32];
  const int size = snprintf(key, sizeof(key), "k/%d", number);
  CHECK_OK(shw_storage_put(shared->storage, key, (uint64_t)size, "x", 1, 0, NULL, 0, &error));
  shw_buffer* keys = NULL;
  CHECK_OK(shw_storage_list(shared->storage, "k/", 2, 0, &keys, &error));
  CHECK(shw_buffer_part_count(keys) >= 1);
  shw_buffer_release(keys);
}

static void open_and_save(const struct shared* shared, int number) {
  shw_error* error = NULL;
  char path[32];
  shw_report* report = NULL;
  shw_checkpoint_release(open_at(shared->context, shared->path));
  snprintf(path, sizeof(path), "saved/%d", number);
  CHECK_OK(
      shw_save(shared->context, shared->state, shared->storage, path, NULL, NULL, &report, &error));
  shw_report_release(report);
}

struct worker {
  const struct shared* shared;
  int number;
};

static void* work(void* opaque) {
  const struct worker* worker = opaque;
  for (int round = 0; round < ROUNDS; ++round) {
    read_everything(worker->shared);
    ask_everything(worker->shared);
    use_storage(worker->shared, worker->number);
    if (round % 10 == 0) open_and_save(worker->shared, worker->number);
    if (round == ROUNDS / 2) shw_job_cancel(worker->shared->job);
  }
  return NULL;
}

static void const_calls_run_together(void) {
  shw_error* error = NULL;
  struct shared shared;
  memset(&shared, 0, sizeof(shared));
  for (int i = 0; i < 600; ++i) values[i] = (float)i;
  shared.context = make_context();
  shared.state = make_state();
  shared.path = path_in(scratch_directory(), "c");
  add_floats(shared.state, "w", values, SHAPE(200, 3), 2);
  CHECK_OK(shw_save(shared.context, shared.state, NULL, shared.path, NULL, NULL, &shared.report,
                    &error));
  shared.checkpoint = open_at(shared.context, shared.path);
  CHECK_OK(shw_storage_create_memory(&shared.storage, &error));
  CHECK_OK(shw_save_async(shared.context, shared.state, shared.storage, "job", NULL, NULL,
                          &shared.job, &error));
  pthread_t threads[THREADS];
  struct worker workers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    workers[i].shared = &shared;
    workers[i].number = i;
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  const shw_status ended = shw_job_wait(shared.job, -1, NULL);
  CHECK(ended == SHW_OK || ended == SHW_CANCELLED);
  shw_job_release(shared.job);
  shw_checkpoint_release(shared.checkpoint);
  shw_report_release(shared.report);
  shw_storage_release(shared.storage);
  shw_state_release(shared.state);
  shw_context_release(shared.context);
}

/* Handles made on one thread are released on another. */
static void* release_all(void* opaque) {
  struct shared* shared = opaque;
  shw_context_release(shared->context);
  shw_state_release(shared->state);
  shw_checkpoint_release(shared->checkpoint);
  return NULL;
}

static void releases_come_from_any_thread(void) {
  struct shared shared;
  pthread_t thread;
  memset(&shared, 0, sizeof(shared));
  shared.context = make_context();
  shared.state = make_state();
  add_floats(shared.state, "w", values, SHAPE(200, 3), 2);
  const char* path = path_in(scratch_directory(), "c");
  save_at(shared.context, shared.state, path);
  shared.checkpoint = open_at(shared.context, path);
  CHECK(pthread_create(&thread, NULL, release_all, &shared) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

TEST_MAIN(TEST_ENTRY(const_calls_run_together), TEST_ENTRY(releases_come_from_any_thread))
