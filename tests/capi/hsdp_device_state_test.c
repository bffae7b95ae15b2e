/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of shards that lie on a device whose memory faults under the host's hands: what is
 * saved there has the digests of what the host saves, goes into units of the host and of the device
 * in other numbers and layouts, and a device that fails commits nothing and names the tensor. */
#include <stdatomic.h>

#include "support/hsdp.h"
#include "support/on_device.h"
#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

enum { RANKS = 2, WEIGHTS = ROWS_OF_WEIGHT * COLUMNS_OF_WEIGHT };

static const int64_t weight_shape[] = {ROWS_OF_WEIGHT, COLUMNS_OF_WEIGHT};

/* Shards that were trained, saved or loaded by ranks on one device. */
struct checkpoint {
  shw_device* device; /* NULL = the host */
  uint32_t flags;
  int32_t layout;
  const char* path;
};

static shw_communicator* over(struct rank* rank) {
  shw_communicator* communicator = NULL;
  shw_error* error = NULL;
  if (rank->size > 1)
    CHECK_OK(shw_communicator_create_over(rank->collective, &communicator, &error));
  return communicator;
}

static void start(struct trainer* trainer, struct rank* rank) {
  const struct checkpoint* checkpoint = rank->user;
  shw_hsdp_unit_options options = SHW_HSDP_UNIT_OPTIONS_INIT;
  options.flags = checkpoint->flags;
  options.layout = checkpoint->layout;
  start_trainer_on(checkpoint->device, trainer, rank->rank, rank->size, over(rank), &options);
}

static void add_shards(struct trainer* trainer, int32_t what, shw_state* state) {
  const char* prefix = what == SHW_HSDP_PARAMS ? "model." : "grad.";
  shw_error* error = NULL;
  CHECK_OK(shw_hsdp_add_to_state(trainer->hsdp, prefix, strlen(prefix), what, state, &error));
}

static void save_ranks(struct trainer* trainer, struct rank* rank, const shw_state* state) {
  const struct checkpoint* checkpoint = rank->user;
  shw_collective* collective = rank->size > 1 ? rank->collective : NULL;
  shw_error* error = NULL;
  shw_report* report = NULL;
  CHECK_OK(
      shw_save(trainer->context, state, NULL, checkpoint->path, collective, NULL, &report, &error));
  shw_report_release(report);
}

