/* SPDX-License-Identifier: Apache-2.0
 *
 * HSDP over a device that comes as a table and whose memory faults under the host's hands: the bits
 * are those of the host, what enters and leaves says where it lies, and what cannot be done there
 * is refused by name. */
#include "support/dlpack.h"
#include "support/hsdp.h"
#include "support/on_device.h"
#include "support/ranks.h"
#include "support/states.h"

enum { RANKS = 2, ROUNDS = 5, WEIGHTS = ROWS_OF_WEIGHT * COLUMNS_OF_WEIGHT };

static const int64_t weight_shape[] = {ROWS_OF_WEIGHT, COLUMNS_OF_WEIGHT};

/* A view that says that it lies on the device. */
static shw_tensor view_on(struct trainer* trainer, const shw_device* device, int32_t view,
                          uint64_t index) {
  const shw_tensor found = view_of(trainer, view, index);
  CHECK_INT(found.device_type, device == NULL ? SHW_DEVICE_CPU : SHW_DEVICE_EXTENSION);
  CHECK_INT(found.device_id, device == NULL ? 0 : APART_TABLE_ID);
  return found;
}

/* Training on one device, and what each rank came to. */
struct training {
  shw_device* device; /* NULL = the host */
  shw_device* shards; /* where shards and their gradients lie */
  shw_hsdp_unit_options options;
  struct outcome {
    float weight[ROUNDS][WEIGHTS]; /* its shard */
    float grad[ROUNDS][WEIGHTS];
    double norm[ROUNDS];
  } of_rank[RANKS];
};

static void drop_held(struct DLManagedTensorVersioned* self) {
  end_memory(self->manager_ctx, self->dl_tensor.data, WEIGHTS * sizeof(float));
  free(self->dl_tensor.shape);
  free(self);
}

/* Memory of the device that a framework hands over. */
static struct DLManagedTensorVersioned* hand_over(shw_device* device, void* memory) {
  struct DLManagedTensorVersioned* made = calloc(1, sizeof(*made));
  made->major = 1;
  made->manager_ctx = device;
  made->deleter = drop_held;
  made->dl_tensor.data = memory;
  made->dl_tensor.device_type = device == NULL ? SHW_DEVICE_CPU : shw_device_type(device);
  made->dl_tensor.device_id = device == NULL ? 0 : shw_device_id(device);
  made->dl_tensor.ndim = 2;
  made->dl_tensor.code = DL_FLOAT;
  made->dl_tensor.bits = 32;
  made->dl_tensor.lanes = 1;
  made->dl_tensor.shape = malloc(sizeof(weight_shape));
  memcpy(made->dl_tensor.shape, weight_shape, sizeof(weight_shape));
  return made;
}

/* In memory of the host and of the device, copied, read where it lies, and handed over. What is to
 * be given back afterwards, or NULL. */
static void* add_weight_grad(struct trainer* trainer, shw_device* device, int round,
                             const float* values) {
  static const uint64_t params[] = {WEIGHT};
  shw_error* error = NULL;
  if (round < 2) {
    const shw_tensor grad = float_tensor((float*)values, weight_shape, 2);
    CHECK_OK(shw_hsdp_unit_add_grads(trainer->unit, params, &grad, 1, round, &error));
    return NULL;
  }
  void* memory = new_memory(device, WEIGHTS * sizeof(float));
  const shw_tensor grad = on_device(device, memory, weight_shape);
  memcpy(seen(&grad), values, WEIGHTS * sizeof(float));
  if (round < 4) {
    CHECK_OK(shw_hsdp_unit_add_grads(trainer->unit, params, &grad, 1, round - 2, &error));
    return memory;
  }
  struct DLManagedTensorVersioned* managed = hand_over(device, memory);
  CHECK_OK(
      shw_hsdp_unit_add_grads_dlpack(trainer->unit, params, &managed, 1, SHW_HSDP_TAKE, &error));
  return NULL;
}

