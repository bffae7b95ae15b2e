/* SPDX-License-Identifier: Apache-2.0
 *
 * Floor probe: what the machine itself can do, measured without the library.
 *   floor KIND BYTES REPS [DIR]
 * KIND: memcpy, fresh, dwrite, dread, dcopy, dcopyback, commit, call. One warm-up round, then REPS
 * timed rounds (at most 64); one JSON line on stdout with the times. Data come from an xorshift
 * generator: zeros would flatter compressing or sparse back ends. dwrite and dread are the best of
 * four variants, named in the line: 8 MiB at a time by one, two and four threads, and where the
 * build and the system have io_uring sixteen times 4 MiB in flight. dcopy reads one file and writes
 * another at the same time, each by one or by two threads; dcopyback then reads the other one. With
 * FLOOR_VARIANT the variant is that one, and the file of dread or dcopy stays for the next probe,
 * as the files of the contenders do: reading is measured, not the writing before it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#if defined(SHW_HAVE_LIBURING)
#include <liburing.h>
#endif
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

enum { kMaxReps = 64, kMaxThreads = 4, kPathBytes = 4096, kRingDepth = 16 };
static const uint64_t kBlock = 8u << 20, kRingBlock = 4u << 20, kHugePage = 2u << 20;

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

static void move_by_threads(int fd, uint64_t size, int writing, int threads, uint8_t* memory) {
  pthread_t ids[kMaxThreads];
  Slice slices[kMaxThreads];
  const uint64_t part = (size / (uint64_t)threads + kBlock - 1) / kBlock * kBlock;
  for (int i = 0; i < threads; ++i) {
    const uint64_t begin = part * (uint64_t)i;
    const uint64_t end = begin + part < size ? begin + part : size;
    uint8_t* buffer = memory + kBlock * (uint64_t)i;
    slices[i] = (Slice){fd, writing, begin < size ? begin : size, end, buffer};
    if (pthread_create(&ids[i], NULL, transfer, &slices[i]) != 0) die("thread");
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
}

#if defined(SHW_HAVE_LIBURING)
static struct io_uring ring;

static int has_ring(void) {
  static int state;
  if (state == 0) state = io_uring_queue_init(kRingDepth, &ring, 0) == 0 ? 1 : -1;
  return state > 0;
}

/* A transfer that comes back short counts as a failure: none does on the disks of a floor. */
static void move_by_ring(int fd, uint64_t size, int writing, uint8_t* memory) {
  uint64_t next = 0, left = size;
  unsigned in_flight = 0;
  unsigned free_slots[kRingDepth], free_count = kRingDepth;
  for (unsigned i = 0; i < kRingDepth; ++i) free_slots[i] = i;
  while (left > 0) {
    while (next < size && free_count > 0) {
      const unsigned slot = free_slots[--free_count];
      const unsigned want = (unsigned)(size - next < kRingBlock ? size - next : kRingBlock);
      uint8_t* buffer = memory + kRingBlock * slot;
      struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
      if (writing)
        io_uring_prep_write(entry, fd, buffer, want, next);
      else
        io_uring_prep_read(entry, fd, buffer, want, next);
      entry->user_data = (uint64_t)want << 8 | slot;
      next += want;
      ++in_flight;
    }
    if (io_uring_submit_and_wait(&ring, 1) < 0) die("io_uring");
    struct io_uring_cqe* entry = NULL;
    while (in_flight > 0 && io_uring_peek_cqe(&ring, &entry) == 0) {
      const uint64_t want = entry->user_data >> 8;
      if (entry->res < 0 || (uint64_t)entry->res != want) die("transfer through io_uring");
      free_slots[free_count++] = (unsigned)(entry->user_data & 255);
      io_uring_cqe_seen(&ring, entry);
      --in_flight;
      left -= want;
    }
  }
}
#else
static int has_ring(void) {
  return 0;
}
static void move_by_ring(int fd, uint64_t size, int writing, uint8_t* memory) {
  (void)fd, (void)size, (void)writing, (void)memory;
}
#endif

static const struct variant {
  const char* name;
  int threads; /* 0 = by io_uring */
} kVariants[] = {{"threads=1", 1}, {"threads=2", 2}, {"threads=4", 4}, {"io_uring=16", 0}};
enum { kVariantCount = sizeof(kVariants) / sizeof(kVariants[0]) };

/* One file moved, O_DIRECT; fdatasync is inside the time of a write. */
static double move_file(const char* path, uint64_t size, int writing, struct variant how,
                        uint8_t* memory) {
  const int flags = writing ? O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT : O_RDONLY | O_DIRECT;
  const double start = now();
  const int fd = open(path, flags, 0644);
  if (fd < 0) die("open with O_DIRECT");
  /* Writes that make a file longer take turns; blocks that are there already do not wait. */
  if (writing) (void)!posix_fallocate(fd, 0, (off_t)size);
  if (how.threads > 0)
    move_by_threads(fd, size, writing, how.threads, memory);
  else
    move_by_ring(fd, size, writing, memory);
  if (writing && fdatasync(fd) != 0) die("fdatasync");
  const double seconds = now() - start;
  close(fd);
  return seconds;
}

