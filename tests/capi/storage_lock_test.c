/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock slots of a storage of the host, as saves and garbage collection use them: held by
 * another, broken, not there, taken. */
#include <malloc.h>

#include "support/host_storage.h"
#include "support/states.h"

enum { ROUNDS = 1000, MESSAGE_BYTES = 16384 };

/* What the lock slot answers, and how the slots were called; one test at a time. */
static struct lock {
  shw_status answer;
  const char* message; /* NULL = no error object */
  void* handle;
  int shared;
  int alone;
  int unlocked;
} lock;

static shw_status on_lock(void* user, const char* key, uint64_t key_size, int32_t mode,
                          void** handle, shw_error** err) {
  (void)user;
  CHECK(key_size == 9 && memcmp(key, "run/.lock", 9) == 0);
  CHECK(mode == SHW_LOCK_SHARED || mode == SHW_LOCK_EXCLUSIVE);
  ++*(mode == SHW_LOCK_SHARED ? &lock.shared : &lock.alone);
  *handle = lock.handle;
  if (lock.message != NULL)
    shw_error_create(SHW_UNAVAILABLE, lock.message, strlen(lock.message), NULL, 0, NULL, err);
  return lock.answer;
}
static void on_unlock(void* user, void* handle) {
  (void)user;
  CHECK(handle == lock.handle);
  ++lock.unlocked;
}

static float values[2] = {1, 2};

static shw_status save_in(shw_context* context, shw_storage* storage, shw_error** err) {
  shw_state* state = make_state();
  shw_report* report = NULL;
  add_floats(state, "w", values, SHAPE(2), 1);
  const shw_status status = shw_save(context, state, storage, "run", NULL, NULL, &report, err);
  shw_report_release(report);
  shw_state_release(state);
  return status;
}

/* A storage with these slots and a checkpoint at "run". */
struct fixture {
  shw_context* context;
  shw_storage* storage;
};
static struct fixture saved(void) {
  shw_error* error = NULL;
  shw_storage_vtable table = host_table();
  table.lock = on_lock;
  table.unlock = on_unlock;
  struct fixture made = {make_context(), storage_of_table(&table)};
  memset(&lock, 0, sizeof(lock));
  lock.handle = &lock;
  CHECK_OK(save_in(made.context, made.storage, &error));
  CHECK_INT(lock.shared, 1);
  CHECK_INT(lock.unlocked, 1);
  return made;
}
static void end(struct fixture fixture) {
  shw_storage_release(fixture.storage);
  shw_context_release(fixture.context);
}

static shw_status collect(struct fixture fixture, shw_error** err) {
  shw_report* report = NULL;
  const shw_status status =
      shw_checkpoint_gc(fixture.context, fixture.storage, "run", -1, SHW_GC_APPLY, &report, err);
  shw_report_release(report);
  return status;
}

static void the_error_of_a_lock_that_another_holds_is_released(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  char* message = calloc(1, MESSAGE_BYTES);
  memset(message, 'x', MESSAGE_BYTES - 1);
  lock.answer = SHW_PENDING;
  lock.message = message;
  CHECK_OK(collect(fixture, &error));
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < ROUNDS; ++i) CHECK_OK(collect(fixture, &error));
  CHECK(mallinfo2().uordblks < before + (size_t)ROUNDS * MESSAGE_BYTES / 4);
  CHECK_INT(lock.alone, ROUNDS + 1);
  CHECK_INT(lock.unlocked, 1);
  end(fixture);
  free(message);
}

static void a_lock_without_a_handle_is_an_error_of_the_storage(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  lock.handle = NULL;
  CHECK_FAILS(collect(fixture, &error), SHW_INTERNAL, "in storage 'host'");
  CHECK_FAILS(save_in(fixture.context, fixture.storage, &error), SHW_INTERNAL, "in storage 'host'");
  CHECK_INT(lock.unlocked, 1);
  end(fixture);
}

static void a_lock_is_given_back_once_whatever_comes_of_it(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  CHECK_OK(collect(fixture, &error));
  CHECK_INT(lock.alone, 1);
  CHECK_INT(lock.unlocked, 2);
  lock.answer = SHW_UNAVAILABLE;
  lock.message = "the lock service is away";
  CHECK_FAILS(collect(fixture, &error), SHW_UNAVAILABLE, "in storage 'host'");
  CHECK_INT(lock.unlocked, 2);
  end(fixture);
}

static void a_save_does_not_go_on_without_its_lock(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  shw_buffer* before = NULL;
  shw_buffer* after = NULL;
  CHECK_OK(shw_storage_list(fixture.storage, "", 0, 0, &before, &error));
  lock.answer = SHW_UNAVAILABLE;
  lock.message = "the lock service is away";
  CHECK_FAILS(save_in(fixture.context, fixture.storage, &error), SHW_UNAVAILABLE, "against gc");
  CHECK_OK(shw_storage_list(fixture.storage, "", 0, 0, &after, &error));
  CHECK_INT(shw_buffer_part_count(after), shw_buffer_part_count(before));
  shw_buffer_release(before);
  shw_buffer_release(after);
  end(fixture);
}

static void without_locks_collection_needs_its_full_grace_period(void) {
  shw_error* error = NULL;
  struct fixture fixture = saved();
  lock.answer = SHW_UNIMPLEMENTED;
  CHECK_FAILS(collect(fixture, &error), SHW_FAILED_PRECONDITION, "24 hours");
  CHECK_OK(save_in(fixture.context, fixture.storage, &error));
  shw_report* report = NULL;
  CHECK_OK(
      shw_checkpoint_gc(fixture.context, fixture.storage, "run", 0, SHW_GC_APPLY, &report, &error));
  shw_report_release(report);
  CHECK_INT(lock.unlocked, 1);
  end(fixture);
}

TEST_MAIN(TEST_ENTRY(the_error_of_a_lock_that_another_holds_is_released),
          TEST_ENTRY(a_lock_without_a_handle_is_an_error_of_the_storage),
          TEST_ENTRY(a_lock_is_given_back_once_whatever_comes_of_it),
          TEST_ENTRY(a_save_does_not_go_on_without_its_lock),
          TEST_ENTRY(without_locks_collection_needs_its_full_grace_period))
