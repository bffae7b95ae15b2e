/* SPDX-License-Identifier: Apache-2.0
 *
 * HSDP through the C interface: threads are ranks, a model of 18 numbers. What the bits of a run
 * are is tested in tests/core/hsdp; here is what the interface adds. */
#include <math.h>

#include "support/hsdp.h"
#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

static shw_communicator* communicator_of(struct rank* rank) {
  shw_communicator* communicator = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_communicator_create_over(rank->collective, &communicator, &error));
  return communicator;
}

static void run_iteration(struct trainer* trainer, float grad) {
  shw_error* error = NULL;
  CHECK_OK(shw_hsdp_unit_pre_forward(trainer->unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_post_forward(trainer->unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_pre_backward(trainer->unit, &error));
  add_constant_grads(trainer, grad);
  CHECK_OK(shw_hsdp_unit_post_backward(trainer->unit, &error));
  CHECK_OK(shw_hsdp_finalize_backward(trainer->hsdp, &error));
}

/* Shards of 5 rows on two ranks are 3 and 2, those of 3 rows 2 and 1. */
static void train_two(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  start_trainer(&trainer, rank->rank, 2, communicator_of(rank), NULL);
  const shw_tensor local = view_of(&trainer, SHW_HSDP_VIEW_LOCAL, WEIGHT);
  CHECK_INT(local.shape[0], rank->rank == 0 ? 3 : 2);
  CHECK(((const float*)local.data)[0] == (rank->rank == 0 ? 1.0F : 10.0F));
  CHECK_OK(shw_hsdp_unit_pre_forward(trainer.unit, NULL, &error));
  CHECK_INT(shw_hsdp_unit_state(trainer.unit), SHW_HSDP_UNSHARDED);
  const shw_tensor full = view_of(&trainer, SHW_HSDP_VIEW_FULL, WEIGHT);
  CHECK_INT(full.shape[0], ROWS_OF_WEIGHT);
  CHECK(memcmp(full.data, trainer.weight, sizeof(trainer.weight)) == 0);
  CHECK_OK(shw_hsdp_unit_post_forward(trainer.unit, NULL, &error));
  CHECK_INT(shw_hsdp_unit_state(trainer.unit), SHW_HSDP_SHARDED);
  CHECK_OK(shw_hsdp_unit_pre_backward(trainer.unit, &error));
  add_constant_grads(&trainer, rank->rank == 0 ? 2.0F : 4.0F);
  CHECK_INT(shw_hsdp_unit_grad_state(trainer.unit), SHW_HSDP_GRAD_LOCAL);
  CHECK_OK(shw_hsdp_unit_post_backward(trainer.unit, &error));
  CHECK_OK(shw_hsdp_finalize_backward(trainer.hsdp, &error));
  CHECK_INT(shw_hsdp_unit_grad_state(trainer.unit), SHW_HSDP_GRAD_READY);
  const shw_tensor grad = view_of(&trainer, SHW_HSDP_VIEW_GRAD, BIAS);
  CHECK_INT(grad.shape[0], rank->rank == 0 ? 2 : 1);
  CHECK(((const float*)grad.data)[0] == 3.0F); /* the mean */
  double norm = 0;
  CHECK_OK(shw_hsdp_global_norm(trainer.hsdp, 2.0, &norm, &error));
  CHECK(fabs(norm - sqrt(18 * 9.0)) < 1e-12);
  CHECK_OK(shw_hsdp_global_norm(trainer.hsdp, INFINITY, &norm, &error));
  CHECK(norm == 3.0);
  CHECK_OK(shw_hsdp_scale_grads(trainer.hsdp, 0.5, &error));
  CHECK(((const float*)grad.data)[0] == 1.5F);
  CHECK_OK(shw_hsdp_zero_grads(trainer.hsdp, &error));
  CHECK(view_of(&trainer, SHW_HSDP_VIEW_GRAD, BIAS).data == NULL);
  CHECK_OK(shw_hsdp_step_event(trainer.hsdp, 0, &error));
  end_trainer(&trainer);
}

static void two_ranks_gather_and_reduce(void) {
  run_ranks(2, train_two, NULL);
}

static void steps_one_by_one(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_work* work = NULL;
  start_trainer(&trainer, rank->rank, 2, communicator_of(rank), NULL);
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, &work, &error));
  CHECK_INT(shw_hsdp_unit_state(trainer.unit), SHW_HSDP_GATHERING);
  CHECK_OK(shw_work_wait(work, -1, &error));
  CHECK_INT(shw_hsdp_unit_state(trainer.unit), SHW_HSDP_UNSHARDED);
  CHECK_OK(shw_work_poll(work, &error));
  shw_work_release(work);
  add_constant_grads(&trainer, 1.0F);
  CHECK_OK(shw_hsdp_unit_reduce(trainer.unit, &work, &error));
  CHECK_OK(shw_work_wait(work, -1, &error));
  shw_work_release(work);
  CHECK(((const float*)view_of(&trainer, SHW_HSDP_VIEW_GRAD, WEIGHT).data)[0] == 1.0F);
  /* Gathers that are dropped do nothing any more, whatever is released first. */
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, &work, &error));
  CHECK_OK(shw_hsdp_unit_reshard(trainer.unit, SHW_HSDP_BACKWARD, &error));
  CHECK_INT(shw_hsdp_unit_state(trainer.unit), SHW_HSDP_SHARDED);
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_wait(trainer.unit, &error));
  CHECK_OK(shw_hsdp_unit_reshard(trainer.unit, SHW_HSDP_FORWARD, &error));
  CHECK_OK(shw_hsdp_unit_reduce(trainer.unit, NULL, &error));
  end_trainer(&trainer);
  CHECK_OK(shw_work_wait(work, -1, &error));
  shw_work_release(work);
}

