/* SPDX-License-Identifier: Apache-2.0
 *
 * A lane is a thread and a list of steps. An event holds the point of a lane at which it was
 * recorded last; lanes that are to pass or to wait for a point keep it alive. */
#include "thread_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct point {
  pthread_mutex_t mutex;
  pthread_cond_t passed_on;
  int passed;
  int users;
};

struct event {
  pthread_mutex_t mutex;
  struct point* point; /* NULL as long as it was not recorded */
};

enum step_kind { RUN, PASS, WAIT, COPY };
struct step {
  struct step* next;
  enum step_kind kind;
  shw_device_task_fn task;
  void* data;
  struct point* point;
  const void* source;
  void* target;
  uint64_t bytes;
};

struct lane {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct step* first;
  struct step* last;
  int busy;
  int ends;
  shw_error* failure;
};

static shw_status no_memory(shw_error** err) {
  static const char text[] = "the device has no memory for that";
  return shw_error_create(SHW_RESOURCE_EXHAUSTED, text, sizeof(text) - 1, NULL, 0, NULL, err);
}

static struct point* make_point(void) {
  struct point* point = calloc(1, sizeof(*point));
  if (point == NULL) return NULL;
  pthread_mutex_init(&point->mutex, NULL);
  pthread_cond_init(&point->passed_on, NULL);
  point->users = 1;
  return point;
}

static void join_point(struct point* point) {
  pthread_mutex_lock(&point->mutex);
  ++point->users;
  pthread_mutex_unlock(&point->mutex);
}

static void leave_point(struct point* point) {
  if (point == NULL) return;
  pthread_mutex_lock(&point->mutex);
  const int is_last = --point->users == 0;
  pthread_mutex_unlock(&point->mutex);
  if (!is_last) return;
  pthread_cond_destroy(&point->passed_on);
  pthread_mutex_destroy(&point->mutex);
  free(point);
}

static void pass(struct point* point) {
  pthread_mutex_lock(&point->mutex);
  point->passed = 1;
  pthread_cond_broadcast(&point->passed_on);
  pthread_mutex_unlock(&point->mutex);
}

static void wait_for(struct point* point) {
  pthread_mutex_lock(&point->mutex);
  while (!point->passed) pthread_cond_wait(&point->passed_on, &point->mutex);
  pthread_mutex_unlock(&point->mutex);
}

static shw_error* carry_out(const struct step* step) {
  shw_error* error = NULL;
  if (step->kind == RUN) {
    if (step->task(step->data, &error) != SHW_OK) return error;
  } else if (step->kind == COPY) {
    memcpy(step->target, step->source, step->bytes);
  } else {
    if (step->kind == PASS) pass(step->point);
    if (step->kind == WAIT) wait_for(step->point);
    leave_point(step->point);
  }
  return NULL;
}

static void* run_lane(void* opaque) {
  struct lane* lane = opaque;
  pthread_mutex_lock(&lane->mutex);
  for (;;) {
    while (lane->first == NULL && !lane->ends) pthread_cond_wait(&lane->changed, &lane->mutex);
    struct step* step = lane->first;
    if (step == NULL) break;
    lane->first = step->next;
    lane->busy = 1;
    pthread_mutex_unlock(&lane->mutex);
    shw_error* error = carry_out(step);
    free(step);
    pthread_mutex_lock(&lane->mutex);
    lane->busy = 0;
    if (lane->failure == NULL) {
      lane->failure = error;
    } else {
      shw_error_release(error);
    }
    pthread_cond_broadcast(&lane->changed);
  }
  pthread_mutex_unlock(&lane->mutex);
  return NULL;
}

static shw_status put(struct lane* lane, const struct step* step, shw_error** err) {
  struct step* made = malloc(sizeof(*made));
  if (made == NULL) return no_memory(err);
  *made = *step;
  made->next = NULL;
  pthread_mutex_lock(&lane->mutex);
  if (lane->first == NULL) {
    lane->first = made;
  } else {
    lane->last->next = made;
  }
  lane->last = made;
  pthread_cond_broadcast(&lane->changed);
  pthread_mutex_unlock(&lane->mutex);
  return SHW_OK;
}

static shw_status lane_create(void* user, int32_t priority, void** out, shw_error** err) {
  (void)user, (void)priority;
  struct lane* lane = calloc(1, sizeof(*lane));
  if (lane == NULL) return no_memory(err);
  pthread_mutex_init(&lane->mutex, NULL);
  pthread_cond_init(&lane->changed, NULL);
  if (pthread_create(&lane->thread, NULL, run_lane, lane) != 0) {
    free(lane);
    return no_memory(err);
  }
  *out = lane;
  return SHW_OK;
}

static void lane_release(void* user, void* opaque) {
  struct lane* lane = opaque;
  (void)user;
  pthread_mutex_lock(&lane->mutex);
  lane->ends = 1;
  pthread_cond_broadcast(&lane->changed);
  pthread_mutex_unlock(&lane->mutex);
  pthread_join(lane->thread, NULL);
  shw_error_release(lane->failure);
  pthread_cond_destroy(&lane->changed);
  pthread_mutex_destroy(&lane->mutex);
  free(lane);
}

static shw_status lane_submit(void* user, void* lane, shw_device_task_fn task, void* data,
                              shw_error** err) {
  const struct step step = {.kind = RUN, .task = task, .data = data};
  (void)user;
  return put(lane, &step, err);
}

