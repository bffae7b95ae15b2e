/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves onto a small file system that is really full: no bytes, no files. The file system is a
 * tmpfs in a mount namespace of this process, so that it ends with the process; where that is not
 * allowed the test is skipped and says why. A save keeps 64 MiB in reserve, so the disk has 96. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "support/scratch.h"
#include "support/states.h"

enum { SKIPPED = 77, MIB = 1 << 20, FLOATS_PER_MIB = MIB / 4, MOST_MIB = 32 };
static float values[MOST_MIB * FLOATS_PER_MIB];

static void skip(const char* what) {
  printf("skipped: %s: %s; mounting needs root or user namespaces\n", what, strerror(errno));
  exit(SKIPPED);
}

/* Writes one line to a file of /proc. */
static int tell(const char* path, const char* line) {
  const int file = open(path, O_WRONLY);
  if (file < 0) return -1;
  const ssize_t written = write(file, line, strlen(line));
  return close(file) == 0 && written == (ssize_t)strlen(line) ? 0 : -1;
}

/* A mount namespace of this process; without root inside a user namespace in which it is root. */
static void enter_namespace(void) {
  char users[40], groups[40];
  snprintf(users, sizeof(users), "0 %u 1", getuid());
  snprintf(groups, sizeof(groups), "0 %u 1", getgid());
  if (unshare(CLONE_NEWNS) == 0) return;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) skip("a mount namespace");
  if (tell("/proc/self/setgroups", "deny") != 0 || tell("/proc/self/uid_map", users) != 0 ||
      tell("/proc/self/gid_map", groups) != 0) {
    skip("a user namespace");
  }
}

/* An empty file system at a new directory. */
static const char* small_disk(const char* options) {
  static int entered;
  if (!entered) enter_namespace();
  entered = 1;
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) skip("private mounts");
  const char* directory = scratch_directory();
  if (mount("tmpfs", directory, "tmpfs", 0, options) != 0) skip("a tmpfs");
  return directory;
}

/* A state with one tensor of that many MiB, and a context: what each test saves with. */
struct fixture {
  shw_context* context;
  shw_state* state;
  const char* disk;
  const char* path;
};

static void set_state(struct fixture* fixture, const char* name, int64_t mib) {
  shw_state_release(fixture->state);
  fixture->state = make_state();
  add_floats(fixture->state, name, values, SHAPE(mib * FLOATS_PER_MIB), 1);
}

/* A disk with a checkpoint of 2 MiB whose tensor is called "old". */
static struct fixture begin(const char* options) {
  struct fixture fixture = {NULL, NULL, small_disk(options), NULL};
  fixture.context = make_context(); /* its threads come after the namespace */
  fixture.path = path_in(fixture.disk, "c");
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) values[i] = (float)i;
  set_state(&fixture, "old", 2);
  save_at(fixture.context, fixture.state, fixture.path);
  return fixture;
}

static void end(struct fixture* fixture) {
  shw_state_release(fixture->state);
  shw_context_release(fixture->context);
  CHECK(umount(fixture->disk) == 0);
}

/* The checkpoint at the path holds one tensor of this name, and every byte of it is right. */
static void check_stored(const struct fixture* fixture, const char* name) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  shw_checkpoint* checkpoint = open_at(fixture->context, fixture->path);
  CHECK_INT(shw_checkpoint_tensor_count(checkpoint), 1);
  CHECK_INT(tensor_number(checkpoint, name), 0);
  CHECK_OK(shw_checkpoint_verify(checkpoint, SHW_VERIFY_DEEP, &report, &error));
  shw_report_release(report);
  shw_checkpoint_release(checkpoint);
}

static uint64_t generations_to_remove(const struct fixture* fixture, uint64_t flags) {
  shw_error* error = NULL;
  shw_report* report = NULL;
  CHECK_OK(shw_checkpoint_gc(fixture->context, NULL, fixture->path, -1, flags, &report, &error));
  const uint64_t count = shw_report_name_count(report, SHW_REPORT_REMOVED);
  shw_report_release(report);
  return count;
}

/* After a save that failed: the old one is whole, and when what filled the disk is gone and gc has
 * run, a smaller save works. */
static void recovers(struct fixture* fixture, const char* filler) {
  check_stored(fixture, "old");
  if (filler != NULL) CHECK(unlink(filler) == 0);
  (void)generations_to_remove(fixture, SHW_GC_APPLY);
  CHECK_INT(generations_to_remove(fixture, 0), 0);
  check_stored(fixture, "old");
  set_state(fixture, "small", 1);
  save_at(fixture->context, fixture->state, fixture->path);
  check_stored(fixture, "small");
}