static void phases_are_made_of_steps(void) {
  run_ranks(2, steps_one_by_one, NULL);
}

static void settings_are_given_and_read(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  int64_t value = 0;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  const int64_t defaults[] = {1, 1, SHW_HSDP_RESHARD_AUTO, 0, 1, SHW_HSDP_REDUCE_AVERAGE, 1, 0, 0};
  for (int32_t key = 0; key <= SHW_HSDP_UNUSED_POLICY; ++key) {
    CHECK_OK(shw_hsdp_unit_get_i64(trainer.unit, key, &value, &error));
    CHECK_INT(value, defaults[key]);
    if (key == SHW_HSDP_SECONDARY_SIZE) continue;
    CHECK_OK(shw_hsdp_set_i64(trainer.hsdp, key, 1 - value, &error));
    CHECK_OK(shw_hsdp_unit_get_i64(trainer.unit, key, &value, &error));
    CHECK_INT(value, 1 - defaults[key]);
    CHECK_OK(shw_hsdp_unit_set_i64(trainer.unit, key, defaults[key], &error));
    CHECK_FAILS(shw_hsdp_unit_set_i64(trainer.unit, key, 9, &error), SHW_INVALID_ARGUMENT, "is 9");
    CHECK_FAILS(shw_hsdp_set_i64(trainer.hsdp, key, -1, &error), SHW_INVALID_ARGUMENT, "is -1");
  }
  CHECK_FAILS(shw_hsdp_unit_set_i64(trainer.unit, SHW_HSDP_DIVIDE_FACTOR, 1, &error),
              SHW_INVALID_ARGUMENT, "no value that is set here");
  CHECK_FAILS(shw_hsdp_set_i64(trainer.hsdp, 99, 1, &error), SHW_INVALID_ARGUMENT, "99 is no");
  double factor = 1.0;
  CHECK_OK(shw_hsdp_unit_get_f64(trainer.unit, SHW_HSDP_DIVIDE_FACTOR, &factor, &error));
  CHECK(factor == 0.0);
  CHECK_OK(shw_hsdp_set_f64(trainer.hsdp, SHW_HSDP_DIVIDE_FACTOR, 4.0, &error));
  CHECK_OK(shw_hsdp_unit_get_f64(trainer.unit, SHW_HSDP_DIVIDE_FACTOR, &factor, &error));
  CHECK(factor == 4.0);
  CHECK_FAILS(shw_hsdp_unit_get_f64(trainer.unit, SHW_HSDP_REDUCE_OP, &factor, &error),
              SHW_INVALID_ARGUMENT, "no value that is set here");
  run_iteration(&trainer, 2.0F);
  CHECK(((const float*)view_of(&trainer, SHW_HSDP_VIEW_GRAD, BIAS).data)[0] == 0.5F);
  CHECK_FAILS(shw_hsdp_unit_set_f64(trainer.unit, SHW_HSDP_DIVIDE_FACTOR, -1.0, &error),
              SHW_INVALID_ARGUMENT, "divide_factor");
  CHECK_FAILS(shw_hsdp_unit_set_f64(trainer.unit, SHW_HSDP_REDUCE_OP, 1.0, &error),
              SHW_INVALID_ARGUMENT, "no value that is set here");
  CHECK_OK(shw_hsdp_set_i64(trainer.hsdp, SHW_HSDP_PREFETCH_DEPTH, -1, &error));
  CHECK_OK(shw_hsdp_set_i64(trainer.hsdp, SHW_HSDP_PREFETCH_DEPTH, 0, &error));
  CHECK_OK(shw_hsdp_set_i64(trainer.hsdp, SHW_HSDP_MAX_INFLIGHT_REDUCE, 2, &error));
  CHECK_OK(shw_hsdp_set_i64(trainer.hsdp, SHW_HSDP_IS_LAST_BACKWARD, 0, &error));
  CHECK_FAILS(shw_hsdp_set_i64(trainer.hsdp, SHW_HSDP_PREFETCH_DEPTH, -2, &error),
              SHW_INVALID_ARGUMENT, "prefetch_depth");
  CHECK_FAILS(shw_hsdp_set_i64(trainer.hsdp, SHW_HSDP_MAX_INFLIGHT_REDUCE, -2, &error),
              SHW_INVALID_ARGUMENT, "max_inflight_reduce");
  end_trainer(&trainer);
}

