/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls go to the kernel by syscall(), so no other definition of them is needed. While a call
 * is recorded, a lock on the log keeps all other recorders waiting: call and record are one. */
#include "seam.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static struct seam_plan plan = {.log = -1};
static int is_on;
static _Atomic uint64_t steps;
static _Atomic uint64_t changes;
static _Atomic int has_stopped_at_kind;
static pthread_mutex_t record_mutex = PTHREAD_MUTEX_INITIALIZER;

void seam_begin(const struct seam_plan* wanted) {
  plan = *wanted;
  atomic_store(&steps, 0);
  atomic_store(&changes, 0);
  is_on = 1;
}

uint64_t seam_steps(void) {
  return atomic_load(&steps);
}
uint64_t seam_changes(void) {
  return atomic_load(&changes);
}

static void die(void) {
  kill(plan.kill_all ? 0 : getpid(), SIGKILL);
  for (;;) pause();
}

/* Counts; 1 when this step is not to be done any more. */
static int is_last_step(uint32_t kind) {
  const uint64_t number = atomic_fetch_add(&steps, 1) + 1;
  if (kind <= SEAM_REMOVE) atomic_fetch_add(&changes, 1);
  if (!is_on) return 0;
  const int is_kind = plan.stop_kind == kind && atomic_exchange(&has_stopped_at_kind, 1) == 0;
  if (number == plan.stop_at || is_kind) plan.on_stop();
  return number == plan.kill_at;
}

static void take_step(uint32_t kind) {
  if (is_last_step(kind)) die();
}

void seam_step(void) {
  take_step(SEAM_OTHER);
}

/* Path of an open descriptor, "" when it has none. */
static void path_of(int descriptor, char* path) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  const ssize_t size = readlink(link, path, PATH_BYTES - 1);
  path[size > 0 ? size : 0] = '\0';
}

static void path_at(int directory, const char* name, char* path) {
  char above[PATH_BYTES] = "";
  if (name[0] != '/') path_of(directory, above);
  snprintf(path, PATH_BYTES, "%s%s%s", above, name[0] == '/' ? "" : "/", name);
}

/* 1 with errno set when the plan lets this call fail. */
static int fails(uint32_t kind, const char* path) {
  if (!is_on || plan.fail_kind != kind || strstr(path, plan.fail_part) == NULL) return 0;
  errno = plan.fail_errno;
  return 1;
}

static void lock_record(void) {
  if (plan.log < 0) return;
  pthread_mutex_lock(&record_mutex);
  while (syscall(SYS_flock, plan.log, LOCK_EX) != 0 && errno == EINTR) {
  }
}

static void unlock_record(void) {
  if (plan.log < 0) return;
  const int error = errno;
  syscall(SYS_flock, plan.log, LOCK_UN);
  pthread_mutex_unlock(&record_mutex);
  errno = error;
}

static void append(const void* bytes, size_t size) {
  const char* at = bytes;
  while (size > 0) {
    const ssize_t done = syscall(SYS_write, plan.log, at, size);
    if (done <= 0) die();
    at += done;
    size -= (size_t)done;
  }
}

static void record(struct seam_event event, const char* path, const char* second,
                   const void* data) {
  if (plan.log < 0) return;
  const int error = errno;
  event.rank = plan.rank;
  event.path_size = (uint32_t)strlen(path);
  event.second_size = (uint32_t)strlen(second);
  append(&event, sizeof(event));
  append(path, event.path_size);
  append(second, event.second_size);
  append(data, event.data_size);
  errno = error;
}

void seam_mark(const char* text) {
  lock_record();
  record((struct seam_event){.kind = SEAM_MARK}, text, "", "");
  unlock_record();
}

static uint64_t inode_of(int descriptor) {
  struct stat found;
  return fstat(descriptor, &found) == 0 ? (uint64_t)found.st_ino : 0;
}