static shw_status lane_synchronize(void* user, void* opaque, shw_error** err) {
  struct lane* lane = opaque;
  (void)user;
  pthread_mutex_lock(&lane->mutex);
  while (lane->first != NULL || lane->busy) pthread_cond_wait(&lane->changed, &lane->mutex);
  shw_error* failure = lane->failure;
  lane->failure = NULL;
  pthread_mutex_unlock(&lane->mutex);
  if (failure == NULL) return SHW_OK;
  *err = failure;
  return shw_error_code(failure);
}

/* The lane has the point from here on, unless that fails. */
static shw_status put_point(struct lane* lane, struct point* point, enum step_kind kind,
                            shw_error** err) {
  const struct step step = {.kind = kind, .point = point};
  join_point(point);
  const shw_status status = put(lane, &step, err);
  if (status != SHW_OK) leave_point(point);
  return status;
}

static shw_status lane_record(void* user, void* lane, void* opaque, shw_error** err) {
  struct event* event = opaque;
  struct point* point = make_point();
  (void)user;
  if (point == NULL) return no_memory(err);
  const shw_status status = put_point(lane, point, PASS, err);
  if (status != SHW_OK) {
    leave_point(point);
    return status;
  }
  pthread_mutex_lock(&event->mutex);
  struct point* before = event->point;
  event->point = point;
  pthread_mutex_unlock(&event->mutex);
  leave_point(before);
  return SHW_OK;
}

/* The point of the event, kept for the caller; NULL as long as there is none. */
static struct point* point_of(struct event* event) {
  pthread_mutex_lock(&event->mutex);
  struct point* point = event->point;
  if (point != NULL) join_point(point);
  pthread_mutex_unlock(&event->mutex);
  return point;
}

static shw_status lane_wait(void* user, void* lane, void* event, shw_error** err) {
  struct point* point = point_of(event);
  (void)user;
  const shw_status status = point == NULL ? SHW_OK : put_point(lane, point, WAIT, err);
  leave_point(point);
  return status;
}

static shw_status event_create(void* user, void** out, shw_error** err) {
  struct event* event = calloc(1, sizeof(*event));
  (void)user;
  if (event == NULL) return no_memory(err);
  pthread_mutex_init(&event->mutex, NULL);
  *out = event;
  return SHW_OK;
}

static void event_release(void* user, void* opaque) {
  struct event* event = opaque;
  (void)user;
  leave_point(event->point);
  pthread_mutex_destroy(&event->mutex);
  free(event);
}

static shw_status event_wait(void* user, void* event, int64_t timeout_ns, shw_error** err) {
  struct point* point = point_of(event);
  struct timespec until;
  (void)user, (void)err;
  if (point == NULL) return SHW_OK;
  clock_gettime(CLOCK_REALTIME, &until);
  const int64_t end_ns = until.tv_nsec + (timeout_ns < 0 ? 0 : timeout_ns % 1000000000);
  until.tv_sec += (timeout_ns < 0 ? 0 : timeout_ns / 1000000000) + end_ns / 1000000000;
  until.tv_nsec = end_ns % 1000000000;
  int late = 0;
  pthread_mutex_lock(&point->mutex);
  while (!point->passed && late == 0) {
    late = timeout_ns < 0 ? pthread_cond_wait(&point->passed_on, &point->mutex)
                          : pthread_cond_timedwait(&point->passed_on, &point->mutex, &until);
  }
  const int has_passed = point->passed;
  pthread_mutex_unlock(&point->mutex);
  leave_point(point);
  return has_passed ? SHW_OK : SHW_PENDING;
}

static shw_status memory_allocate(void* user, uint64_t bytes, void** out, shw_error** err) {
  (void)user;
  if (bytes > INT64_MAX / 2) return no_memory(err);
  *out = aligned_alloc(64, bytes == 0 ? 64 : (bytes + 63) / 64 * 64);
  return *out == NULL ? no_memory(err) : SHW_OK;
}

static void memory_release(void* user, void* memory, uint64_t bytes) {
  (void)user, (void)bytes;
  free(memory);
}

static shw_status copy(void* user, void* lane, int32_t kind, const void* source, void* target,
                       uint64_t bytes, shw_error** err) {
  const struct step step = {.kind = COPY, .source = source, .target = target, .bytes = bytes};
  (void)user, (void)kind;
  return put(lane, &step, err);
}

static void release(void* user) {
  if (user != NULL) ++*(int*)user;
}

void fill_thread_device(shw_device_vtable* vtable, int pinned, int* released) {
  const shw_device_vtable empty = SHW_DEVICE_VTABLE_INIT;
  *vtable = empty;
  vtable->flags = SHW_DEVICE_IS_HOST;
  vtable->name = "threads in C";
  vtable->user = released;
  vtable->lane_create = lane_create;
  vtable->lane_release = lane_release;
  vtable->lane_submit = lane_submit;
  vtable->lane_synchronize = lane_synchronize;
  vtable->lane_record = lane_record;
  vtable->lane_wait = lane_wait;
  vtable->event_create = event_create;
  vtable->event_release = event_release;
  vtable->event_wait = event_wait;
  vtable->memory_allocate = memory_allocate;
  vtable->memory_release = memory_release;
  vtable->copy = copy;
  vtable->release = release;
  if (!pinned) return;
  vtable->pinned_allocate = memory_allocate;
  vtable->pinned_release = memory_release;
}