static void settings_of_contexts_are_read(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  /* What is given (-1 and 0 stand for none and the default), and what is read then. */
  const int64_t given[][3] = {
      {SHW_HSDP_PREFETCH_DEPTH, 3, 3},      {SHW_HSDP_PREFETCH_DEPTH, -1, 0},
      {SHW_HSDP_PREFETCH_DEPTH, 0, 1},      {SHW_HSDP_MAX_INFLIGHT_REDUCE, 2, 2},
      {SHW_HSDP_MAX_INFLIGHT_REDUCE, 0, 1}, {SHW_HSDP_IS_LAST_BACKWARD, 0, 0},
      {SHW_HSDP_IS_LAST_BACKWARD, 1, 1}};
  for (size_t each = 0; each < sizeof(given) / sizeof(given[0]); ++each) {
    int64_t value = -9;
    const int32_t key = (int32_t)given[each][0];
    CHECK_OK(shw_hsdp_set_i64(trainer.hsdp, key, given[each][1], &error));
    CHECK_OK(shw_hsdp_get_i64(trainer.hsdp, key, &value, &error));
    CHECK_INT(value, given[each][2]);
  }
  int64_t value = -9;
  CHECK_FAILS(shw_hsdp_get_i64(trainer.hsdp, SHW_HSDP_REDUCE_OP, &value, &error),
              SHW_INVALID_ARGUMENT, "no value of a context");
  CHECK_INT(value, -9);
  end_trainer(&trainer);
}

static void poll_reduction(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_work* work = NULL;
  start_trainer(&trainer, rank->rank, 2, communicator_of(rank), NULL);
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_wait(trainer.unit, &error));
  add_constant_grads(&trainer, 1.0F);
  CHECK_OK(shw_hsdp_unit_reduce(trainer.unit, &work, &error));
  shw_status status = SHW_PENDING;
  while (status == SHW_PENDING) status = shw_work_poll(work, NULL);
  CHECK_INT(status, SHW_OK);
  /* Nobody waited, and the gradient is there. */
  CHECK_INT(shw_hsdp_unit_grad_state(trainer.unit), SHW_HSDP_GRAD_READY);
  CHECK(((const float*)view_of(&trainer, SHW_HSDP_VIEW_GRAD, WEIGHT).data)[0] == 1.0F);
  CHECK_OK(shw_work_poll(work, &error));
  shw_work_release(work);
  end_trainer(&trainer);
}

static void reductions_that_are_polled_come_to_their_end(void) {
  run_ranks(2, poll_reduction, NULL);
}

static void units_are_gathered_ahead_and_frozen(void) {
  struct trainer trainer, other;
  shw_error* error = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  start_trainer(&other, 0, 1, NULL, NULL);
  shw_hsdp_unit* mine[] = {trainer.unit};
  shw_hsdp_unit* foreign[] = {other.unit};
  CHECK_OK(shw_hsdp_unit_set_units(trainer.unit, SHW_HSDP_FORWARD_PREFETCH, mine, 1, &error));
  CHECK_OK(shw_hsdp_unit_set_units(trainer.unit, SHW_HSDP_BACKWARD_PREFETCH, NULL, 0, &error));
  CHECK_FAILS(shw_hsdp_unit_set_units(trainer.unit, SHW_HSDP_FORWARD_PREFETCH, foreign, 1, &error),
              SHW_INVALID_ARGUMENT, "its own context");
  CHECK_FAILS(shw_hsdp_unit_set_units(trainer.unit, SHW_HSDP_REDUCE_OP, mine, 1, &error),
              SHW_INVALID_ARGUMENT, "no list of units");
  CHECK_OK(shw_hsdp_unit_set_frozen(trainer.unit, BIAS, 1, &error));
  CHECK_FAILS(shw_hsdp_unit_set_frozen(trainer.unit, 2, 1, &error), SHW_OUT_OF_RANGE,
              "parameter 2");
  CHECK_OK(shw_hsdp_unit_pre_forward(trainer.unit, NULL, &error));
  const uint64_t params[] = {BIAS};
  const shw_tensor grad = float_tensor(trainer.bias, SHAPE(COLUMNS_OF_WEIGHT), 1);
  CHECK_FAILS(shw_hsdp_unit_add_grads(trainer.unit, params, &grad, 1, SHW_HSDP_TAKE, &error),
              SHW_INVALID_ARGUMENT, "frozen");
  end_trainer(&other);
  end_trainer(&trainer);
}