static void run_round(struct trainer* trainer, struct training* training, int32_t rank, int round) {
  struct outcome* outcome = &training->of_rank[rank];
  float values[WEIGHTS];
  shw_error* error = NULL;
  CHECK_OK(shw_hsdp_unit_pre_forward(trainer->unit, NULL, &error));
  const shw_tensor full = view_on(trainer, training->device, SHW_HSDP_VIEW_FULL, WEIGHT);
  CHECK_INT(full.shape[0], ROWS_OF_WEIGHT);
  CHECK_OK(shw_hsdp_unit_post_forward(trainer->unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_pre_backward(trainer->unit, &error));
  /* The gradient depends on what was gathered. */
  const shw_tensor again = view_on(trainer, training->device, SHW_HSDP_VIEW_FULL, WEIGHT);
  CHECK_INT(again.dtype, SHW_BFLOAT16);
  const uint16_t* halves = (const uint16_t*)(const void*)seen(&again);
  for (int i = 0; i < WEIGHTS; ++i)
    values[i] = ((float)halves[i] + (float)(rank * 31 + round)) / 7.0F;
  void* memory = add_weight_grad(trainer, training->device, round, values);
  CHECK_OK(shw_hsdp_unit_post_backward(trainer->unit, &error));
  CHECK_OK(shw_hsdp_finalize_backward(trainer->hsdp, &error));
  if (memory != NULL) end_memory(training->device, memory, WEIGHTS * sizeof(float));
  CHECK_OK(shw_hsdp_global_norm(trainer->hsdp, 2.0, &outcome->norm[round], &error));
  CHECK_OK(shw_hsdp_scale_grads(trainer->hsdp, 1.0 / 3, &error));
  const shw_tensor grad = view_on(trainer, training->shards, SHW_HSDP_VIEW_GRAD, WEIGHT);
  const shw_tensor local = view_on(trainer, training->shards, SHW_HSDP_VIEW_LOCAL, WEIGHT);
  float* weights = seen(&local);
  for (uint64_t i = 0; i < local.byte_size / sizeof(float); ++i)
    weights[i] -= seen(&grad)[i] / 1024.0F;
  memcpy(outcome->weight[round], weights, local.byte_size);
  memcpy(outcome->grad[round], seen(&grad), grad.byte_size);
  CHECK_OK(shw_hsdp_zero_grads(trainer->hsdp, &error));
  CHECK(view_on(trainer, training->shards, SHW_HSDP_VIEW_GRAD, WEIGHT).data == NULL);
  CHECK_OK(shw_hsdp_step_event(trainer->hsdp, 0, &error));
}

static void train(struct rank* rank) {
  struct training* training = rank->user;
  struct trainer trainer;
  shw_communicator* communicator = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_communicator_create_over(rank->collective, &communicator, &error));
  start_trainer_on(training->device, &trainer, rank->rank, rank->size, communicator,
                   &training->options);
  for (int round = 0; round < ROUNDS; ++round) run_round(&trainer, training, rank->rank, round);
  end_trainer(&trainer);
}

