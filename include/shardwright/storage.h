/* SPDX-License-Identifier: Apache-2.0
 *
 * Storages: where bytes live. Built-in ones for directories and memory, and a table of functions
 * through which a host brings its own. Keys are UTF-8 with "/" between parts; a key never begins
 * with "/" and has no empty, "." or ".." part. Atomic is not durable: `commit` promises both.
 *
 * Methods of a table run on threads of the library, several at a time on different objects; calls
 * on one object are serial except read_at, and write_at where POSITIONAL_WRITE is offered. An
 * error goes out through `err`, made by shw_error_create; a status alone is accepted. */
#ifndef SHARDWRIGHT_STORAGE_H
#define SHARDWRIGHT_STORAGE_H

#include "base.h"
#include "buffer.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* How an object is opened: read; write, invisible until commit; write, visible at once.
 * Since: 0.1 unstable */
enum { SHW_STORAGE_READ = 0, SHW_STORAGE_CREATE = 1, SHW_STORAGE_CREATE_VISIBLE = 2 };

/* Condition of a commit: none; the key must not exist; the key must have the expected version.
 * Since: 0.1 unstable */
enum { SHW_COMMIT_NONE = 0, SHW_COMMIT_IF_ABSENT = 1, SHW_COMMIT_IF_VERSION = 2 };

/* How a lock is held: beside other shared holders; alone.
 * Since: 0.1 unstable */
enum { SHW_LOCK_SHARED = 0, SHW_LOCK_EXCLUSIVE = 1 };

/* Capabilities. Saves need ATOMIC_COMMIT. With POSITIONAL_WRITE files are CREATE_VISIBLE and
 * written by several threads at positions of their own, else CREATE. DIRECT_IO: transfers whose
 * address, offset and size are multiples of `alignment` may bypass caches; others come too.
 * Since: 0.1 unstable */
#define SHW_STORAGE_POSITIONAL_WRITE 1
#define SHW_STORAGE_ATOMIC_COMMIT 2
#define SHW_STORAGE_CONDITIONAL_COMMIT 4
#define SHW_STORAGE_ASYNC 8
#define SHW_STORAGE_DIRECT_IO 16
#define SHW_STORAGE_MULTIPART 32
#define SHW_STORAGE_CHECKSUM 64

/* A place where checkpoints lie.
 * Since: 0.1 unstable */
typedef struct shw_storage shw_storage;

/* Facts about one object; version 0 = not offered, else it changes whenever the content does.
 * Since: 0.1 unstable */
typedef struct shw_storage_stat {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t size;
  int64_t modified_ns;
  uint64_t version;
} shw_storage_stat;

/* One entry of a listing; `key` is borrowed for the call of the sink.
 * Since: 0.1 unstable */
typedef struct shw_storage_entry {
  uint32_t struct_size;
  uint32_t flags;
  const char* key;
  uint64_t key_size;
  uint64_t size;
  int64_t modified_ns;
  uint64_t version;
} shw_storage_entry;