static void save_shards(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_state* state = make_state();
  start_trainer(&trainer, rank->rank, rank->size, communicator_of(rank), NULL);
  CHECK_OK(shw_hsdp_add_to_state(trainer.hsdp, "model.", 6, SHW_HSDP_PARAMS, state, &error));
  CHECK_INT(shw_state_tensor_count(state), PARAMS);
  CHECK_TEXT(shw_state_tensor_name(state, BIAS, NULL), "model.bias");
  shw_context* context = trainer.context;
  trainer.context = NULL;
  end_trainer(&trainer); /* the state keeps the shards */
  CHECK_OK(shw_save(context, state, NULL, rank->user, rank->collective, NULL, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  shw_context_release(context);
}

static void load_shards(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_state* state = make_state();
  shw_hsdp_unit_options options = SHW_HSDP_UNIT_OPTIONS_INIT;
  options.layout = rank->size == 2 ? SHW_HSDP_LAYOUT_RAGGED : SHW_HSDP_LAYOUT_ROW;
  start_trainer(&trainer, rank->rank, rank->size, communicator_of(rank), &options);
  for (uint64_t i = 0; i < PARAMS; ++i) { /* other numbers than those that were saved */
    const shw_tensor local = view_of(&trainer, SHW_HSDP_VIEW_LOCAL, i);
    memset(local.data, 0x5A, local.byte_size);
  }
  CHECK_OK(shw_hsdp_add_to_state(trainer.hsdp, "model.", 6, SHW_HSDP_PARAMS, state, &error));
  CHECK_OK(
      shw_load(trainer.context, state, NULL, rank->user, rank->collective, NULL, &report, &error));
  shw_report_release(report);
  shw_state_release(state);
  CHECK_OK(shw_hsdp_step_event(trainer.hsdp, 0, &error));
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, NULL, &error));
  CHECK(memcmp(view_of(&trainer, SHW_HSDP_VIEW_FULL, WEIGHT).data, trainer.weight,
               sizeof(trainer.weight)) == 0);
  CHECK(memcmp(view_of(&trainer, SHW_HSDP_VIEW_FULL, BIAS).data, trainer.bias,
               sizeof(trainer.bias)) == 0);
  end_trainer(&trainer);
}

static void shards_are_saved_and_loaded_on_other_ranks(void) {
  char path[256];
  snprintf(path, sizeof(path), "%s/shards", scratch_directory());
  run_ranks(4, save_shards, path);
  for (int32_t size = 1; size <= 4; ++size) run_ranks(size, load_shards, path);
}

static void gradients_are_saved_when_they_are_there(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_state* state = make_state();
  start_trainer(&trainer, 0, 1, NULL, NULL);
  CHECK_OK(shw_hsdp_add_to_state(trainer.hsdp, NULL, 0, SHW_HSDP_GRADS, state, &error));
  CHECK_INT(shw_state_tensor_count(state), 0);
  CHECK_OK(shw_hsdp_set_i64(trainer.hsdp, SHW_HSDP_REQUIRES_GRADIENT_SYNC, 0, &error));
  run_iteration(&trainer, 1.0F);
  CHECK_FAILS(shw_hsdp_add_to_state(trainer.hsdp, NULL, 0, SHW_HSDP_GRADS, state, &error),
              SHW_FAILED_PRECONDITION, "gradients of unit 'layer'");
  CHECK_OK(shw_hsdp_set_i64(trainer.hsdp, SHW_HSDP_REQUIRES_GRADIENT_SYNC, 1, &error));
  run_iteration(&trainer, 1.0F);
  CHECK_OK(shw_hsdp_add_to_state(trainer.hsdp, "grad.", 5, SHW_HSDP_GRADS, state, &error));
  CHECK_INT(shw_state_tensor_count(state), PARAMS);
  CHECK_OK(shw_hsdp_add_to_state(trainer.hsdp, NULL, 0, SHW_HSDP_PARAMS, state, &error));
  CHECK_FAILS(shw_hsdp_add_to_state(trainer.hsdp, NULL, 0, SHW_HSDP_PARAMS, state, &error),
              SHW_ALREADY_EXISTS, "weight");
  CHECK_INT(shw_state_tensor_count(state), 2 * PARAMS);
  CHECK_FAILS(shw_hsdp_add_to_state(trainer.hsdp, NULL, 0, 2, state, &error), SHW_INVALID_ARGUMENT,
              "what");
  shw_state_release(state);
  end_trainer(&trainer);
}

