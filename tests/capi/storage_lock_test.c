/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock slots of a storage of the host, as garbage collection uses them: held by another, broken, taken. The storage
 * is empty otherwise. */
#include <malloc.h>

#include "support/states.h"

enum { ROUNDS = 1000, MESSAGE_BYTES = 16384 };

/* What the lock slot answers, and how often the slots were called. */
struct lock {
  shw_status answer;
  const char* message; /* NULL = no error object */
  void* handle;
  int locked;
  int unlocked;
};

static shw_status on_open(void* user, const char* key, uint64_t key_size, int32_t mode,
                          void** object, shw_error** err) {
  (void)user, (void)key, (void)key_size, (void)mode, (void)object, (void)err;
  return SHW_NOT_FOUND;
}
static void on_object(void* user, void* object) {
  (void)user, (void)object;
}
static shw_status on_stat(void* user, const char* key, uint64_t key_size, shw_storage_stat* out,
                          shw_error** err) {
  (void)user, (void)key, (void)key_size, (void)out, (void)err;
  return SHW_NOT_FOUND;
}
static shw_status on_list(void* user, const char* prefix, uint64_t prefix_size,
                          shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  (void)user, (void)prefix, (void)prefix_size, (void)sink, (void)sink_user, (void)err;
  return SHW_OK;
}
static shw_status on_read(void* user, void* object, uint64_t offset, void* data, uint64_t size,
                          uint64_t* done, shw_error** err) {
  (void)user, (void)object, (void)offset, (void)data, (void)size, (void)done, (void)err;
  return SHW_UNAVAILABLE;
}
static shw_status on_write(void* user, void* object, uint64_t offset, const void* data,
                           uint64_t size, shw_error** err) {
  (void)user, (void)object, (void)offset, (void)data, (void)size, (void)err;
  return SHW_UNAVAILABLE;
}
static shw_status on_sync(void* user, void* object, shw_error** err) {
  (void)user, (void)object, (void)err;
  return SHW_UNAVAILABLE;
}
static shw_status on_commit(void* user, void* object, int32_t condition, uint64_t version,
                            shw_error** err) {
  (void)user, (void)object, (void)condition, (void)version, (void)err;
  return SHW_UNAVAILABLE;
}
static shw_status on_remove(void* user, const char* key, uint64_t key_size, shw_error** err) {
  (void)user, (void)key, (void)key_size, (void)err;
  return SHW_OK;
}

static shw_status on_lock(void* user, const char* key, uint64_t key_size, int64_t timeout_ns,
                          void** handle, shw_error** err) {
  struct lock* lock = user;
  (void)key, (void)key_size, (void)timeout_ns;
  ++lock->locked;
  *handle = lock->handle;
  if (lock->message != NULL)
    shw_error_create(SHW_UNAVAILABLE, lock->message, strlen(lock->message), NULL, 0, NULL, err);
  return lock->answer;
}
static void on_unlock(void* user, void* handle) {
  struct lock* lock = user;
  CHECK(handle == lock->handle);
  ++lock->unlocked;
}

static shw_storage* storage_with(struct lock* lock) {
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  shw_storage_vtable table = SHW_STORAGE_VTABLE_INIT;
  table.name = "locks";
  table.user = lock;
  table.open = on_open;
  table.close = on_object;
  table.stat = on_stat;
  table.list = on_list;
  table.read_at = on_read;
  table.write_at = on_write;
  table.sync = on_sync;
  table.commit = on_commit;
  table.abort = on_object;
  table.remove = on_remove;
  table.lock = on_lock;
  table.unlock = on_unlock;
  CHECK_OK(shw_storage_create(&table, &storage, &error));
  return storage;
}

static shw_status collect(shw_context* context, shw_storage* storage, shw_error** err) {
  shw_report* report = NULL;
  const shw_status status =
      shw_checkpoint_gc(context, storage, "run", -1, SHW_GC_APPLY, &report, err);
  shw_report_release(report);
  return status;
}

static void the_error_of_a_lock_that_another_holds_is_released(void) {
  shw_error* error = NULL;
  char* message = calloc(1, MESSAGE_BYTES);
  memset(message, 'x', MESSAGE_BYTES - 1);
  struct lock lock = {SHW_PENDING, message, NULL, 0, 0};
  shw_context* context = make_context();
  shw_storage* storage = storage_with(&lock);
  /* Nothing lies there, which is found out after the lock was asked for. */
  CHECK_FAILS(collect(context, storage, &error), SHW_NOT_FOUND, "no checkpoint at 'run'");
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < ROUNDS; ++i)
    CHECK_FAILS(collect(context, storage, &error), SHW_NOT_FOUND, "no checkpoint at 'run'");
  CHECK(mallinfo2().uordblks < before + (size_t)ROUNDS * MESSAGE_BYTES / 4);
  CHECK_INT(lock.locked, ROUNDS + 1);
  CHECK_INT(lock.unlocked, 0);
  shw_storage_release(storage);
  shw_context_release(context);
  free(message);
}

static void a_lock_without_a_handle_is_an_error_of_the_storage(void) {
  shw_error* error = NULL;
  struct lock lock = {SHW_OK, NULL, NULL, 0, 0};
  shw_context* context = make_context();
  shw_storage* storage = storage_with(&lock);
  CHECK_FAILS(collect(context, storage, &error), SHW_INTERNAL, "in storage 'locks'");
  CHECK_INT(lock.locked, 1);
  CHECK_INT(lock.unlocked, 0);
  shw_storage_release(storage);
  shw_context_release(context);
}

static void a_lock_is_given_back_once(void) {
  shw_error* error = NULL;
  struct lock lock = {SHW_OK, NULL, &lock, 0, 0};
  shw_context* context = make_context();
  shw_storage* storage = storage_with(&lock);
  CHECK_FAILS(collect(context, storage, &error), SHW_NOT_FOUND, "no checkpoint at 'run'");
  CHECK_INT(lock.unlocked, 1);
  lock.answer = SHW_UNAVAILABLE;
  lock.message = "the lock service is away";
  CHECK_FAILS(collect(context, storage, &error), SHW_UNAVAILABLE, "in storage 'locks'");
  CHECK_INT(lock.unlocked, 1);
  shw_storage_release(storage);
  shw_context_release(context);
}

TEST_MAIN(TEST_ENTRY(the_error_of_a_lock_that_another_holds_is_released),
          TEST_ENTRY(a_lock_without_a_handle_is_an_error_of_the_storage),
          TEST_ENTRY(a_lock_is_given_back_once))
