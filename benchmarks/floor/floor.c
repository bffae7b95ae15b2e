/* SPDX-License-Identifier: Apache-2.0
 *
 * Floor probe: what the machine itself can do, measured without the library.
 *   floor KIND BYTES REPS [DIR]
 * KIND: memcpy, dwrite, dread, commit, call. One warm-up round, then REPS timed rounds (at most
 * 64); one JSON line on stdout with the times. Data come from an xorshift generator: zeros would
 * flatter compressing or sparse back ends. dwrite and dread are the best of three variants, named
 * in the line: one 8 MiB stream, two threads, four threads. With FLOOR_THREADS the variant is that
 * one, and the file of dread stays for the next probe, as the files of the contenders do: reading
 * is measured, not the writing before it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kMaxReps = 64, kMaxThreads = 4, kPathBytes = 4096 };
static const uint64_t kBlock = 8u << 20, kHugePage = 2u << 20;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char* what) {
  fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
  exit(2);
}

static void fill(uint8_t* data, uint64_t size) {
  uint64_t x = 88172645463325252u;
  for (uint64_t i = 0; i + 8 <= size; i += 8) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    memcpy(data + i, &x, 8);
  }
}

/* In huge pages where the system gives them: a direct read into small ones takes twice as long, as
 * a request of a disk holds few pieces of memory. */
static uint8_t* touched(uint64_t size) {
  void* data = NULL;
  if (posix_memalign(&data, kHugePage, size) != 0) die("memory");
  madvise(data, size, MADV_HUGEPAGE);
  fill(data, size);
  return data;
}

typedef struct {
  int fd;
  int writing;
  uint64_t begin, end;
  uint8_t* buffer;
} Slice;

static void* transfer(void* argument) {
  Slice* s = argument;
  for (uint64_t at = s->begin; at < s->end;) {
    const uint64_t want = s->end - at < kBlock ? s->end - at : kBlock;
    const ssize_t done = s->writing ? pwrite(s->fd, s->buffer, want, (off_t)at)
                                    : pread(s->fd, s->buffer, want, (off_t)at);
    if (done <= 0) die(s->writing ? "pwrite" : "pread");
    at += (uint64_t)done;
  }
  return NULL;
}

