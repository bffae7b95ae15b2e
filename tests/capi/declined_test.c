/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of two ranks of which one cannot take part: its arguments are wrong or missing, its context
 * takes no jobs, or its host says so. The other one hears of it at once, whatever its deadline. */
#include "support/host_storage.h"
#include "support/ranks.h"
#include "support/scratch.h"
#include "support/states.h"

enum { LOAD = 1, ASYNCHRONOUS = 2, KINDS = 4 };

/* What is wrong on rank 1. */
enum fault {
  NO_CONTEXT,
  NO_STATE,
  NO_PATH,
  NO_OUT,
  ERROR_SLOT_TAKEN,
  RELEASED_STATE,
  BAD_OPTION,
  BAD_SIZE,
  CONTEXT_SHUT_DOWN,
  FAULTS
};

struct scene {
  enum fault fault;
  int kind;
  const char* path;
  shw_context* contexts[2];
  shw_state* states[2];
};

struct call {
  shw_context* context;
  shw_state* state;
  const char* path;
  shw_collective* collective;
  shw_save_options save;
  shw_load_options load;
  int without_out;
};

static struct call good_call(const struct scene* scene, const struct rank* rank) {
  struct call call = {scene->contexts[rank->rank],
                      scene->states[rank->rank],
                      scene->path,
                      rank->collective,
                      SHW_SAVE_OPTIONS_INIT,
                      SHW_LOAD_OPTIONS_INIT,
                      0};
  return call;
}

static shw_status make_call(const struct call* call, int kind, shw_error** err) {
  shw_report* report = NULL;
  shw_job* job = NULL;
  shw_report** reports = call->without_out ? NULL : &report;
  shw_job** jobs = call->without_out ? NULL : &job;
  shw_status status = SHW_OK;
  switch (kind) {
    case 0:
      status = shw_save(call->context, call->state, NULL, call->path, call->collective, &call->save,
                        reports, err);
      break;
    case LOAD:
      status = shw_load(call->context, call->state, NULL, call->path, call->collective, &call->load,
                        reports, err);
      break;
    case ASYNCHRONOUS:
      status = shw_save_async(call->context, call->state, NULL, call->path, call->collective,
                              &call->save, jobs, err);
      break;
    default:
      status = shw_load_async(call->context, call->state, NULL, call->path, call->collective,
                              &call->load, jobs, err);
      break;
  }
  if (status == SHW_OK && job != NULL) status = shw_job_wait(job, -1, err);
  shw_job_release(job);
  shw_report_release(report);
  return status;
}

/* Makes the arguments wrong; gives the status that the library has for it. */
static shw_status spoil(struct call* call, const struct scene* scene, shw_error** slot) {
  shw_error* error = NULL;
  switch (scene->fault) {
    case NO_CONTEXT:
      call->context = NULL;
      return SHW_INVALID_ARGUMENT;
    case NO_STATE:
      call->state = NULL;
      return SHW_INVALID_ARGUMENT;
    case NO_PATH:
      call->path = NULL;
      return SHW_INVALID_ARGUMENT;
    case NO_OUT:
      call->without_out = 1;
      return SHW_INVALID_ARGUMENT;
    case ERROR_SLOT_TAKEN:
      CHECK_INT(shw_error_create(SHW_ABORTED, "old", 3, NULL, 0, NULL, slot), SHW_ABORTED);
      return SHW_INVALID_ARGUMENT;
    case RELEASED_STATE:
      shw_state_release(call->state);
      return SHW_FAILED_PRECONDITION;
    case BAD_OPTION:
      call->save.overwrite = 17;
      call->load.missing = 17;
      return SHW_INVALID_ARGUMENT;
    case BAD_SIZE:
      call->save.struct_size = call->load.struct_size = 3;
      return SHW_INVALID_ARGUMENT;
    default:
      CHECK_OK(shw_context_shutdown(call->context, -1, &error));
      return SHW_FAILED_PRECONDITION;
  }
}