static void bits_are_those_of_the_host(void) {
  static const int32_t layouts[] = {SHW_HSDP_LAYOUT_ROW, SHW_HSDP_LAYOUT_RAGGED,
                                    SHW_HSDP_LAYOUT_ROW, SHW_HSDP_LAYOUT_RAGGED};
  static const int32_t sums[] = {SHW_FLOAT32, SHW_BFLOAT16, SHW_FLOAT64, SHW_FLOAT32};
  static const uint32_t flags[] = {0, 0, SHW_HSDP_UNIT_OFFLOAD, SHW_HSDP_UNIT_OFFLOAD};
  for (int each = 0; each < 4; ++each) {
    struct training* host = calloc(1, sizeof(*host));
    struct training* apart = calloc(1, sizeof(*apart));
    int released = 0;
    shw_hsdp_unit_options_init(&host->options, sizeof(host->options));
    host->options.param_dtype = SHW_BFLOAT16;
    host->options.reduce_dtype = sums[each];
    host->options.layout = layouts[each];
    host->options.flags = flags[each];
    apart->options = host->options;
    apart->device = make_device(&released);
    apart->shards = flags[each] == 0 ? apart->device : NULL;
    run_ranks(RANKS, train, host);
    run_ranks(RANKS, train, apart);
    CHECK(memcmp(host->of_rank, apart->of_rank, sizeof(host->of_rank)) == 0);
    CHECK(host->of_rank[0].norm[0] > 0);
    CHECK_INT(released, 0);
    shw_device_release(apart->device);
    CHECK_INT(released, 1);
    CHECK_INT(apart_table_allocations(), 0);
    free(apart);
    free(host);
  }
}

/* Of a trainer of one rank whose parameters count up. */
static void check_exported(struct trainer* trainer, struct DLManagedTensorVersioned* exported) {
  CHECK_INT(exported->dl_tensor.device_type, SHW_DEVICE_EXTENSION);
  CHECK_INT(exported->dl_tensor.device_id, APART_TABLE_ID);
  CHECK(memcmp(behind_apart_table(exported->dl_tensor.data), trainer->weight,
               sizeof(trainer->weight)) == 0);
  exported->deleter(exported);
}

static void views_say_where_they_lie(void) {
  struct trainer trainer;
  struct DLManagedTensorVersioned* exported = NULL;
  struct DLManagedTensor* legacy = NULL;
  shw_device* device = make_device(NULL);
  shw_error* error = NULL;
  shw_tensor tensor = SHW_TENSOR_INIT;
  shw_state* state = make_state();
  start_trainer_on(device, &trainer, 0, 1, NULL, NULL);
  shw_device_release(device); /* the context keeps it */
  CHECK_OK(shw_hsdp_unit_view_dlpack(trainer.unit, SHW_HSDP_VIEW_LOCAL, WEIGHT, &exported, &error));
  check_exported(&trainer, exported);
  CHECK_OK(
      shw_hsdp_unit_view_dlpack_legacy(trainer.unit, SHW_HSDP_VIEW_LOCAL, BIAS, &legacy, &error));
  CHECK_INT(legacy->dl_tensor.device_type, SHW_DEVICE_EXTENSION);
  legacy->deleter(legacy);
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_view_dlpack(trainer.unit, SHW_HSDP_VIEW_FULL, WEIGHT, &exported, &error));
  check_exported(&trainer, exported);
  CHECK_OK(shw_hsdp_add_to_state(trainer.hsdp, "model.", 6, SHW_HSDP_PARAMS, state, &error));
  CHECK_OK(shw_state_tensor(state, WEIGHT, &tensor, &error));
  CHECK_INT(tensor.device_type, SHW_DEVICE_EXTENSION);
  CHECK_INT(tensor.device_id, APART_TABLE_ID);
  CHECK(memcmp(seen(&tensor), trainer.weight, sizeof(trainer.weight)) == 0);
  shw_state_release(state);
  end_trainer(&trainer);
  CHECK_INT(apart_table_allocations(), 0);
}