/* The one of that name, or without a name the fastest of them all. */
static struct variant choose_variant(const char* name, const char* path, uint64_t size, int writing,
                                     uint8_t* memory) {
  int best = -1;
  double best_seconds = 1e30;
  for (int v = 0; v < kVariantCount; ++v) {
    const int is_there = kVariants[v].threads > 0 || has_ring();
    if (!is_there || (name != NULL && strcmp(name, kVariants[v].name) != 0)) continue;
    if (name != NULL) return kVariants[v];
    const double seconds = move_file(path, size, writing, kVariants[v], memory);
    if (seconds < best_seconds) best_seconds = seconds, best = v;
  }
  if (best < 0) {
    fprintf(stderr, "floor: FLOOR_VARIANT: no variant %s here\n", name);
    exit(2);
  }
  return kVariants[best];
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
  uint8_t* memory = touched(kRingDepth * kRingBlock); /* more than four blocks of threads */
  struct stat status;
  const int there = stat(path, &status) == 0 && (uint64_t)status.st_size == size;
  if (!writing && !there) move_file(path, size, 1, kVariants[0], memory);
  const char* fixed = getenv("FLOOR_VARIANT");
  const struct variant how = choose_variant(fixed, path, size, writing, memory);
  double seconds[kMaxReps];
  for (int r = 0; r < reps; ++r) {
    if (writing) unlink(path);
    seconds[r] = move_file(path, size, writing, how, memory);
  }
  if (writing || fixed == NULL) unlink(path);
  print_line(writing ? "dwrite" : "dread", size, seconds, reps, how.name);
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

typedef struct {
  const char* path;
  uint64_t size;
  int writing;
  struct variant how;
  uint8_t* memory;
} Side;

static void* move_side(void* argument) {
  const Side* s = argument;
  move_file(s->path, s->size, s->writing, s->how, s->memory);
  return NULL;
}

/* One file read and another written at the same time, until both are done. back: then the other one
 * is read, too. */
static double read_and_write(const char* from, const char* to, uint64_t size, int back,
                             struct variant how, uint8_t* memory) {
  Side reading = {from, size, 0, how, memory};
  Side writing = {to, size, 1, how, memory + kBlock * (uint64_t)how.threads};
  pthread_t id;
  unlink(to);
  const double start = now();
  if (pthread_create(&id, NULL, move_side, &reading) != 0) die("thread");
  move_side(&writing);
  pthread_join(id, NULL);
  if (back) move_file(to, size, 0, how, memory);
  return now() - start;
}

static void run_copy(int back, uint64_t size, int reps, const char* dir) {
  char from[kPathBytes], to[kPathBytes];
  snprintf(from, sizeof(from), "%s/floor.bin", dir);
  snprintf(to, sizeof(to), "%s/floor.tmp", dir);
  uint8_t* memory = touched(kMaxThreads * kBlock);
  struct stat status;
  const int there = stat(from, &status) == 0 && (uint64_t)status.st_size == size;
  if (!there) move_file(from, size, 1, kVariants[0], memory);
  const struct variant one = kVariants[0], two = kVariants[1];
  const char* fixed = getenv("FLOOR_VARIANT");
  const int is_two = fixed != NULL ? strcmp(fixed, two.name) == 0
                                   : read_and_write(from, to, size, back, two, memory) <
                                         read_and_write(from, to, size, back, one, memory);
  const struct variant how = is_two ? two : one;
  double seconds[kMaxReps];
  for (int r = 0; r < reps; ++r) seconds[r] = read_and_write(from, to, size, back, how, memory);
  unlink(to);
  if (fixed == NULL) unlink(from);
  print_line(back ? "dcopyback" : "dcopy", size, seconds, reps, how.name);
}

/* A copy into memory that was never touched, as it comes without any advice. */
static void run_fresh(uint64_t size, int reps) {
  uint8_t* from = touched(size);
  double seconds[kMaxReps];
  for (int r = -1; r < reps; ++r) {
    const double start = now();
    uint8_t* to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED) die("mmap");
    memcpy(to, from, size);
    if (r >= 0) seconds[r] = now() - start;
    from[(uint64_t)(r + 1) % size] ^= to[size - 1];
    munmap(to, size);
  }
  print_line("fresh", size, seconds, reps, "1 thread");
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
    fprintf(
        stderr,
        "usage: floor memcpy|fresh|dwrite|dread|dcopy|dcopyback|commit|call BYTES REPS [DIR]\n");
    return 2;
  }
  const char* kind = argv[1];
  const uint64_t size = strtoull(argv[2], NULL, 10) / 4096 * 4096;
  int reps = atoi(argv[3]);
  if (reps < 1 || reps > kMaxReps) reps = kMaxReps;
  const char* dir = argc > 4 ? argv[4] : ".";
  if (strcmp(kind, "memcpy") == 0 && size > 0)
    run_memcpy(size, reps);
  else if (strcmp(kind, "fresh") == 0 && size > 0)
    run_fresh(size, reps);
  else if (strcmp(kind, "dwrite") == 0 && size > 0)
    run_file(1, size, reps, dir);
  else if (strcmp(kind, "dread") == 0 && size > 0)
    run_file(0, size, reps, dir);
  else if (strcmp(kind, "dcopy") == 0 && size > 0)
    run_copy(0, size, reps, dir);
  else if (strcmp(kind, "dcopyback") == 0 && size > 0)
    run_copy(1, size, reps, dir);
  else if (strcmp(kind, "commit") == 0)
    run_commit(reps, dir);
  else if (strcmp(kind, "call") == 0)
    run_call(reps);
  else
    return 2;
  return 0;
}