static void play(struct rank* rank) {
  const struct scene* scene = rank->user;
  struct call call = good_call(scene, rank);
  shw_error* error = NULL;
  if (rank->rank == 0) {
    const int taken = scene->fault == RELEASED_STATE || scene->fault == CONTEXT_SHUT_DOWN;
    CHECK_INT(make_call(&call, scene->kind, &error),
              taken ? SHW_FAILED_PRECONDITION : SHW_INVALID_ARGUMENT);
    CHECK(error != NULL);
  } else {
    shw_error* slot = NULL;
    const shw_status wanted = spoil(&call, scene, &slot);
    CHECK_INT(make_call(&call, scene->kind, slot != NULL ? &slot : &error), wanted);
    shw_error_release(slot);
  }
  shw_error_release(error);
}

static void a_wrong_argument_on_one_rank_reaches_the_other(void) {
  static float values[4] = {1, 2, 3, 4};
  struct scene scene = {NO_CONTEXT, 0, path_in(scratch_directory(), "c"), {NULL}, {NULL}};
  for (int fault = 0; fault < FAULTS; ++fault) {
    for (scene.kind = 0; scene.kind < KINDS; ++scene.kind) {
      if (fault == CONTEXT_SHUT_DOWN && (scene.kind & ASYNCHRONOUS) == 0) continue;
      scene.fault = (enum fault)fault;
      for (int i = 0; i < 2; ++i) {
        scene.contexts[i] = make_context();
        scene.states[i] = make_state();
        add_floats(scene.states[i], "w", values, SHAPE(4), 1);
      }
      save_at(scene.contexts[0], scene.states[0], scene.path);
      run_ranks(2, play, &scene);
      for (int i = 0; i < 2; ++i) {
        if (i == 0 || fault != RELEASED_STATE) shw_state_release(scene.states[i]);
        shw_context_release(scene.contexts[i]);
      }
    }
  }
}

static void decline(struct rank* rank) {
  const struct scene* scene = rank->user;
  struct call call = good_call(scene, rank);
  shw_error* error = NULL;
  if (rank->rank == 0) {
    CHECK_FAILS(make_call(&call, scene->kind, &error), SHW_NOT_FOUND, "the host has lost it");
    return;
  }
  const int32_t which = (scene->kind & LOAD) != 0 ? SHW_CALL_LOAD : SHW_CALL_SAVE;
  if ((scene->kind & ASYNCHRONOUS) == 0) {
    CHECK_OK(shw_collective_decline(rank->collective, which, SHW_NOT_FOUND, "the host has lost it",
                                    20, &error));
    return;
  }
  shw_job* job = NULL;
  CHECK_OK(shw_collective_decline_async(call.context, rank->collective, which, SHW_NOT_FOUND,
                                        "the host has lost it", 20, &job, &error));
  CHECK_FAILS(shw_job_wait(job, -1, &error), SHW_NOT_FOUND, "the host has lost it");
  shw_job_release(job);
}

static void a_host_declines_for_its_rank(void) {
  struct scene scene = {FAULTS, 0, path_in(scratch_directory(), "c"), {NULL}, {NULL}};
  for (int i = 0; i < 2; ++i) {
    scene.contexts[i] = make_context();
    scene.states[i] = make_state();
  }
  save_at(scene.contexts[0], scene.states[0], scene.path);
  for (scene.kind = 0; scene.kind < KINDS; ++scene.kind) run_ranks(2, decline, &scene);
  for (int i = 0; i < 2; ++i) {
    shw_state_release(scene.states[i]);
    shw_context_release(scene.contexts[i]);
  }
}

static void declining_is_checked(void) {
  shw_error* error = NULL;
  shw_job* job = NULL;
  shw_collective* alone = NULL;
  shw_context* context = make_context();
  CHECK_OK(shw_collective_create_single(&alone, &error));
  CHECK_OK(shw_collective_decline(alone, SHW_CALL_SAVE, SHW_ABORTED, NULL, 0, &error));
  CHECK_FAILS(shw_collective_decline(alone, 2, SHW_ABORTED, NULL, 0, &error), SHW_INVALID_ARGUMENT,
              "call");
  CHECK_FAILS(shw_collective_decline(alone, SHW_CALL_SAVE, SHW_OK, NULL, 0, &error),
              SHW_INVALID_ARGUMENT, "code");
  CHECK_FAILS(shw_collective_decline_async(context, alone, SHW_CALL_LOAD, SHW_PENDING, NULL, 0,
                                           &job, &error),
              SHW_INVALID_ARGUMENT, "code");
  CHECK(job == NULL);
  shw_collective_release(alone);
  shw_context_release(context);
}