static void boxes_layouts_and_names_are_told(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_hsdp_box box = SHW_HSDP_BOX_INIT;
  shw_layout* layout = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  CHECK_INT(shw_hsdp_unit_param_count(trainer.unit), PARAMS);
  CHECK_TEXT(shw_hsdp_unit_param_name(trainer.unit, WEIGHT, NULL), "weight");
  CHECK_TEXT(shw_hsdp_unit_param_name(trainer.unit, PARAMS, NULL), "");
  CHECK_OK(shw_hsdp_unit_box(trainer.unit, WEIGHT, &box, &error));
  CHECK(box.ndim == 2 && box.offsets[0] == 0 && box.sizes[0] == ROWS_OF_WEIGHT &&
        box.global_shape[1] == COLUMNS_OF_WEIGHT);
  CHECK_OK(shw_hsdp_unit_layout(trainer.unit, WEIGHT, &layout, &error));
  CHECK_INT(shw_layout_rank_count(layout), 1);
  shw_layout_release(layout);
  CHECK_FAILS(shw_hsdp_unit_box(trainer.unit, PARAMS, &box, &error), SHW_OUT_OF_RANGE, "layer");
  end_trainer(&trainer);
  shw_hsdp_unit_options ragged = SHW_HSDP_UNIT_OPTIONS_INIT;
  ragged.layout = SHW_HSDP_LAYOUT_RAGGED;
  start_trainer(&trainer, 0, 1, NULL, &ragged);
  layout = NULL;
  CHECK_FAILS(shw_hsdp_unit_layout(trainer.unit, WEIGHT, &layout, &error), SHW_UNIMPLEMENTED,
              "shw_hsdp_unit_box");
  end_trainer(&trainer);
}

static void calls_that_come_too_early_or_late_are_refused(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_hsdp_unit* unit = NULL;
  shw_tensor tensors[PARAMS], view = SHW_TENSOR_INIT;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "late", 4, NULL, &unit, &error));
  CHECK_FAILS(shw_hsdp_unit_views(unit, SHW_HSDP_VIEW_LOCAL, 0, 1, &view, &error),
              SHW_FAILED_PRECONDITION, "not sealed");
  CHECK_FAILS(shw_hsdp_unit_pre_forward(unit, NULL, &error), SHW_FAILED_PRECONDITION, "sealed");
  CHECK_TEXT(shw_hsdp_unit_param_name(unit, 0, NULL), "");
  const shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  CHECK_FAILS(shw_hsdp_unit_add_params(trainer.unit, &batch, &error), SHW_FAILED_PRECONDITION,
              "is sealed");
  CHECK_FAILS(shw_hsdp_unit_seal(trainer.unit, &error), SHW_FAILED_PRECONDITION, "sealed already");
  CHECK_FAILS(shw_hsdp_unit_views(trainer.unit, SHW_HSDP_VIEW_FULL, 0, 1, &view, &error),
              SHW_FAILED_PRECONDITION, "SHARDED");
  CHECK_FAILS(shw_hsdp_unit_views(trainer.unit, 3, 0, 1, &view, &error), SHW_INVALID_ARGUMENT,
              "view");
  CHECK_FAILS(shw_hsdp_unit_views(trainer.unit, SHW_HSDP_VIEW_LOCAL, 1, 2, &view, &error),
              SHW_OUT_OF_RANGE, "parameters 1 to 3");
  CHECK_FAILS(shw_hsdp_unit_reshard(trainer.unit, 2, &error), SHW_INVALID_ARGUMENT, "phase");
  CHECK_FAILS(shw_hsdp_step_event(trainer.hsdp, 7, &error), SHW_UNIMPLEMENTED, "event is 7");
  shw_hsdp_unit_release(unit);
  end_trainer(&trainer);
}

/* One batch with one thing wrong in it. */
static void check_batch(struct trainer* trainer, const shw_hsdp_param_batch* batch,
                        shw_status wanted, const char* text) {
  shw_error* error = NULL;
  shw_hsdp_unit* unit = NULL;
  CHECK_OK(shw_hsdp_unit_create(trainer->hsdp, "bad", 3, NULL, &unit, &error));
  CHECK_FAILS(shw_hsdp_unit_add_params(unit, batch, &error), wanted, text);
  CHECK_INT(shw_hsdp_unit_param_count(unit), 0);
  shw_hsdp_unit_release(unit);
}