int seam_forbid_rings(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* --- the calls ------------------------------------------------------------------------------- */

static int open_and_record(int directory, const char* name, int flags, mode_t mode) {
  const int creates = (flags & O_CREAT) != 0;
  take_step(creates ? SEAM_CREATE : SEAM_OTHER);
  if (!creates) return (int)syscall(SYS_openat, directory, name, flags, mode);
  char path[PATH_BYTES];
  path_at(directory, name, path);
  if (fails(SEAM_CREATE, path)) return -1;
  lock_record();
  /* A file that is there already is opened, not made; whoever wants that asks without O_EXCL. */
  const int was_there = faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  const int made = (int)syscall(SYS_openat, directory, name, flags, mode);
  if (made >= 0 && !was_there) {
    record((struct seam_event){.kind = SEAM_CREATE, .inode = inode_of(made)}, path, "", "");
  }
  unlock_record();
  return made;
}

int openat(int directory, const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_and_record(directory, name, flags, mode);
}

int open(const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_and_record(AT_FDCWD, name, flags, mode);
}

ssize_t preadv2(int descriptor, const struct iovec* parts, int count, off_t offset, int flags) {
  take_step(SEAM_OTHER);
  return syscall(SYS_preadv2, descriptor, parts, count, offset, 0, flags);
}

ssize_t seam_write(int descriptor, const void* data, size_t size, uint64_t offset,
                   ssize_t (*carry)(void* user), void* user) {
  if (is_last_step(SEAM_WRITE)) {
    /* A direct write cannot be halved anywhere; then nothing of it is there. */
    if (plan.tear) (void)!pwrite(descriptor, data, size / 2, (off_t)offset);
    die();
  }
  char path[PATH_BYTES];
  path_of(descriptor, path);
  if (fails(SEAM_WRITE, path)) return -1;
  lock_record();
  const ssize_t done = carry(user);
  if (done > 0) {
    record((struct seam_event){.kind = SEAM_WRITE,
                               .inode = inode_of(descriptor),
                               .offset = offset,
                               .data_size = (uint32_t)done},
           path, "", data);
  }
  unlock_record();
  return done;
}

struct vector_write {
  int descriptor;
  const struct iovec* part;
  off_t offset;
  int flags;
};

static ssize_t write_vector(void* user) {
  const struct vector_write* write = user;
  return syscall(SYS_pwritev2, write->descriptor, write->part, 1, write->offset, 0, write->flags);
}

ssize_t pwritev2(int descriptor, const struct iovec* parts, int count, off_t offset, int flags) {
  if (count != 1) {
    errno = EOPNOTSUPP; /* the record has no word for it */
    return -1;
  }
  struct vector_write write = {descriptor, parts, offset, flags};
  return seam_write(descriptor, parts->iov_base, parts->iov_len, (uint64_t)offset, write_vector,
                    &write);
}

static int set_size(int descriptor, uint64_t size, int reserves) {
  take_step(SEAM_SET_SIZE);
  char path[PATH_BYTES];
  path_of(descriptor, path);
  if (fails(SEAM_SET_SIZE, path)) return -1;
  lock_record();
  const int done = (int)(reserves ? syscall(SYS_fallocate, descriptor, 0, 0, size)
                                  : syscall(SYS_ftruncate, descriptor, size));
  if (done == 0) {
    record(
        (struct seam_event){.kind = SEAM_SET_SIZE, .inode = inode_of(descriptor), .offset = size},
        path, "", "");
  }
  unlock_record();
  return done;
}

int ftruncate(int descriptor, off_t size) {
  return set_size(descriptor, (uint64_t)size, 0);
}

int fallocate(int descriptor, int mode, off_t offset, off_t size) {
  if (mode != 0 || offset != 0) {
    errno = EOPNOTSUPP; /* the record has no word for it */
    return -1;
  }
  return set_size(descriptor, (uint64_t)size, 1);
}

/* The scratch file systems of tests lose nothing of a process that ends, so the kernel is not
 * asked. */
int fsync(int descriptor) {
  struct stat found;
  if (fstat(descriptor, &found) != 0) return -1;
  const uint32_t kind = S_ISDIR(found.st_mode) ? SEAM_SYNC_DIRECTORY : SEAM_SYNC_FILE;
  take_step(kind);
  char path[PATH_BYTES];
  path_of(descriptor, path);
  const int failed = fails(kind, path);
  lock_record();
  record(
      (struct seam_event){
          .kind = kind, .inode = (uint64_t)found.st_ino, .result = failed ? plan.fail_errno : 0},
      path, "", "");
  unlock_record();
  if (failed) errno = plan.fail_errno;
  return failed ? -1 : 0;
}

int fdatasync(int descriptor) {
  return fsync(descriptor);
}

int mkdirat(int directory, const char* name, mode_t mode) {
  take_step(SEAM_MAKE_DIRECTORY);
  char path[PATH_BYTES];
  path_at(directory, name, path);
  if (fails(SEAM_MAKE_DIRECTORY, path)) return -1;
  lock_record();
  const int done = (int)syscall(SYS_mkdirat, directory, name, mode);
  if (done == 0) record((struct seam_event){.kind = SEAM_MAKE_DIRECTORY}, path, "", "");
  unlock_record();
  return done;
}

/* What the plan holds back, with whole paths; its mutex keeps it whole. */
static struct held_call {
  uint32_t kind; /* 0 = nothing */
  int flags;
  char path[PATH_BYTES];
  char second[PATH_BYTES];
} held;
static int has_held;
static pthread_mutex_t hold_mutex = PTHREAD_MUTEX_INITIALIZER;

static int is_like(uint32_t kind, const char* name, uint32_t wanted, const char* pattern) {
  return is_on && wanted != 0 && kind == wanted && fnmatch(pattern, name, 0) == 0;
}

/* 1 when the plan holds this call back; `path` and `second` as they are recorded. */
static int holds(uint32_t kind, const char* path, const char* second, int flags) {
  if (!is_like(kind, second[0] != '\0' ? second : path, plan.hold_kind, plan.hold_name)) return 0;
  pthread_mutex_lock(&hold_mutex);
  const int is_first = !has_held;
  if (is_first) {
    has_held = 1;
    held.kind = kind;
    held.flags = flags;
    snprintf(held.path, PATH_BYTES, "%s", path);
    snprintf(held.second, PATH_BYTES, "%s", second);
  }
  pthread_mutex_unlock(&hold_mutex);
  return is_first;
}

/* Does what is held when this call, which has been done, is the one that it waits for. */
static void let_go_behind(uint32_t kind, const char* name) {
  if (!is_like(kind, name, plan.until_kind, plan.until_name)) return;
  pthread_mutex_lock(&hold_mutex);
  long done = 0;
  if (held.kind == SEAM_REMOVE) done = syscall(SYS_unlinkat, AT_FDCWD, held.path, held.flags);
  if (held.kind == SEAM_LINK)
    done = syscall(SYS_linkat, AT_FDCWD, held.path, AT_FDCWD, held.second, held.flags);
  if (held.kind == SEAM_RENAME)
    done = syscall(SYS_renameat2, AT_FDCWD, held.path, AT_FDCWD, held.second, held.flags);
  held.kind = 0;
  pthread_mutex_unlock(&hold_mutex);
  if (done != 0) _exit(5); /* the order cannot be broken in this way */
}

static int give_name(uint32_t kind, int from_directory, const char* from, int to_directory,
                     const char* to, unsigned flags) {
  take_step(kind);
  char path[PATH_BYTES];
  char second[PATH_BYTES];
  path_at(from_directory, from, path);
  path_at(to_directory, to, second);
  if (fails(kind, second)) return -1;
  if (holds(kind, path, second, (int)flags)) return 0;
  lock_record();
  const int done =
      (int)(kind == SEAM_LINK
                ? syscall(SYS_linkat, from_directory, from, to_directory, to, flags)
                : syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
  if (done == 0) record((struct seam_event){.kind = kind}, path, second, "");
  unlock_record();
  if (done == 0) let_go_behind(kind, second);
  return done;
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags) {
  return give_name(SEAM_RENAME, from_directory, from, to_directory, to, flags);
}

int renameat(int from_directory, const char* from, int to_directory, const char* to) {
  return give_name(SEAM_RENAME, from_directory, from, to_directory, to, 0);
}

int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) {
  return give_name(SEAM_LINK, from_directory, from, to_directory, to, (unsigned)flags);
}

int unlinkat(int directory, const char* name, int flags) {
  take_step(SEAM_REMOVE);
  char path[PATH_BYTES];
  path_at(directory, name, path);
  if (fails(SEAM_REMOVE, path)) return -1;
  if (holds(SEAM_REMOVE, path, "", flags)) return 0;
  lock_record();
  const int done = (int)syscall(SYS_unlinkat, directory, name, flags);
  if (done == 0) record((struct seam_event){.kind = SEAM_REMOVE}, path, "", "");
  unlock_record();
  if (done == 0) let_go_behind(SEAM_REMOVE, path);
  return done;
}

int flock(int descriptor, int operation) {
  take_step(SEAM_LOCK);
  char path[PATH_BYTES];
  path_of(descriptor, path);
  if (fails(SEAM_LOCK, path)) return -1;
  int done = (int)syscall(SYS_flock, descriptor, operation | LOCK_NB);
  if (done == 0 || errno != EWOULDBLOCK) return done;
  if (is_on && plan.on_refused != NULL) plan.on_refused();
  if ((operation & LOCK_NB) == 0) return (int)syscall(SYS_flock, descriptor, operation);
  errno = EWOULDBLOCK;
  return -1;
}
