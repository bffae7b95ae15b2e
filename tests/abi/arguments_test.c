/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function: each pointer NULL in turn, an error slot that is already full, no error slot, a
 * forked child, a call from a callback. */
#include <sys/wait.h>
#include <unistd.h>

#include "every_call.h"
#include "support/states.h"

#define WANT_GETTERS
#include "api_calls.inc"

enum { CALLS = sizeof(api_calls) / sizeof(api_calls[0]) };

static void check_call(const struct api_call* call, shw_status found, shw_status wanted) {
  if (found == wanted) return;
  fprintf(stderr, "%s gives %s, expected %s\n", call->name, shw_status_name(found),
          shw_status_name(wanted));
  exit(1);
}

static void null_pointers_are_named(void) {
  struct env env;
  make_env(&env);
  for (int i = 0; i < CALLS; ++i) {
    for (int k = 0; k < api_calls[i].null_count; ++k) {
      shw_error* error = NULL;
      shw_error_detail detail = {NULL, "", 0};
      const shw_status status = api_calls[i].call(&env, api_calls[i].nulls[k], &error);
      check_call(&api_calls[i], status, SHW_INVALID_ARGUMENT);
      for (uint64_t d = 0; shw_error_detail_at(error, d, &detail) == SHW_OK; ++d) {
        if (strcmp(detail.key, "parameter") == 0) break;
      }
      if (strcmp(detail.value, api_calls[i].null_names[k]) != 0) {
        fprintf(stderr, "%s with NULL %s names '%s'\n", api_calls[i].name,
                api_calls[i].null_names[k], detail.value);
        exit(1);
      }
      CHECK(outs_untouched(&env));
      shw_error_release(error);
      /* The same without an error slot. */
      check_call(&api_calls[i], api_calls[i].call(&env, api_calls[i].nulls[k], NULL),
                 SHW_INVALID_ARGUMENT);
    }
  }
  release_env(&env);
}

static void getters_and_releases_take_null(void) {
  call_getters_with_null();
}

static void a_full_error_slot_is_left_alone(void) {
  struct env env;
  make_env(&env);
  shw_error* full = NULL;
  CHECK_INT(shw_error_create(SHW_ABORTED, "kept", 4, NULL, 0, NULL, &full), SHW_ABORTED);
  for (int i = 0; i < CALLS; ++i) {
    shw_error* error = full;
    check_call(&api_calls[i], api_calls[i].call(&env, -1, &error), SHW_INVALID_ARGUMENT);
    CHECK(error == full && outs_untouched(&env));
  }
  CHECK_TEXT(shw_error_message(full, NULL), "kept");
  shw_error_release(full);
  release_env(&env);
}

static void run_in_child(struct env* env) {
  for (int i = 0; i < CALLS; ++i) {
    shw_error* error = NULL;
    check_call(&api_calls[i], api_calls[i].call(env, -1, &error), SHW_FAILED_PRECONDITION);
    CHECK(strstr(shw_error_message(error, NULL), "fork") != NULL);
    shw_error_release(error);
  }
  CHECK(outs_untouched(env));
  CHECK_TEXT(shw_status_name(SHW_OK), "OK");
  CHECK(strlen(shw_version_string()) > 0);
  release_env(env); /* frees the handles and touches neither threads nor files */
}

static void a_forked_child_is_refused(void) {
  struct env env;
  make_env(&env);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    run_in_child(&env);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_INT(status, 0);
  release_env(&env);
}

/* A storage whose stat calls every function of the library. */
static struct env* callback_env;
static shw_status reenter(void* user, const char* key, uint64_t size, shw_storage_list_fn sink,
                          void* sink_user, shw_error** err) {
  (void)user, (void)key, (void)size, (void)sink, (void)sink_user;
  for (int i = 0; i < CALLS; ++i) {
    shw_error* error = NULL;
    check_call(&api_calls[i], api_calls[i].call(callback_env, -1, &error), SHW_FAILED_PRECONDITION);
    CHECK(strstr(shw_error_message(error, NULL), "callback") != NULL);
    shw_error_release(error);
  }
  shw_job_cancel(callback_env->job); /* callback-safe, as making an error is */
  return shw_error_create(SHW_HOST_EXCEPTION, "seen", 4, NULL, 0, NULL, err);
}

static shw_status any_open(void* user, const char* key, uint64_t size, int32_t mode, void** object,
                           shw_error** err) {
  (void)user, (void)key, (void)size, (void)mode, (void)object, (void)err;
  return SHW_INTERNAL;
}
static void any_object(void* user, void* object) {
  (void)user, (void)object;
}
static shw_status any_list(void* user, const char* prefix, uint64_t size, int32_t delimiter,
                           shw_storage_list_fn sink, void* sink_user, shw_error** err) {
  (void)delimiter, (void)user, (void)prefix, (void)size, (void)sink, (void)sink_user, (void)err;
  return SHW_OK;
}
static shw_status any_read(void* user, void* object, uint64_t offset, void* data, uint64_t size,
                           uint64_t* done, shw_error** err) {
  (void)user, (void)object, (void)offset, (void)data, (void)size, (void)done, (void)err;
  return SHW_INTERNAL;
}
static shw_status any_write(void* user, void* object, uint64_t offset, const void* data,
                            uint64_t size, shw_error** err) {
  (void)user, (void)object, (void)offset, (void)data, (void)size, (void)err;
  return SHW_INTERNAL;
}
static shw_status any_sync(void* user, void* object, shw_error** err) {
  (void)user, (void)object, (void)err;
  return SHW_INTERNAL;
}
static shw_status any_commit(void* user, void* object, int32_t condition, const char* version,
                             uint64_t version_size, shw_error** err) {
  (void)user, (void)object, (void)condition, (void)version, (void)version_size, (void)err;
  return SHW_INTERNAL;
}
static shw_status any_remove(void* user, const char* key, uint64_t size, shw_error** err) {
  (void)user, (void)key, (void)size, (void)err;
  return SHW_OK;
}

static void calls_from_a_callback_are_refused(void) {
  struct env env;
  shw_error* error = NULL;
  shw_storage* storage = NULL;
  shw_storage_stat stat = SHW_STORAGE_STAT_INIT;
  shw_storage_vtable table = SHW_STORAGE_VTABLE_INIT;
  make_env(&env);
  callback_env = &env;
  table.name = "reentrant";
  table.open = any_open;
  table.close = any_object;
  table.stat = reenter;
  table.list = any_list;
  table.read_at = any_read;
  table.write_at = any_write;
  table.sync = any_sync;
  table.commit = any_commit;
  table.abort = any_object;
  table.remove = any_remove;
  CHECK_OK(shw_storage_create(&table, &storage, &error));
  CHECK_FAILS(shw_storage_stat_key(storage, "k", 1, &stat, &error), SHW_HOST_EXCEPTION, "seen");
  CHECK(outs_untouched(&env));
  shw_storage_release(storage);
  release_env(&env);
}

TEST_MAIN(TEST_ENTRY(null_pointers_are_named), TEST_ENTRY(getters_and_releases_take_null),
          TEST_ENTRY(a_full_error_slot_is_left_alone), TEST_ENTRY(a_forked_child_is_refused),
          TEST_ENTRY(calls_from_a_callback_are_refused))