/* One round of training, then parameters and gradients. */
static void train_and_save(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_state* state = make_state();
  start(&trainer, rank);
  CHECK_OK(shw_hsdp_unit_pre_forward(trainer.unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_post_forward(trainer.unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_pre_backward(trainer.unit, &error));
  add_constant_grads(&trainer, (float)rank->rank + 1.0F / 3);
  CHECK_OK(shw_hsdp_unit_post_backward(trainer.unit, &error));
  CHECK_OK(shw_hsdp_finalize_backward(trainer.hsdp, &error));
  for (uint64_t i = 0; i < PARAMS; ++i) {
    const shw_tensor local = view_of(&trainer, SHW_HSDP_VIEW_LOCAL, i);
    const shw_tensor grad = view_of(&trainer, SHW_HSDP_VIEW_GRAD, i);
    for (uint64_t n = 0; n < local.byte_size / sizeof(float); ++n)
      seen(&local)[n] -= seen(&grad)[n] / 7.0F;
  }
  CHECK_OK(shw_hsdp_step_event(trainer.hsdp, 0, &error));
  add_shards(&trainer, SHW_HSDP_PARAMS, state);
  add_shards(&trainer, SHW_HSDP_GRADS, state);
  save_ranks(&trainer, rank, state);
  shw_state_release(state);
  end_trainer(&trainer);
}

/* Loads into shards of other numbers, and saves what came beside it. */
static void load_and_save_again(struct rank* rank) {
  struct checkpoint* checkpoint = rank->user;
  struct trainer trainer;
  char again[256];
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_state* state = make_state();
  start(&trainer, rank);
  for (uint64_t i = 0; i < PARAMS; ++i) {
    const shw_tensor local = view_of(&trainer, SHW_HSDP_VIEW_LOCAL, i);
    if (local.byte_size > 0) memset(seen(&local), 0x5A, local.byte_size);
  }
  add_shards(&trainer, SHW_HSDP_PARAMS, state);
  shw_collective* collective = rank->size > 1 ? rank->collective : NULL;
  CHECK_OK(
      shw_load(trainer.context, state, NULL, checkpoint->path, collective, NULL, &report, &error));
  shw_report_release(report);
  CHECK_OK(shw_hsdp_step_event(trainer.hsdp, 0, &error));
  snprintf(again, sizeof(again), "%s.again", checkpoint->path);
  CHECK_OK(shw_save(trainer.context, state, NULL, again, collective, NULL, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  end_trainer(&trainer);
}

static void check_digests(const char* path, const char* other, const char* const* names,
                          int count) {
  shw_context* context = make_context();
  shw_checkpoint* one = open_at(context, path);
  shw_checkpoint* two = open_at(context, other);
  for (int each = 0; each < count; ++each)
    CHECK_TEXT(digest_of(one, names[each]), digest_of(two, names[each]));
  shw_checkpoint_release(one);
  shw_checkpoint_release(two);
  shw_context_release(context);
}

static void digests_are_those_of_the_host(void) {
  static const char* const names[] = {"model.weight", "model.bias", "grad.weight", "grad.bias"};
  shw_device* device = make_device(NULL);
  struct checkpoint host = {.path = path_in(scratch_directory(), "host")};
  run_ranks(RANKS, train_and_save, &host);
  for (uint32_t flags = 0; flags <= SHW_HSDP_UNIT_OFFLOAD; ++flags) {
    for (int32_t layout = SHW_HSDP_LAYOUT_ROW; layout <= SHW_HSDP_LAYOUT_RAGGED; ++layout) {
      struct checkpoint apart = {device, flags, layout, path_in(scratch_directory(), "apart")};
      run_ranks(RANKS, train_and_save, &apart);
      check_digests(host.path, apart.path, names, 4);
    }
  }
  shw_device_release(device);
  CHECK_INT(apart_table_allocations(), 0);
}

/* From the device to the host and back, by as many ranks. */
static void checkpoints_go_round(void) {
  static const char* const names[] = {"model.weight", "model.bias"};
  shw_device* device = make_device(NULL);
  struct checkpoint first = {.device = device, .path = path_in(scratch_directory(), "first")};
  run_ranks(RANKS, train_and_save, &first);
  for (int32_t ranks = 1; ranks <= 3; ++ranks) {
    for (int32_t layout = SHW_HSDP_LAYOUT_ROW; layout <= SHW_HSDP_LAYOUT_RAGGED; ++layout) {
      struct checkpoint there = {device, layout == SHW_HSDP_LAYOUT_ROW ? 0 : SHW_HSDP_UNIT_OFFLOAD,
                                 layout, first.path};
      struct checkpoint here = {.layout = layout, .path = first.path};
      char again[256];
      snprintf(again, sizeof(again), "%s.again", first.path);
      run_ranks(ranks, load_and_save_again, &here);
      check_digests(first.path, again, names, PARAMS);
      run_ranks(ranks, load_and_save_again, &there);
      check_digests(first.path, again, names, PARAMS);
    }
  }
  shw_device_release(device);
}

/* What an optimizer keeps on the device goes with the shards of a state. */
static void other_tensors_of_the_device_go_along(void) {
  struct trainer trainer;
  float values[WEIGHTS];
  shw_device* device = make_device(NULL);
  shw_error* error = NULL;
  shw_report* report = NULL;
  const char* path = path_in(scratch_directory(), "moments");
  void* memory = new_memory(device, sizeof(values));
  const shw_tensor moment = on_device(device, memory, weight_shape);
  for (int i = 0; i < WEIGHTS; ++i) values[i] = (float)i / 3;
  memcpy(seen(&moment), values, sizeof(values));
  shw_state* state = make_state();
  start_trainer_on(device, &trainer, 0, 1, NULL, NULL);
  CHECK_FAILS(try_add_one(state, "moment", 6, &moment, &error), SHW_UNIMPLEMENTED, "extension:5");
  add_shards(&trainer, SHW_HSDP_PARAMS, state);
  CHECK_OK(try_add_one(state, "moment", 6, &moment, &error));
  save_at(trainer.context, state, path);
  memset(seen(&moment), 0, sizeof(values));
  CHECK_OK(shw_load(trainer.context, state, NULL, path, NULL, NULL, &report, &error));
  shw_report_release(report);
  CHECK(memcmp(seen(&moment), values, sizeof(values)) == 0);
  shw_state_release(state);
  end_trainer(&trainer);
  end_memory(device, memory, sizeof(values));
  shw_device_release(device);
}

/* Shards may change as soon as they are staged. */
static void a_save_in_the_background_copies_them_first(void) {
  struct trainer trainer;
  shw_device* device = make_device(NULL);
  shw_error* error = NULL;
  shw_job* job = NULL;
  shw_report* report = NULL;
  const char* path = path_in(scratch_directory(), "background");
  shw_state* state = make_state();
  start_trainer_on(device, &trainer, 0, 1, NULL, NULL);
  add_shards(&trainer, SHW_HSDP_PARAMS, state);
  CHECK_OK(shw_save_async(trainer.context, state, NULL, path, NULL, NULL, &job, &error));
  CHECK_OK(shw_job_wait_staged(job, -1, &error));
  const shw_tensor local = view_of(&trainer, SHW_HSDP_VIEW_LOCAL, WEIGHT);
  memset(seen(&local), 0, local.byte_size);
  CHECK_OK(shw_job_wait(job, -1, &error));
  shw_job_release(job);
  CHECK_OK(shw_load(trainer.context, state, NULL, path, NULL, NULL, &report, &error));
  shw_report_release(report);
  CHECK(memcmp(seen(&local), trainer.weight, sizeof(trainer.weight)) == 0);
  shw_state_release(state);
  end_trainer(&trainer);
  shw_device_release(device);
}

/* A device whose copies fail once so many of them went well. */
static shw_device_copy_fn good_copy;
static atomic_int copies_left;

static shw_status loose_copy(void* user, void* lane, int32_t kind, const void* source, void* target,
                             uint64_t bytes, shw_error** err) {
  static const char text[] = "a wire is loose";
  if (atomic_fetch_sub(&copies_left, 1) > 0)
    return good_copy(user, lane, kind, source, target, bytes, err);
  return shw_error_create(SHW_UNAVAILABLE, text, sizeof(text) - 1, NULL, 0, NULL, err);
}

static shw_device* make_loose_device(void) {
  shw_device_vtable vtable;
  shw_device* device = NULL;
  shw_error* error = NULL;
  fill_apart_table(&vtable, NULL);
  good_copy = vtable.copy;
  vtable.copy = loose_copy;
  atomic_store(&copies_left, INT32_MAX);
  CHECK_OK(shw_device_create(&vtable, &device, &error));
  return device;
}

static void a_copy_that_fails_commits_nothing_and_names_the_tensor(void) {
  struct trainer trainer;
  shw_device* device = make_loose_device();
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_checkpoint* checkpoint = NULL;
  const char* path = path_in(scratch_directory(), "loose");
  shw_state* state = make_state();
  start_trainer_on(device, &trainer, 0, 1, NULL, NULL);
  add_shards(&trainer, SHW_HSDP_PARAMS, state);
  for (int good = 0; good < 2; ++good) {
    atomic_store(&copies_left, good);
    CHECK_FAILS(shw_save(trainer.context, state, NULL, path, NULL, NULL, &report, &error),
                SHW_UNAVAILABLE, good == 0 ? "tensor model." : "device 'apart in C'");
    CHECK_FAILS(shw_checkpoint_open(trainer.context, NULL, path, NULL, &checkpoint, &error),
                SHW_NOT_FOUND, "loose");
  }
  atomic_store(&copies_left, INT32_MAX);
  save_at(trainer.context, state, path);
  atomic_store(&copies_left, 0);
  CHECK_FAILS(shw_load(trainer.context, state, NULL, path, NULL, NULL, &report, &error),
              SHW_UNAVAILABLE, "tensor model.");
  atomic_store(&copies_left, INT32_MAX);
  shw_state_release(state);
  end_trainer(&trainer);
  shw_device_release(device);
}

TEST_MAIN(TEST_ENTRY(digests_are_those_of_the_host), TEST_ENTRY(checkpoints_go_round),
          TEST_ENTRY(other_tensors_of_the_device_go_along),
          TEST_ENTRY(a_save_in_the_background_copies_them_first),
          TEST_ENTRY(a_copy_that_fails_commits_nothing_and_names_the_tensor))