static void parameters_that_are_none_are_refused(void) {
  struct trainer trainer;
  shw_tensor tensors[PARAMS];
  start_trainer(&trainer, 0, 1, NULL, NULL);
  shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  const shw_hsdp_param_batch good = batch;
  const shw_tensor good_bias = tensors[BIAS];
  tensors[BIAS].dtype = 77;
  check_batch(&trainer, &batch, SHW_INVALID_ARGUMENT, "parameter 'bias'");
  tensors[BIAS].dtype = SHW_INT4;
  tensors[BIAS].data = NULL;
  check_batch(&trainer, &batch, SHW_INVALID_ARGUMENT, "cannot be sharded");
  tensors[BIAS] = good_bias;
  tensors[BIAS].strides = SHAPE(2);
  check_batch(&trainer, &batch, SHW_INVALID_ARGUMENT, "not contiguous");
  tensors[BIAS] = good_bias;
  tensors[BIAS].device_type = SHW_DEVICE_CUDA;
  check_batch(&trainer, &batch, SHW_UNIMPLEMENTED, "copy it");
  tensors[BIAS] = good_bias;
  tensors[BIAS].ndim = -1;
  check_batch(&trainer, &batch, SHW_INVALID_ARGUMENT, "ndim is -1");
  tensors[BIAS] = good_bias;
  static const uint32_t flags[] = {0, 64};
  batch.param_flags = flags;
  check_batch(&trainer, &batch, SHW_UNIMPLEMENTED, "param_flags[1]");
  batch = good;
  static const uint64_t falling[] = {0, 2, 1}, late[] = {1, 1, 1};
  batch.alias_ranges = falling;
  check_batch(&trainer, &batch, SHW_INVALID_ARGUMENT, "does not ascend");
  batch.alias_ranges = late;
  check_batch(&trainer, &batch, SHW_INVALID_ARGUMENT, "begin with 0");
  batch = good;
  batch.tensors = NULL;
  check_batch(&trainer, &batch, SHW_INVALID_ARGUMENT, "tensors");
  end_trainer(&trainer);
}

static void parameters_are_replicated_ignored_and_have_aliases(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_tensor tensors[PARAMS];
  shw_hsdp_unit* unit = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  static const uint32_t flags[] = {SHW_HSDP_PARAM_IGNORE,
                                   SHW_HSDP_PARAM_REPLICATE | SHW_HSDP_PARAM_FROZEN};
  static const uint64_t alias_ranges[] = {0, 0, 1}, alias_offsets[] = {0, 4};
  static const int32_t dims[] = {0, -1};
  batch.param_flags = flags;
  batch.aliases = "tied";
  batch.alias_offsets = alias_offsets;
  batch.alias_ranges = alias_ranges;
  batch.shard_dims = dims;
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "second", 6, NULL, &unit, &error));
  CHECK_OK(shw_hsdp_unit_add_params(unit, &batch, &error));
  CHECK_OK(shw_hsdp_unit_seal(unit, &error));
  CHECK_INT(shw_hsdp_unit_param_count(unit), 1);
  CHECK_TEXT(shw_hsdp_unit_param_name(unit, 0, NULL), "bias");
  shw_hsdp_unit_release(unit);
  end_trainer(&trainer);
}