/* Parameters that lie on the device already, and whole ones in memory of the host's choice. */
static void memory_of_the_device_comes_from_the_host_too(void) {
  struct trainer trainer;
  shw_device* device = make_device(NULL);
  shw_error* error = NULL;
  shw_tensor tensors[PARAMS];
  shw_hsdp_unit* unit = NULL;
  shw_tensor full = SHW_TENSOR_INIT;
  shw_hsdp_unit_options options = SHW_HSDP_UNIT_OPTIONS_INIT;
  start_trainer_on(device, &trainer, 0, 1, NULL, NULL);
  shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  const uint64_t sizes[] = {WEIGHTS * sizeof(uint16_t)};
  void* given[] = {new_memory(device, sizes[0])};
  void* weight = new_memory(device, sizeof(trainer.weight));
  batch.count = 1;
  tensors[WEIGHT] = on_device(device, weight, weight_shape);
  memcpy(seen(&tensors[WEIGHT]), trainer.weight, sizeof(trainer.weight));
  options.flags = SHW_HSDP_UNIT_HOST_MEMORY;
  options.param_dtype = SHW_BFLOAT16;
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "other", 5, &options, &unit, &error));
  CHECK_OK(shw_hsdp_unit_add_params(unit, &batch, &error));
  CHECK_OK(shw_hsdp_unit_seal(unit, &error));
  end_memory(device, weight, sizeof(trainer.weight));
  CHECK_OK(shw_hsdp_unit_set_memory(unit, WEIGHT, 1, given, sizes, &error));
  CHECK_OK(shw_hsdp_unit_unshard(unit, NULL, &error));
  CHECK_OK(shw_hsdp_unit_views(unit, SHW_HSDP_VIEW_FULL, WEIGHT, 1, &full, &error));
  CHECK(full.data == given[0]);
  for (int i = 0; i < WEIGHTS; ++i) { /* small numbers, exact in bfloat16 */
    uint32_t bits = (uint32_t)((const uint16_t*)(const void*)seen(&full))[i] << 16;
    CHECK(memcmp(&bits, &trainer.weight[i], sizeof(bits)) == 0);
  }
  CHECK_OK(shw_hsdp_unit_reshard(unit, SHW_HSDP_BACKWARD, &error));
  end_memory(device, given[0], sizes[0]);
  shw_hsdp_unit_release(unit);
  end_trainer(&trainer);
  shw_device_release(device);
}

/* A shard with the host, of parameters that lie on the device already. */
static void offloaded_parameters_come_from_the_device(void) {
  struct trainer trainer;
  shw_device* device = make_device(NULL);
  shw_error* error = NULL;
  shw_tensor tensors[PARAMS];
  shw_hsdp_unit* unit = NULL;
  shw_tensor local = SHW_TENSOR_INIT;
  shw_hsdp_unit_options options = SHW_HSDP_UNIT_OPTIONS_INIT;
  start_trainer_on(device, &trainer, 0, 1, NULL, NULL);
  shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  void* weight = new_memory(device, sizeof(trainer.weight));
  tensors[WEIGHT] = on_device(device, weight, weight_shape);
  memcpy(seen(&tensors[WEIGHT]), trainer.weight, sizeof(trainer.weight));
  options.flags = SHW_HSDP_UNIT_OFFLOAD;
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "offloaded", 9, &options, &unit, &error));
  CHECK_OK(shw_hsdp_unit_add_params(unit, &batch, &error));
  CHECK_OK(shw_hsdp_unit_seal(unit, &error));
  end_memory(device, weight, sizeof(trainer.weight));
  CHECK_OK(shw_hsdp_unit_views(unit, SHW_HSDP_VIEW_LOCAL, WEIGHT, 1, &local, &error));
  CHECK_INT(local.device_type, SHW_DEVICE_CPU);
  CHECK(memcmp(local.data, trainer.weight, sizeof(trainer.weight)) == 0);
  CHECK_OK(shw_hsdp_unit_views(unit, SHW_HSDP_VIEW_LOCAL, BIAS, 1, &local, &error));
  CHECK(memcmp(local.data, trainer.bias, sizeof(trainer.bias)) == 0);
  shw_hsdp_unit_release(unit);
  end_trainer(&trainer);
  shw_device_release(device);
}

static void check_grad(struct trainer* trainer, const shw_tensor* grad, const char* text) {
  static const uint64_t params[] = {WEIGHT};
  shw_error* error = NULL;
  CHECK_FAILS(shw_hsdp_unit_add_grads(trainer->unit, params, grad, 1, SHW_HSDP_ADD, &error),
              SHW_UNIMPLEMENTED, text);
}