/* Takes all bytes that are left. */
static const char* fill(const char* directory) {
  const char* path = path_in(directory, "filler");
  const int file = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
  CHECK(file >= 0);
  while (write(file, values, 4096) > 0) continue;
  CHECK_INT(errno, ENOSPC);
  CHECK(close(file) == 0);
  return path;
}

static void a_save_that_does_not_fit_is_refused_with_the_numbers(void) {
  struct fixture fixture = begin("size=96m");
  shw_error* error = NULL;
  shw_report* report = NULL;
  set_state(&fixture, "big", MOST_MIB);
  CHECK_INT(
      shw_save(fixture.context, fixture.state, NULL, fixture.path, NULL, NULL, &report, &error),
      SHW_RESOURCE_EXHAUSTED);
  CHECK_TEXT(error_detail(error, "resource"), "disk");
  CHECK(atoll(error_detail(error, "expected")) > (64 + MOST_MIB) * MIB);
  CHECK(atoll(error_detail(error, "found")) < 96 * MIB);
  CHECK(strstr(shw_error_message(error, NULL), fixture.path) != NULL);
  shw_error_release(error);
  recovers(&fixture, NULL);
  end(&fixture);
}

/* The planner's steps let the disk fill up after the plan was found to fit. */
static void a_disk_that_fills_up_while_writing_is_named_with_its_file(void) {
  struct fixture fixture = begin("size=96m");
  shw_error* error = NULL;
  shw_save_planner* planner = NULL;
  shw_buffer *local = NULL, *global = NULL, *result = NULL;
  shw_plan* plan = NULL;
  shw_report* report = NULL;
  set_state(&fixture, "big", 6);
  CHECK_OK(shw_save_planner_create(fixture.context, fixture.state, 0, 1, NULL, &planner, &error));
  CHECK_OK(shw_save_planner_local_plan(planner, &local, &error));
  const uint64_t plan_end[] = {0, shw_buffer_size(local)};
  CHECK_OK(shw_save_planner_global_plan(planner, NULL, fixture.path, shw_buffer_data(local),
                                        plan_end, 1, &global, &error));
  CHECK_OK(shw_save_planner_finish(planner, shw_buffer_data(global), shw_buffer_size(global), &plan,
                                   &error));
  const char* filler = fill(fixture.disk);
  CHECK_INT(shw_save_execute(planner, plan, NULL, fixture.path, &result, &error),
            SHW_RESOURCE_EXHAUSTED);
  CHECK_TEXT(error_detail(error, "resource"), "disk");
  CHECK_INT(atoll(error_detail(error, "errno")), ENOSPC);
  CHECK(strstr(error_detail(error, "file"), "rank-00000.shw") != NULL);
  CHECK(strstr(shw_error_message(error, NULL), "rank-00000.shw") != NULL);
  shw_error_release(error);
  error = NULL;
  const uint64_t nothing[] = {0, 0};
  CHECK_FAILS(shw_save_commit(planner, "", nothing, 1, &report, &error), SHW_ABORTED, "rank 0");
  shw_plan_release(plan);
  shw_buffer_release(global);
  shw_buffer_release(local);
  shw_save_planner_release(planner);
  recovers(&fixture, filler);
  end(&fixture);
}

static void a_disk_without_room_for_names_is_named_too(void) {
  struct fixture fixture =
      begin("size=96m,nr_inodes=6"); /* root, path, lock, generation, file, manifest */
  shw_error* error = NULL;
  shw_report* report = NULL;
  set_state(&fixture, "big", 4);
  CHECK_INT(
      shw_save(fixture.context, fixture.state, NULL, fixture.path, NULL, NULL, &report, &error),
      SHW_RESOURCE_EXHAUSTED);
  CHECK_TEXT(error_detail(error, "resource"), "disk");
  CHECK_INT(atoll(error_detail(error, "errno")), ENOSPC);
  CHECK(strstr(shw_error_message(error, NULL), fixture.path) != NULL);
  shw_error_release(error);
  check_stored(&fixture, "old");
  CHECK_INT(generations_to_remove(&fixture, 0), 0);
  end(&fixture);
}

TEST_MAIN(TEST_ENTRY(a_save_that_does_not_fit_is_refused_with_the_numbers),
          TEST_ENTRY(a_disk_that_fills_up_while_writing_is_named_with_its_file),
          TEST_ENTRY(a_disk_without_room_for_names_is_named_too))