/* One file moved by `threads` threads, O_DIRECT; fdatasync is inside the time of a write. */
static double move_file(const char* path, uint64_t size, int writing, int threads,
                        uint8_t** buffers) {
  const int flags = writing ? O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT : O_RDONLY | O_DIRECT;
  const double start = now();
  const int fd = open(path, flags, 0644);
  if (fd < 0) die("open with O_DIRECT");
  /* Writes that make a file longer take turns; blocks that are there already do not wait. */
  if (writing) (void)!posix_fallocate(fd, 0, (off_t)size);
  pthread_t ids[kMaxThreads];
  Slice slices[kMaxThreads];
  const uint64_t part = (size / (uint64_t)threads + kBlock - 1) / kBlock * kBlock;
  for (int i = 0; i < threads; ++i) {
    const uint64_t begin = part * (uint64_t)i;
    const uint64_t end = begin + part < size ? begin + part : size;
    slices[i] = (Slice){fd, writing, begin < size ? begin : size, end, buffers[i]};
    if (pthread_create(&ids[i], NULL, transfer, &slices[i]) != 0) die("thread");
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  if (writing && fdatasync(fd) != 0) die("fdatasync");
  const double seconds = now() - start;
  close(fd);
  return seconds;
}

static const int kVariants[] = {1, 2, 4};

static int best_variant(const char* path, uint64_t size, int writing, uint8_t** buffers) {
  int best = 0;
  double best_seconds = 1e30;
  for (int v = 0; v < 3; ++v) {
    const double seconds = move_file(path, size, writing, kVariants[v], buffers);
    if (seconds < best_seconds) best_seconds = seconds, best = v;
  }
  return best;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void print_line(const char* what, uint64_t size, double* seconds, int reps,
                       const char* variant) {
  qsort(seconds, (size_t)reps, sizeof(*seconds), compare);
  const double median = seconds[reps / 2];
  printf(
      "{\"bench\":\"floor\",\"what\":\"%s\",\"bytes\":%llu,\"reps\":%d,\"variant\":\"%s\",\"s_"
      "min\":%.9f,"
      "\"s_median\":%.9f,\"s_max\":%.9f,\"gbps_median\":%.3f}\n",
      what, (unsigned long long)size, reps, variant, seconds[0], median, seconds[reps - 1],
      (double)size / median / 1e9);
}

static void run_file(int writing, uint64_t size, int reps, const char* dir) {
  char path[kPathBytes];
  snprintf(path, sizeof(path), "%s/floor.bin", dir);
  uint8_t* buffers[kMaxThreads];
  for (int i = 0; i < kMaxThreads; ++i) buffers[i] = touched(kBlock);
  struct stat status;
  const int there = stat(path, &status) == 0 && (uint64_t)status.st_size == size;
  if (!writing && !there) move_file(path, size, 1, 1, buffers);
  const char* fixed = getenv("FLOOR_THREADS");
  const int threads =
      fixed != NULL ? atoi(fixed) : kVariants[best_variant(path, size, writing, buffers)];
  if (threads < 1 || threads > kMaxThreads) die("FLOOR_THREADS");
  double seconds[kMaxReps];
  for (int r = 0; r < reps; ++r) {
    if (writing) unlink(path);
    seconds[r] = move_file(path, size, writing, threads, buffers);
  }
  if (writing || fixed == NULL) unlink(path);
  char variant[32];
  snprintf(variant, sizeof(variant), "threads=%d", threads);
  print_line(writing ? "dwrite" : "dread", size, seconds, reps, variant);
}

static void run_memcpy(uint64_t size, int reps) {
  uint8_t* from = touched(size);
  uint8_t* to = touched(size);
  double seconds[kMaxReps];
  for (int r = -1; r < reps; ++r) {
    const double start = now();
    memcpy(to, from, size);
    if (r >= 0) seconds[r] = now() - start;
    from[(uint64_t)(r + 1) % size] ^= to[size - 1];
  }
  print_line("memcpy", size, seconds, reps, "1 thread");
}

/* 4 KiB written, synced, renamed, directory synced. */
static void run_commit(int reps, const char* dir) {
  char temporary[kPathBytes], final[kPathBytes];
  snprintf(temporary, sizeof(temporary), "%s/floor.tmp", dir);
  snprintf(final, sizeof(final), "%s/floor.bin", dir);
  uint8_t* data = touched(4096);
  const int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
  if (dir_fd < 0) die("open directory");
  double seconds[kMaxReps];
  for (int r = -1; r < reps; ++r) {
    const double start = now();
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, data, 4096) != 4096 || fsync(fd) != 0 || close(fd) != 0) die("write");
    if (rename(temporary, final) != 0 || fsync(dir_fd) != 0) die("rename");
    if (r >= 0) seconds[r] = now() - start;
  }
  unlink(final);
  close(dir_fd);
  print_line("commit", 4096, seconds, reps, "fsync+rename+fsync");
}

static int64_t trivial(int64_t x) {
  return x + 1;
}

static void run_call(int reps) {
  int64_t (*volatile function)(int64_t) = trivial;
  const int64_t count = 10 * 1000 * 1000;
  double seconds[kMaxReps];
  volatile int64_t sink = 0;
  for (int r = -1; r < reps; ++r) {
    const double start = now();
    int64_t value = 0;
    for (int64_t i = 0; i < count; ++i) value = function(value);
    sink = value;
    if (r >= 0) seconds[r] = (now() - start) / (double)count;
  }
  (void)sink;
  print_line("call", 0, seconds, reps, "through a pointer");
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: floor memcpy|dwrite|dread|commit|call BYTES REPS [DIR]\n");
    return 2;
  }
  const char* kind = argv[1];
  const uint64_t size = strtoull(argv[2], NULL, 10) / 4096 * 4096;
  int reps = atoi(argv[3]);
  if (reps < 1 || reps > kMaxReps) reps = kMaxReps;
  const char* dir = argc > 4 ? argv[4] : ".";
  if (strcmp(kind, "memcpy") == 0 && size > 0)
    run_memcpy(size, reps);
  else if (strcmp(kind, "dwrite") == 0 && size > 0)
    run_file(1, size, reps, dir);
  else if (strcmp(kind, "dread") == 0 && size > 0)
    run_file(0, size, reps, dir);
  else if (strcmp(kind, "commit") == 0)
    run_commit(reps, dir);
  else if (strcmp(kind, "call") == 0)
    run_call(reps);
  else
    return 2;
  return 0;
}
