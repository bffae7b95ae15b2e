/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam between the library and the kernel, as a program that links seam.c sees it: the program
 * defines the file functions of the C library, so the shared library calls them, and each call is a
 * numbered step that can be recorded, failed, waited at, or be the last one. Nothing of the library
 * is compiled again for this. Transfers through io_uring are no such calls: ring_seam.cc brings
 * them here, and programs without it forbid themselves to make rings.
 *
 * A recorded event is a struct seam_event, its path, its second path, its bytes. Events of all
 * processes that record into one file have one order: that of the calls. */
#ifndef SHARDWRIGHT_TESTS_CRASH_SEAM_H
#define SHARDWRIGHT_TESTS_CRASH_SEAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* What a step was; only what changes files, and marks of the host, are recorded. */
enum {
  SEAM_CREATE = 1,
  SEAM_WRITE,
  SEAM_SET_SIZE, /* `offset` is the new size */
  SEAM_SYNC_FILE,
  SEAM_SYNC_DIRECTORY,
  SEAM_MAKE_DIRECTORY,
  SEAM_RENAME,
  SEAM_LINK,
  SEAM_REMOVE,
  SEAM_MARK, /* a sentence of the host, in the place of a path */
  SEAM_LOCK,
  SEAM_OTHER
};

struct seam_event {
  uint32_t kind;
  int32_t rank;
  int32_t result; /* 0, or the errno that a sync failed with */
  uint32_t path_size;
  uint32_t second_size;
  uint32_t data_size;
  uint64_t inode;
  uint64_t offset;
};

/* What to do with the steps. Zero does nothing, and `log` is -1 for no record. */
struct seam_plan {
  int log; /* open for appending; its own description in each process, for its lock */
  int32_t rank;
  uint64_t kill_at;   /* number of the step (from 1) that is not done any more */
  int kill_all;       /* the whole process group goes, not this process alone */
  int tear;           /* a write that is killed at leaves its first half */
  uint64_t stop_at;   /* number of the step before which on_stop is called */
  uint32_t stop_kind; /* on_stop is called before the first step of this kind, too */
  void (*on_stop)(void);
  void (*on_refused)(void); /* called when a lock is held by another, before each wait or answer */
  uint32_t fail_kind;       /* the first call of this kind on a name that holds fail_part ... */
  const char* fail_part;
  int fail_errno; /* ... fails with this, and so do all of that kind and name after it */
  /* A broken order: the first call of this kind (SEAM_RENAME, SEAM_LINK, SEAM_REMOVE) on a name of
   * this pattern (fnmatch) is answered as done, and done only behind the next call of until_kind on
   * a name of the other pattern, in the same step; never when until_kind is 0. */
  uint32_t hold_kind;
  const char* hold_name;
  uint32_t until_kind;
  const char* until_name;
};

/* Before this steps are passed on and only counted. The plan is copied. */
void seam_begin(const struct seam_plan* plan);
/* Counts a step of the host that is no system call, such as a message to another rank. */
void seam_step(void);
/* Lets `carry` write, as one call of these: a step that can fail, be recorded or be the last one.
 * `carry` returns the bytes written, or -1 with errno. */
ssize_t seam_write(int descriptor, const void* data, size_t size, uint64_t offset,
                   ssize_t (*carry)(void* user), void* user);
/* Makes the system refuse rings to this process, as containers do; all reads and writes are calls
 * then. 0 when that cannot be had. */
int seam_forbid_rings(void);
/* Puts a sentence into the record. */
void seam_mark(const char* text);
/* Steps so far; those of them that asked for a change of files. */
uint64_t seam_steps(void);
uint64_t seam_changes(void);

#if defined(__cplusplus)
}
#endif

#endif