/* A storage of one rank in whose first call another save or load is tried. */
struct nested {
  struct scene scene;
  shw_collective* collective; /* of the nested call */
  int rank;
  int tried;
  shw_storage_stat_fn stat;
};
static struct nested nested;

static shw_status try_a_call(void* user, const char* key, uint64_t size, shw_storage_list_fn sink,
                             void* sink_user, shw_error** err) {
  if (!nested.tried) {
    shw_error* error = NULL;
    const struct rank rank = {nested.rank, 2, nested.collective, NULL};
    const struct call call = good_call(&nested.scene, &rank);
    nested.tried = 1;
    CHECK_FAILS(make_call(&call, nested.scene.kind, &error), SHW_FAILED_PRECONDITION, "callback");
  }
  return nested.stat(user, key, size, sink, sink_user, err);
}

/* Saves the state of a rank with the storage above; `collective` NULL = alone. */
static void save_with_a_nested_call(const struct rank* rank, shw_collective* collective) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_storage_vtable table = host_table();
  nested.stat = table.stat;
  table.stat = try_a_call;
  nested.collective = rank->collective;
  nested.rank = rank->rank;
  nested.tried = 0;
  shw_storage* storage = storage_of_table(&table);
  CHECK_OK(shw_save(nested.scene.contexts[rank->rank], nested.scene.states[rank->rank], storage,
                    "run", collective, NULL, &report, &error));
  CHECK(nested.tried);
  shw_report_release(report);
  shw_storage_release(storage);
}

static void meet_one_in_a_callback(struct rank* rank) {
  if (rank->rank == 0) {
    shw_error* error = NULL;
    struct call call = good_call(&nested.scene, rank);
    call.save.deadline_ns = call.load.deadline_ns = 60000000000;
    CHECK_FAILS(make_call(&call, nested.scene.kind, &error), SHW_FAILED_PRECONDITION, "callback");
    return;
  }
  save_with_a_nested_call(rank, NULL);
}

/* The call that has the ranks goes on. */
static void nest_a_call_of_the_same_ranks(struct rank* rank) {
  if (rank->rank == 0) {
    save_with_a_nested_call(rank, rank->collective);
    return;
  }
  shw_error* error = NULL;
  shw_report* report = NULL;
  const shw_storage_vtable table = host_table(); /* stays empty: rank 0 writes all */
  shw_storage* storage = storage_of_table(&table);
  CHECK_OK(shw_save(nested.scene.contexts[1], nested.scene.states[1], storage, "run",
                    rank->collective, NULL, &report, &error));
  shw_report_release(report);
  shw_storage_release(storage);
}

static void a_call_in_a_callback_reaches_those_who_wait_for_it(void) {
  static float values[4] = {1, 2, 3, 4};
  nested.scene.path = path_in(scratch_directory(), "c");
  for (int i = 0; i < 2; ++i) {
    nested.scene.contexts[i] = make_context();
    nested.scene.states[i] = make_state();
    add_floats(nested.scene.states[i], "w", values, SHAPE(4), 1);
  }
  save_at(nested.scene.contexts[0], nested.scene.states[0], nested.scene.path);
  for (nested.scene.kind = 0; nested.scene.kind < KINDS; ++nested.scene.kind) {
    run_ranks(2, meet_one_in_a_callback, NULL);
    run_ranks(2, nest_a_call_of_the_same_ranks, NULL);
  }
  for (int i = 0; i < 2; ++i) {
    shw_state_release(nested.scene.states[i]);
    shw_context_release(nested.scene.contexts[i]);
  }
}

TEST_MAIN(TEST_ENTRY(a_call_in_a_callback_reaches_those_who_wait_for_it),
          TEST_ENTRY(a_wrong_argument_on_one_rank_reaches_the_other),
          TEST_ENTRY(a_host_declines_for_its_rank), TEST_ENTRY(declining_is_checked))
