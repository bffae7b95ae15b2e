/* SPDX-License-Identifier: Apache-2.0
 *
 * Storages: where bytes live. Built-in ones for directories and memory, and a table of functions
 * through which a host brings its own. Keys are UTF-8 with "/" between parts; a key never begins
 * with "/" and has no empty, "." or ".." part. What a storage can do it says by capabilities. */
#ifndef SHARDWRIGHT_STORAGE_H
#define SHARDWRIGHT_STORAGE_H

#include "base.h"
#include "buffer.h"
#include "storage_table.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A place where checkpoints lie.
 * Since: 0.1 unstable */
typedef struct shw_storage shw_storage;

/* Facts about one object; its version is told by shw_storage_version.
 * Since: 0.1 unstable */
typedef struct shw_storage_stat {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t size;
  int64_t modified_ns;
} shw_storage_stat;

/* Byte size of the oldest published struct of this header.
 * Since: 0.1 unstable */
#define SHW_STORAGE_STAT_SIZE_V1 24

#define SHW_STORAGE_STAT_INIT {sizeof(shw_storage_stat), 0, 0, 0}

/* Fills a stat with zeros and its size, as SHW_STORAGE_STAT_INIT does. NULL is skipped.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_storage_stat_init(shw_storage_stat* stat, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills an entry with zeros and its size, as SHW_STORAGE_ENTRY_INIT does. NULL is skipped.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_storage_entry_init(shw_storage_entry* entry, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills a table with zeros, its size and the interface version. NULL is skipped.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_storage_vtable_init(shw_storage_vtable* vtable, uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a storage of the files below a directory, which need not exist yet. Keys never leave it.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_create_posix(const char* root, shw_storage** out,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes an empty storage in memory.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status
shw_storage_create_memory(shw_storage** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a storage of a host's table, which is copied. On success the storage owns `vtable->user`
 * and calls the table's release once.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_create(const shw_storage_vtable* vtable,
                                                   shw_storage** out,
                                                   shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Name of the storage, such as "posix". Borrowed until it is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_storage_name(const shw_storage* storage,
                                     uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Capabilities of the storage.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_storage_capabilities(const shw_storage* storage) SHW_NOEXCEPT;

/* Writes a whole object, durable where the storage is, under one of the SHW_COMMIT_ conditions.
 * `expected_version`, of SHW_COMMIT_IF_VERSION, is what shw_storage_version told. A storage without
 * ATOMIC_COMMIT, or without CONDITIONAL_COMMIT where there is a condition, is FAILED_PRECONDITION.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, FAILED_PRECONDITION, ABORTED, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_put(shw_storage* storage, const char* key,
                                                uint64_t key_size, const void* SHW_NULLABLE data,
                                                uint64_t size, int32_t condition,
                                                const char* SHW_NULLABLE expected_version,
                                                uint64_t expected_version_size,
                                                shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Reads exactly `size` bytes at `offset`; OUT_OF_RANGE when the object ends before.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_read(shw_storage* storage, const char* key,
                                                 uint64_t key_size, uint64_t offset,
                                                 void* SHW_NULLABLE data, uint64_t size,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes size and time of an object; `out->struct_size` must be set.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_stat_key(shw_storage* storage, const char* key,
                                                     uint64_t key_size, shw_storage_stat* out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Gives the version of an object: opaque UTF-8 text that changes whenever the content does; empty
 * when the storage has no versions.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_version(shw_storage* storage, const char* key,
                                                    uint64_t key_size, shw_buffer** out,
                                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Lists the keys that begin with a prefix, ascending, one per part of `out`. `delimiter`
 * SHW_STORAGE_DELIMITER: one level; what lies deeper is given once, up to and with its next "/".
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_list(shw_storage* storage,
                                                 const char* SHW_NULLABLE prefix,
                                                 uint64_t prefix_size, int32_t delimiter,
                                                 shw_buffer** out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Removes an object; a missing key is OK.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_remove(shw_storage* storage, const char* key,
                                                   uint64_t key_size,
                                                   shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the storage; checkpoints and jobs that use it keep it alive. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: storage
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_storage_release(shw_storage* SHW_NULLABLE storage) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_STORAGE_H */
