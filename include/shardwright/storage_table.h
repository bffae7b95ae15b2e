/* SPDX-License-Identifier: Apache-2.0
 *
 * What a host brings as a storage: a table of functions. What it can do the table says by
 * capabilities, one bit each; what it lacks is done another way or refused, naming the capability.
 *
 * Methods of a table run on threads of the library, several at a time on different objects; calls
 * on one object are serial except read_at where CONCURRENT_READ, and write_at where
 * POSITIONAL_WRITE or MULTIPART is offered. An error goes out through `err`, made by
 * shw_error_create; a status alone is accepted. */
#ifndef SHARDWRIGHT_STORAGE_TABLE_H
#define SHARDWRIGHT_STORAGE_TABLE_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* How an object is opened: read; write, invisible until commit; write, visible at once.
 * Since: 0.1 unstable */
enum { SHW_STORAGE_READ = 0, SHW_STORAGE_CREATE = 1, SHW_STORAGE_CREATE_VISIBLE = 2 };
/* Opened to write into an object that is there, as several ranks may at disjoint ranges; storages
 * with POSITIONAL_WRITE are asked for it. close keeps what was written.
 * Since: 0.1 unstable */
enum { SHW_STORAGE_UPDATE = 3 };

/* Condition of a commit: none; the key must not exist; the key must have the expected version.
 * Since: 0.1 unstable */
enum { SHW_COMMIT_NONE = 0, SHW_COMMIT_IF_ABSENT = 1, SHW_COMMIT_IF_VERSION = 2 };

/* How a lock is held: beside other shared holders; alone.
 * Since: 0.1 unstable */
enum { SHW_LOCK_SHARED = 0, SHW_LOCK_EXCLUSIVE = 1 };

/* Capabilities. POSITIONAL_WRITE: files of a save are CREATE_VISIBLE, or UPDATE where ranks share
 * one, written by several threads at positions of their own; else CREATE, in ascending order, and
 * formats whose files ranks share are refused. ATOMIC_COMMIT: commit shows all of an object or
 * nothing; a save without it is refused. CONDITIONAL_COMMIT: commit takes conditions; without it
 * only one writer may save at a path. CONCURRENT_READ: read_at comes from several threads on one
 * object. DIRECT_IO: large files of CREATE_VISIBLE are written in blocks whose address, offset and
 * size are multiples of `alignment`, `truncate` then gives them their length; reads and writes of
 * UPDATE that are not aligned come too. MULTIPART: without POSITIONAL_WRITE files are written in
 * parts of at least `part_bytes` but for the last one, in any order, several at a time. DURABLE:
 * what was synced or committed outlives a power loss; else the report of a save says "volatile".
 * Since: 0.1 unstable */
#define SHW_STORAGE_POSITIONAL_WRITE 1
#define SHW_STORAGE_ATOMIC_COMMIT 2
#define SHW_STORAGE_CONDITIONAL_COMMIT 4
#define SHW_STORAGE_CONCURRENT_READ 8
#define SHW_STORAGE_DIRECT_IO 16
#define SHW_STORAGE_MULTIPART 32
#define SHW_STORAGE_DURABLE 64

/* Delimiter of a listing: none; "/", for one level.
 * Since: 0.1 unstable */
enum { SHW_STORAGE_NO_DELIMITER = 0, SHW_STORAGE_DELIMITER = 47 };

/* One object, as stat and list tell it; `key` and `version` are borrowed for the call of the sink.
 * `version` is opaque UTF-8 text, such as an ETag: only equality means anything, and it changes
 * whenever the content does; at most 1,024 bytes, `version_size` 0 = not offered.
 * Since: 0.1 unstable */
typedef struct shw_storage_entry {
  uint32_t struct_size;
  uint32_t flags;
  const char* key;
  uint64_t key_size;
  uint64_t size;
  int64_t modified_ns;
  const char* version;
  uint64_t version_size;
} shw_storage_entry;

/* Receives one entry of a stat or listing; anything but OK stops a listing and is returned by it.
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

/* Calls the sink once, with that key, its size, time and version, and returns what it returns.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: NOT_FOUND, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_stat_fn)(void* user, const char* key,
                                                      uint64_t key_size, shw_storage_list_fn sink,
                                                      void* sink_user, shw_error** err);

/* Calls the sink for each object whose key begins with the prefix, in ascending byte order.
 * `delimiter` SHW_STORAGE_DELIMITER: keys that go on behind the next "/" after the prefix are given
 * once, as what they begin with up to and with it, with size 0 and no version. A storage that
 * cannot may list all: the library then takes one of each.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: UNAVAILABLE, and what the sink returns
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_walk_fn)(void* user, const char* prefix,
                                                      uint64_t prefix_size, int32_t delimiter,
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

/* Writes all or fails; without POSITIONAL_WRITE and MULTIPART offsets arrive ascending and
 * gap-free.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_write_fn)(void* user, void* object, uint64_t offset,
                                                       const void* data, uint64_t size,
                                                       shw_error** err);

/* Sets the length of an object that is being written, behind the last write.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_truncate_fn)(void* user, void* object, uint64_t size,
                                                          shw_error** err);

/* Bytes and length are durable when it returns, where DURABLE; for CREATE_VISIBLE the name too.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_sync_fn)(void* user, void* object, shw_error** err);

/* Publishes under the key, atomically where ATOMIC_COMMIT; the name is durable where DURABLE.
 * `expected_version`, of SHW_COMMIT_IF_VERSION, is borrowed for the call. A lost race is ABORTED.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: ABORTED, RESOURCE_EXHAUSTED, UNAVAILABLE
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_storage_commit_fn)(void* user, void* object, int32_t condition,
                                                        const char* expected_version,
                                                        uint64_t expected_version_size,
                                                        shw_error** err);

/* Removes a key; a missing key is OK, as which NOT_FOUND is taken.
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

/* Methods of a storage. `space`, `lock` with `unlock`, `release` may be NULL; `truncate` without
 * DIRECT_IO. `alignment` 0 = 1; `part_bytes` is above 0 with MULTIPART. `reserved1` and `reserved2`
 * stand for asynchronous input and output and must be NULL.
 * Since: 0.1 unstable */
typedef struct shw_storage_vtable {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint64_t capabilities;
  uint64_t alignment;
  uint64_t part_bytes;
  const char* name;
  void* user;
  shw_storage_open_fn open;
  shw_storage_object_fn close;
  shw_storage_stat_fn stat;
  shw_storage_walk_fn list;
  shw_storage_read_fn read_at;
  shw_storage_write_fn write_at;
  shw_storage_truncate_fn truncate;
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
#define SHW_STORAGE_ENTRY_SIZE_V1 56
#define SHW_STORAGE_VTABLE_SIZE_V1 192

#define SHW_STORAGE_ENTRY_INIT {sizeof(shw_storage_entry), 0, 0, 0, 0, 0, 0, 0}
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
   0,                           \
   0,                           \
   0}

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_STORAGE_TABLE_H */