static void options_that_are_none_are_refused(void) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_hsdp* hsdp = NULL;
  shw_hsdp_unit* unit = NULL;
  start_trainer(&trainer, 0, 1, NULL, NULL);
  shw_hsdp_options options = SHW_HSDP_OPTIONS_INIT;
  CHECK_FAILS(shw_hsdp_create(trainer.context, &options, &hsdp, &error), SHW_INVALID_ARGUMENT,
              "mesh");
  options.mesh = trainer.mesh;
  options.shard_axis = 3;
  CHECK_FAILS(shw_hsdp_create(trainer.context, &options, &hsdp, &error), SHW_INVALID_ARGUMENT,
              "shard axis 3");
  options.shard_axis = 0;
  options.prefetch_depth = -2;
  CHECK_FAILS(shw_hsdp_create(trainer.context, &options, &hsdp, &error), SHW_INVALID_ARGUMENT,
              "prefetch_depth");
  options.prefetch_depth = 0;
  options.order_guard_steps = -2;
  CHECK_FAILS(shw_hsdp_create(trainer.context, &options, &hsdp, &error), SHW_INVALID_ARGUMENT,
              "order_guard_steps");
  options.order_guard_steps = 0;
  options.timeout_ns = -2;
  CHECK_FAILS(shw_hsdp_create(trainer.context, &options, &hsdp, &error), SHW_INVALID_ARGUMENT,
              "timeout_ns");
  shw_hsdp_unit_options of_unit = SHW_HSDP_UNIT_OPTIONS_INIT;
  of_unit.param_dtype = 99;
  CHECK_FAILS(shw_hsdp_unit_create(trainer.hsdp, "u", 1, &of_unit, &unit, &error),
              SHW_INVALID_ARGUMENT, "param_dtype is 99");
  of_unit.param_dtype = 0;
  of_unit.layout = 2;
  CHECK_FAILS(shw_hsdp_unit_create(trainer.hsdp, "u", 1, &of_unit, &unit, &error),
              SHW_INVALID_ARGUMENT, "layout");
  of_unit.layout = 0;
  of_unit.reshard_after_forward = SHW_HSDP_RESHARD_SECONDARY;
  CHECK_FAILS(shw_hsdp_unit_create(trainer.hsdp, "u", 1, &of_unit, &unit, &error),
              SHW_INVALID_ARGUMENT, "secondary_size");
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  shw_hsdp_mesh* mesh = NULL;
  static const int32_t kinds[] = {SHW_PLACEMENT_REPLICATE};
  spec.mesh_ndim = 1;
  spec.mesh_shape = SHAPE(2);
  CHECK_FAILS(shw_hsdp_mesh_create(&spec, 2, &mesh, &error), SHW_INVALID_ARGUMENT, "rank");
  spec.placement_kinds = kinds;
  CHECK_FAILS(shw_hsdp_mesh_create(&spec, 0, &mesh, &error), SHW_INVALID_ARGUMENT, "placements");
  spec.placement_kinds = NULL;
  CHECK_OK(shw_hsdp_mesh_create(&spec, 0, &mesh, &error));
  options.timeout_ns = 0;
  options.mesh = mesh;
  CHECK_FAILS(shw_hsdp_create(trainer.context, &options, &hsdp, &error), SHW_FAILED_PRECONDITION,
              "no communicator");
  shw_communicator* fake = NULL;
  CHECK_OK(shw_communicator_create_fake(0, 3, &fake, &error));
  CHECK_FAILS(shw_hsdp_mesh_set_communicator(mesh, 0, 0, fake, &error), SHW_INVALID_ARGUMENT,
              "rank 0 of 3");
  CHECK_FAILS(shw_hsdp_mesh_set_communicator(mesh, 0, 3, fake, &error), SHW_INVALID_ARGUMENT,
              "lane");
  shw_communicator_release(fake);
  shw_hsdp_mesh_release(mesh);
  end_trainer(&trainer);
}

static void abort_and_go_on(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  start_trainer(&trainer, rank->rank, 2, communicator_of(rank), NULL);
  if (rank->rank == 1) {
    CHECK_OK(
        shw_communicator_abort(trainer.communicator, SHW_CANCELLED, "forward raised", 14, &error));
  }
  CHECK_FAILS(shw_hsdp_unit_unshard(trainer.unit, NULL, &error), SHW_CANCELLED, "forward raised");
  CHECK_FAILS(shw_hsdp_unit_unshard(trainer.unit, NULL, &error), SHW_FAILED_PRECONDITION,
              "forward raised");
  CHECK_FAILS(shw_hsdp_reset(trainer.hsdp, &error), SHW_FAILED_PRECONDITION, "needs new ones");
  shw_communicator** fresh = rank->user;
  CHECK_OK(shw_hsdp_mesh_set_communicator(trainer.mesh, 0, SHW_HSDP_LANE_GATHER, fresh[rank->rank],
                                          &error));
  CHECK_OK(shw_hsdp_reset(trainer.hsdp, &error));
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, NULL, &error));
  CHECK(memcmp(view_of(&trainer, SHW_HSDP_VIEW_FULL, WEIGHT).data, trainer.weight,
               sizeof(trainer.weight)) == 0);
  end_trainer(&trainer);
}

/* The rank that knows of a failure before a call has failed resets as the others do. */
static void abort_and_reset(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  start_trainer(&trainer, rank->rank, 2, communicator_of(rank), NULL);
  if (rank->rank == 1) {
    CHECK_OK(
        shw_communicator_abort(trainer.communicator, SHW_CANCELLED, "forward raised", 14, &error));
  } else {
    CHECK_FAILS(shw_hsdp_unit_unshard(trainer.unit, NULL, &error), SHW_CANCELLED, "forward raised");
  }
  shw_communicator** fresh = rank->user;
  CHECK_OK(shw_hsdp_mesh_set_communicator(trainer.mesh, 0, SHW_HSDP_LANE_GATHER, fresh[rank->rank],
                                          &error));
  CHECK_OK(shw_hsdp_reset(trainer.hsdp, &error));
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, NULL, &error));
  end_trainer(&trainer);
}