/* Receives one entry of a listing; anything but OK stops it and is returned by the listing.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_list_fn)(void* sink_user,
                                                      const shw_storage_entry* entry);

/* Opens an object in one of the SHW_STORAGE_ modes; NOT_FOUND, ALREADY_EXISTS (CREATE_VISIBLE).
 * Threads: any
 * Blocks: io
 * Owns: object
 * Errors: NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_open_fn)(void* user, const char* key,
                                                      uint64_t key_size, int32_t mode,
                                                      void** object, shw_error** err);

/* The close slot ends the use of an object; it is called once for each, last. Neither committed nor
 * aborted, a CREATE object goes as if aborted, but a CREATE_VISIBLE one stays with all that was
 * written: it is never committed, and an implementation that aborts here loses every file of a
 * save. The abort slot undoes what was written, in CREATE_VISIBLE too: nothing of it is visible. It
 * is called at most once, not after a commit, and close still follows.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_storage_object_fn)(void* user, void* object);

/* Writes size, time and version of a key; `out->struct_size` is set by the caller.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: NOT_FOUND, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_stat_fn)(void* user, const char* key,
                                                      uint64_t key_size, shw_storage_stat* out,
                                                      shw_error** err);

/* Calls the sink for each object whose key begins with the prefix, in ascending byte order.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: UNAVAILABLE, and what the sink returns
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_walk_fn)(void* user, const char* prefix,
                                                      uint64_t prefix_size,
                                                      shw_storage_list_fn sink, void* sink_user,
                                                      shw_error** err);

/* Fills all of `data` and writes its size to *done, or returns OUT_OF_RANGE with *done below `size`
 * at the end of the object. Anything else makes the call INTERNAL, a fault of this function.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: OUT_OF_RANGE, DATA_LOSS, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_read_fn)(void* user, void* object, uint64_t offset,
                                                      void* data, uint64_t size, uint64_t* done,
                                                      shw_error** err);

/* Writes all or fails; without POSITIONAL_WRITE offsets arrive ascending and gap-free.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_write_fn)(void* user, void* object, uint64_t offset,
                                                       const void* data, uint64_t size,
                                                       shw_error** err);

/* Bytes and length are durable when it returns; for CREATE_VISIBLE the name too.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_sync_fn)(void* user, void* object, shw_error** err);

/* Publishes atomically under the key and makes the name durable; a lost race is ABORTED.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: ABORTED, RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_commit_fn)(void* user, void* object, int32_t condition,
                                                        uint64_t expected_version, shw_error** err);

/* Removes a key; a missing key is OK.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_remove_fn)(void* user, const char* key,
                                                        uint64_t key_size, shw_error** err);

/* Writes the free bytes where the key would live.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: UNIMPLEMENTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_space_fn)(void* user, const char* key,
                                                       uint64_t key_size, uint64_t* free_bytes,
                                                       shw_error** err);

/* Takes an advisory lock in one of the SHW_LOCK_ modes, or answers PENDING at once when the lock of
 * somebody else forbids it. Saves hold `PATH/.lock` shared, garbage collection alone; a save whose
 * lock fails does not go on. UNIMPLEMENTED = no locks, the same for all keys: then only time keeps
 * collection from a save (shw_checkpoint_gc). The unlock slot ends it, or the end of the process.
 * Threads: any
 * Blocks: io
 * Owns: lock
 * Errors: PENDING, UNIMPLEMENTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_lock_fn)(void* user, const char* key,
                                                      uint64_t key_size, int32_t mode, void** lock,
                                                      shw_error** err);

/* Ends the table's use of `user`; called once, after the last object was closed.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_storage_release_fn)(void* user);

/* Methods of a storage. `space`, `lock` with `unlock`, and `release` may be NULL. `alignment` 0 =
 * 1. `reserved1` and `reserved2` stand for asynchronous input and output and must be NULL.
 * Since: 0.1 unstable */
typedef struct shw_storage_vtable {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint64_t capabilities;
  uint64_t alignment;
  const char* name;
  void* user;
  shw_storage_open_fn open;
  shw_storage_object_fn close;
  shw_storage_stat_fn stat;
  shw_storage_walk_fn list;
  shw_storage_read_fn read_at;
  shw_storage_write_fn write_at;
  shw_storage_sync_fn sync;
  shw_storage_commit_fn commit;
  shw_storage_object_fn abort;
  shw_storage_remove_fn remove;
  shw_storage_space_fn space;
  shw_storage_lock_fn lock;
  shw_storage_object_fn unlock;
  void* reserved1;
  void* reserved2;
  shw_storage_release_fn release;
} shw_storage_vtable;

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_STORAGE_STAT_SIZE_V1 32
#define SHW_STORAGE_ENTRY_SIZE_V1 48
#define SHW_STORAGE_VTABLE_SIZE_V1 176

#define SHW_STORAGE_STAT_INIT {sizeof(shw_storage_stat), 0, 0, 0, 0}
#define SHW_STORAGE_ENTRY_INIT {sizeof(shw_storage_entry), 0, 0, 0, 0, 0, 0}
#define SHW_STORAGE_VTABLE_INIT \
  {sizeof(shw_storage_vtable),  \
   0,                           \
   SHW_ABI_MAJOR,               \
   SHW_ABI_MINOR,               \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0,                           \
   0}

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

/* Writes a whole object, durable, under one of the SHW_COMMIT_ conditions.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, ABORTED, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_put(shw_storage* storage, const char* key,
                                                uint64_t key_size, const void* SHW_NULLABLE data,
                                                uint64_t size, int32_t condition,
                                                uint64_t expected_version,
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

/* Writes size, time and version of an object; `out->struct_size` must be set.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_stat_key(shw_storage* storage, const char* key,
                                                     uint64_t key_size, shw_storage_stat* out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Lists the keys that begin with a prefix, ascending, one per part of `out`.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, PERMISSION_DENIED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_storage_list(shw_storage* storage,
                                                 const char* SHW_NULLABLE prefix,
                                                 uint64_t prefix_size, shw_buffer** out,
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