static void what_lies_elsewhere_is_refused_by_name(void) {
  struct trainer trainer;
  shw_device* device = make_device(NULL);
  shw_error* error = NULL;
  shw_hsdp_unit* unit = NULL;
  shw_tensor tensors[PARAMS];
  start_trainer_on(device, &trainer, 0, 1, NULL, NULL);
  CHECK_OK(shw_hsdp_unit_unshard(trainer.unit, NULL, &error));
  shw_tensor grad = on_device(device, trainer.weight, weight_shape);
  grad.stream = 7;
  check_grad(&trainer, &grad, "stream is 7");
  grad.stream = 0;
  grad.device_id = 4;
  check_grad(&trainer, &grad, "lies on extension:4, and the context has its memory on extension:5");
  grad.device_type = SHW_DEVICE_CUDA;
  check_grad(&trainer, &grad, "lies on cuda:4");
  CHECK_OK(shw_hsdp_unit_create(trainer.hsdp, "other", 5, NULL, &unit, &error));
  shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  tensors[BIAS].device_type = SHW_DEVICE_CUDA;
  CHECK_FAILS(shw_hsdp_unit_add_params(unit, &batch, &error), SHW_UNIMPLEMENTED,
              "parameter 'bias' (entry 1)");
  CHECK_FAILS(shw_hsdp_step_event(trainer.hsdp, 3, &error), SHW_UNIMPLEMENTED, "event is 3");
  shw_hsdp_unit_release(unit);
  end_trainer(&trainer);
  shw_device_release(device);
}

/* A device without memory for another unit. */
static shw_status allocate_nothing(void* user, uint64_t bytes, void** out, shw_error** err) {
  static const char text[] = "the device is full";
  (void)user, (void)bytes, (void)out;
  return shw_error_create(SHW_RESOURCE_EXHAUSTED, text, sizeof(text) - 1, NULL, 0, NULL, err);
}

static void a_full_device_is_told(void) {
  shw_device_vtable vtable;
  shw_device* device = NULL;
  shw_error* error = NULL;
  shw_hsdp_options chosen = SHW_HSDP_OPTIONS_INIT;
  shw_hsdp* hsdp = NULL;
  shw_hsdp_unit* unit = NULL;
  struct trainer trainer;
  shw_tensor tensors[PARAMS];
  start_trainer(&trainer, 0, 1, NULL, NULL);
  fill_apart_table(&vtable, NULL);
  vtable.memory_allocate = allocate_nothing;
  CHECK_OK(shw_device_create(&vtable, &device, &error));
  chosen.mesh = trainer.mesh;
  chosen.device = device;
  CHECK_OK(shw_hsdp_create(trainer.context, &chosen, &hsdp, &error));
  CHECK_OK(shw_hsdp_unit_create(hsdp, "layer", 5, NULL, &unit, &error));
  const shw_hsdp_param_batch batch = weight_and_bias(&trainer, tensors);
  CHECK_OK(shw_hsdp_unit_add_params(unit, &batch, &error));
  CHECK_FAILS(shw_hsdp_unit_seal(unit, &error), SHW_RESOURCE_EXHAUSTED, "the device is full");
  shw_hsdp_unit_release(unit);
  shw_hsdp_release(hsdp);
  shw_device_release(device);
  end_trainer(&trainer);
}

TEST_MAIN(TEST_ENTRY(bits_are_those_of_the_host), TEST_ENTRY(views_say_where_they_lie),
          TEST_ENTRY(memory_of_the_device_comes_from_the_host_too),
          TEST_ENTRY(offloaded_parameters_come_from_the_device),
          TEST_ENTRY(what_lies_elsewhere_is_refused_by_name), TEST_ENTRY(a_full_device_is_told))
