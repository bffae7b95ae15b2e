/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancellations: every call that was given one ends with it, before it begins and in the middle;
 * what was at the path stays whole; a late one changes nothing. */
#include <pthread.h>

#include "support/scratch.h"
#include "support/states.h"

enum { VALUES = 1 << 20 };
static float values[VALUES];
static float targets[VALUES];

static shw_cancellation* make_cancellation(int cancelled) {
  shw_error* error = NULL;
  shw_cancellation* made = NULL;
  CHECK_OK(shw_cancellation_create(&made, &error));
  if (cancelled) shw_cancellation_cancel(made);
  return made;
}

/* A context, a state of one big tensor and a checkpoint of it. */
struct fixture {
  shw_context* context;
  shw_state* state;
  const char* path;
  shw_save_options save;
  shw_load_options load;
};

static void begin(struct fixture* fixture, shw_cancellation* cancellation) {
  fixture->context = make_context();
  fixture->state = make_state();
  for (int i = 0; i < VALUES; ++i) values[i] = (float)i;
  add_floats(fixture->state, "big", values, SHAPE(1024, 1024), 2);
  fixture->path = path_in(scratch_directory(), "c");
  save_at(fixture->context, fixture->state, fixture->path);
  shw_save_options_init(&fixture->save, sizeof(fixture->save));
  shw_load_options_init(&fixture->load, sizeof(fixture->load));
  fixture->save.cancellation = cancellation;
  fixture->load.cancellation = cancellation;
}

static void end(struct fixture* fixture) {
  shw_checkpoint* checkpoint = open_at(fixture->context, fixture->path);
  shw_report* report = NULL;
  shw_error* error = NULL;
  CHECK_OK(shw_checkpoint_verify(checkpoint, 1, &report, &error));
  CHECK_INT(shw_report_name_count(report, SHW_REPORT_FINDING), 0);
  shw_report_release(report);
  shw_checkpoint_release(checkpoint);
  shw_state_release(fixture->state);
  shw_context_release(fixture->context);
}

static shw_status save_with(const struct fixture* fixture, shw_error** error) {
  shw_report* report = NULL;
  const shw_status status = shw_save(fixture->context, fixture->state, NULL, fixture->path, NULL,
                                     &fixture->save, &report, error);
  CHECK((report != NULL) == (status == SHW_OK));
  shw_report_release(report);
  return status;
}

static void calls_that_begin_cancelled_do_nothing(void) {
  shw_error* error = NULL;
  shw_cancellation* cancellation = make_cancellation(1);
  struct fixture fixture;
  begin(&fixture, cancellation);
  shw_state* into = make_state();
  shw_report* report = NULL;
  add_floats(into, "big", targets, SHAPE(1024, 1024), 2);
  CHECK_FAILS(save_with(&fixture, &error), SHW_CANCELLED, "cancelled by the host");
  CHECK_FAILS(
      shw_load(fixture.context, into, NULL, fixture.path, NULL, &fixture.load, &report, &error),
      SHW_CANCELLED, "cancelled by the host");
  for (int i = 0; i < VALUES; ++i) CHECK(targets[i] == 0);
  shw_cancellation_release(cancellation);
  shw_state_release(into);
  end(&fixture);
}

static void planners_and_checkpoints_keep_it(void) {
  shw_error* error = NULL;
  shw_cancellation* cancellation = make_cancellation(0);
  struct fixture fixture;
  begin(&fixture, cancellation);
  shw_save_planner* planner = NULL;
  shw_checkpoint* checkpoint = NULL;
  shw_buffer* plan = NULL;
  shw_owned_tensor* tensor = NULL;
  shw_checkpoint_options opening = SHW_CHECKPOINT_OPTIONS_INIT;
  opening.cancellation = cancellation;
  CHECK_OK(shw_save_planner_create(fixture.context, fixture.state, 0, 1, &fixture.save, &planner,
                                   &error));
  CHECK_OK(shw_checkpoint_open(fixture.context, NULL, fixture.path, &opening, &checkpoint, &error));
  CHECK_OK(shw_checkpoint_read_tensor(checkpoint, 0, NULL, NULL, 2, &tensor, &error));
  shw_cancellation_cancel(cancellation);
  shw_cancellation_release(cancellation); /* they have what they need */
  CHECK_FAILS(shw_save_planner_local_plan(planner, &plan, &error), SHW_CANCELLED,
              "cancelled by the host");
  shw_owned_tensor_release(tensor);
  tensor = NULL;
  CHECK_FAILS(shw_checkpoint_read_tensor(checkpoint, 0, NULL, NULL, 2, &tensor, &error),
              SHW_CANCELLED, "cancelled by the host");
  shw_checkpoint_release(checkpoint);
  shw_save_planner_release(planner);
  end(&fixture);
}

static void jobs_refuse_it(void) {
  shw_error* error = NULL;
  shw_cancellation* cancellation = make_cancellation(0);
  struct fixture fixture;
  begin(&fixture, cancellation);
  shw_job* job = NULL;
  CHECK_FAILS(shw_save_async(fixture.context, fixture.state, NULL, fixture.path, NULL,
                             &fixture.save, &job, &error),
              SHW_INVALID_ARGUMENT, "shw_job_cancel");
  CHECK_FAILS(shw_load_async(fixture.context, fixture.state, NULL, fixture.path, NULL,
                             &fixture.load, &job, &error),
              SHW_INVALID_ARGUMENT, "shw_job_cancel");
  CHECK(job == NULL);
  shw_cancellation_release(cancellation);
  end(&fixture);
}

/* Cancels after some turns of doing nothing. */
struct later {
  shw_cancellation* cancellation;
  int turns;
};
static void* cancel_later(void* given) {
  const struct later* later = given;
  for (volatile int turn = 0; turn < later->turns; ++turn) continue;
  shw_cancellation_cancel(later->cancellation);
  return NULL;
}

static void a_save_is_cancelled_at_any_time(void) {
  int cancelled = 0;
  struct fixture fixture;
  begin(&fixture, NULL);
  for (int turn = 0; turn < 30; ++turn) {
    shw_error* error = NULL;
    struct later later = {make_cancellation(0), turn * 20000};
    pthread_t thread;
    fixture.save.cancellation = later.cancellation;
    CHECK_INT(pthread_create(&thread, NULL, cancel_later, &later), 0);
    const shw_status status = save_with(&fixture, &error);
    CHECK(status == SHW_OK || status == SHW_CANCELLED);
    CHECK_INT(pthread_join(thread, NULL), 0);
    cancelled += status == SHW_CANCELLED;
    shw_error_release(error);
    shw_cancellation_release(later.cancellation);
    shw_checkpoint_release(open_at(fixture.context, fixture.path)); /* the old or the new one */
  }
  CHECK(cancelled > 0);
  end(&fixture);
}

TEST_MAIN(TEST_ENTRY(calls_that_begin_cancelled_do_nothing),
          TEST_ENTRY(planners_and_checkpoints_keep_it), TEST_ENTRY(jobs_refuse_it),
          TEST_ENTRY(a_save_is_cancelled_at_any_time))
