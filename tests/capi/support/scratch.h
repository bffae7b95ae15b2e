/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch directories for tests, and small operations on the files in them. */
#ifndef SHARDWRIGHT_TESTS_CAPI_SCRATCH_H
#define SHARDWRIGHT_TESTS_CAPI_SCRATCH_H

#include <stdint.h>

/* Path of a new empty directory below $TMPDIR or /tmp, removed at the end of the process. Static
 * text that the next call does not change (16 directories). */
const char* scratch_directory(void);
/* "directory/name" in static memory (64 texts, reused in turn). */
const char* path_in(const char* directory, const char* name);
void write_file(const char* path, const void* data, uint64_t size);
uint64_t file_size(const char* path);
/* Changes one byte of a file: byte ^= mask. */
void flip_byte(const char* path, uint64_t offset, uint8_t mask);
void truncate_file(const char* path, uint64_t size);
void remove_tree(const char* path);
/* First file below the directory whose name ends like this; fails the test when there is none. */
const char* find_file(const char* directory, const char* ending);
int exists(const char* path);

#endif
