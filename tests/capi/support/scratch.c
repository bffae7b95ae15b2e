/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories are removed by an exit handler of the process that made them, not of its children. */
#include "scratch.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { MOST_DIRECTORIES = 16, MOST_PATHS = 64, LONGEST_PATH = 512 };

static char directories[MOST_DIRECTORIES][LONGEST_PATH];
static int directory_count;
static pid_t owner;

static int remove_entry(const char* path, const struct stat* info, int kind, struct FTW* walk) {
  (void)info;
  (void)kind;
  (void)walk;
  return remove(path);
}

void remove_tree(const char* path) {
  if (exists(path)) nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_all(void) {
  if (getpid() != owner) return;
  for (int i = 0; i < directory_count; ++i) remove_tree(directories[i]);
}

const char* scratch_directory(void) {
  CHECK(directory_count < MOST_DIRECTORIES);
  if (directory_count == 0) {
    owner = getpid();
    atexit(remove_all);
  }
  const char* base = getenv("TMPDIR");
  char* path = directories[directory_count];
  snprintf(path, LONGEST_PATH, "%s/shw-capi-XXXXXX", base == NULL ? "/tmp" : base);
  CHECK(mkdtemp(path) != NULL);
  ++directory_count;
  return path;
}

const char* path_in(const char* directory, const char* name) {
  static char paths[MOST_PATHS][LONGEST_PATH];
  static int next;
  char* path = paths[next];
  next = (next + 1) % MOST_PATHS;
  CHECK(snprintf(path, LONGEST_PATH, "%s/%s", directory, name) < LONGEST_PATH);
  return path;
}

void write_file(const char* path, const void* data, uint64_t size) {
  FILE* file = fopen(path, "wb");
  CHECK(file != NULL);
  CHECK(fwrite(data, 1, size, file) == size);
  CHECK(fclose(file) == 0);
}

uint64_t file_size(const char* path) {
  struct stat info;
  CHECK(stat(path, &info) == 0);
  return (uint64_t)info.st_size;
}

void flip_byte(const char* path, uint64_t offset, uint8_t mask) {
  FILE* file = fopen(path, "r+b");
  CHECK(file != NULL);
  CHECK(fseek(file, (long)offset, SEEK_SET) == 0);
  int byte = fgetc(file);
  CHECK(byte != EOF);
  CHECK(fseek(file, (long)offset, SEEK_SET) == 0);
  CHECK(fputc(byte ^ mask, file) != EOF);
  CHECK(fclose(file) == 0);
}

void truncate_file(const char* path, uint64_t size) {
  CHECK(truncate(path, (off_t)size) == 0);
}

static const char* wanted_ending;
static char found_path[LONGEST_PATH];

static int match_entry(const char* path, const struct stat* info, int kind, struct FTW* walk) {
  size_t length = strlen(path), ending = strlen(wanted_ending);
  (void)info;
  (void)walk;
  if (kind != FTW_F || length < ending) return 0;
  if (strcmp(path + length - ending, wanted_ending) != 0) return 0;
  snprintf(found_path, sizeof(found_path), "%s", path);
  return 1;
}

const char* find_file(const char* directory, const char* ending) {
  wanted_ending = ending;
  CHECK(nftw(directory, match_entry, 16, FTW_PHYS) == 1);
  return found_path;
}

int exists(const char* path) {
  struct stat info;
  return lstat(path, &info) == 0;
}