static void run_with_fresh_communicators(rank_function function) {
  shw_communicator_group* group = NULL;
  shw_communicator* fresh[2] = {NULL, NULL};
  shw_error* error = NULL;
  CHECK_OK(shw_communicator_group_create(2, &group, &error));
  for (int32_t i = 0; i < 2; ++i)
    CHECK_OK(shw_communicator_group_member(group, i, &fresh[i], &error));
  shw_communicator_group_release(group);
  run_ranks(2, function, fresh);
  for (int i = 0; i < 2; ++i) shw_communicator_release(fresh[i]);
}

static void a_failure_is_told_to_all_and_reset(void) {
  run_with_fresh_communicators(abort_and_go_on);
  run_with_fresh_communicators(abort_and_reset);
}

static uint64_t peak_of(const shw_hsdp* hsdp, int32_t kind) {
  shw_error* error = NULL;
  shw_hsdp_memory memory = SHW_HSDP_MEMORY_INIT;
  CHECK_OK(shw_hsdp_stats(hsdp, kind, &memory, &error));
  return memory.peak_bytes;
}

static void measure(struct rank* rank) {
  struct trainer trainer;
  shw_error* error = NULL;
  shw_tensor tensors[PARAMS];
  start_trainer(&trainer, rank->rank, 2, communicator_of(rank), NULL);
  run_iteration(&trainer, 1.0F);
  CHECK_OK(shw_hsdp_zero_grads(trainer.hsdp, &error));
  run_iteration(&trainer, 1.0F);
  shw_hsdp_estimate_unit unit = SHW_HSDP_ESTIMATE_UNIT_INIT;
  shw_hsdp_estimate_world world = SHW_HSDP_ESTIMATE_WORLD_INIT;
  shw_hsdp_memory memory = SHW_HSDP_MEMORY_INIT;
  const shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  unit.params = &batch;
  unit.flags = SHW_HSDP_ESTIMATE_ADDS_GRADS;
  world.shard_size = 2;
  world.replicate_size = 1;
  world.flags = SHW_HSDP_ESTIMATE_ORDERED_SUMS; /* a communicator over a collective has them */
  for (int32_t kind = SHW_HSDP_MEMORY_ALL; kind <= SHW_HSDP_MEMORY_SHARD_GRADS; ++kind) {
    CHECK_OK(shw_hsdp_estimate(&unit, 1, &world, NULL, kind, &memory, &error));
    CHECK_INT(peak_of(trainer.hsdp, kind), memory.peak_bytes);
  }
  CHECK_OK(shw_hsdp_unit_stats(trainer.unit, &memory, &error));
  CHECK_INT(memory.peak_bytes, peak_of(trainer.hsdp, SHW_HSDP_MEMORY_ALL));
  CHECK_INT(memory.padding_bytes, rank->rank == 0 ? 0 : 16); /* a row and a number */
  CHECK_FAILS(shw_hsdp_stats(trainer.hsdp, 11, &memory, &error), SHW_INVALID_ARGUMENT, "11 is no");
  world.shard_size = 0;
  CHECK_FAILS(shw_hsdp_estimate(&unit, 1, &world, NULL, 0, &memory, &error), SHW_INVALID_ARGUMENT,
              "shard_size is 0");
  end_trainer(&trainer);
}

static void memory_is_what_was_foretold(void) {
  run_ranks(2, measure, NULL);
}

TEST_MAIN(TEST_ENTRY(two_ranks_gather_and_reduce), TEST_ENTRY(phases_are_made_of_steps),
          TEST_ENTRY(settings_are_given_and_read), TEST_ENTRY(settings_of_contexts_are_read),
          TEST_ENTRY(reductions_that_are_polled_come_to_their_end),
          TEST_ENTRY(units_are_gathered_ahead_and_frozen),
          TEST_ENTRY(shards_are_saved_and_loaded_on_other_ranks),
          TEST_ENTRY(gradients_are_saved_when_they_are_there),
          TEST_ENTRY(boxes_layouts_and_names_are_told),
          TEST_ENTRY(calls_that_come_too_early_or_late_are_refused),
          TEST_ENTRY(parameters_that_are_none_are_refused),
          TEST_ENTRY(parameters_are_replicated_ignored_and_have_aliases),
          TEST_ENTRY(options_that_are_none_are_refused),
          TEST_ENTRY(a_failure_is_told_to_all_and_reset), TEST_ENTRY(memory_is_what_was_foretold))
