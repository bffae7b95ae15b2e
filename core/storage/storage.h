// SPDX-License-Identifier: Apache-2.0
//
// Storage: where bytes live. Keys are UTF-8 byte strings with "/" between parts, relative to the
// storage's root, never beginning with "/" and without empty, "." or ".." parts. Mirrors the
// storage vtable of the C surface. Methods of a Storage are thread-safe; calls on one StorageObject
// are serial except read_at where kConcurrentRead and write_at at disjoint ranges where
// kPositionalWrite or kMultipart is offered. Atomic and durable are different words: commit is
// atomic where kAtomicCommit, and durable where kDurable is offered.
//
// The empty key is the root itself: stat and open for reading accept it, so that a path that is one
// file can be looked at; NOT_FOUND when the root is no object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/storage/io_queue.h"

namespace shardwright::storage {

enum class OpenMode : int32_t {
  kRead = 0,
  kCreate = 1,         // invisible until commit
  kCreateVisible = 2,  // plain file write; ALREADY_EXISTS when the key exists
  kUpdate = 3,         // writes into an object that is there; needs kPositionalWrite
};
enum class CommitCondition : int32_t { kNone = 0, kIfAbsent = 1, kIfVersion = 2 };

// Capabilities, each by itself. What a storage lacks is done another way or refused, naming it.
inline constexpr uint64_t kPositionalWrite = 1;  // kCreateVisible objects take writes in any order
inline constexpr uint64_t kAtomicCommit = 2;     // commit shows all of an object or nothing
inline constexpr uint64_t kConditionalCommit = 4;  // commit takes conditions other than kNone
inline constexpr uint64_t kConcurrentRead = 8;     // read_at by several threads on one object
inline constexpr uint64_t kDirectIo = 16;   // transfers at multiples of alignment(), and truncate
inline constexpr uint64_t kMultipart = 32;  // kCreate objects take parts in any order
inline constexpr uint64_t kDurable = 64;    // what was synced or committed outlives a power loss
inline constexpr uint64_t kAllCapabilities = 127;

struct ObjectStat {
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
  // Opaque UTF-8 text, such as an ETag; only equality means anything: it changes whenever the
  // content does. Empty = not offered.
  std::string version;
  // When content or attributes changed last, by the clock of where they lie: no program sets it, as
  // it can set modified_ns. 0 = not offered.
  int64_t changed_ns = 0;
};

struct ListEntry {
  std::string key;
  ObjectStat stat;
};

inline constexpr char kNoDelimiter = '\0';
inline constexpr char kDelimiter = '/';

// An open object. Closing (destruction) without commit or abort of a kCreate object aborts it.
class StorageObject {
 public:
  virtual ~StorageObject() = default;
  // Fills all of data. A shorter end of object is OUT_OF_RANGE with details offset, length, found.
  virtual Status read_at(uint64_t offset, std::span<std::byte> data) = 0;
  // Writes all or fails. Without kPositionalWrite offsets arrive ascending and gap-free; with
  // kMultipart each write of a kCreate object is a part: in any order, several at a time, of at
  // least part_bytes() but for the one at the highest offset.
  virtual Status write_at(uint64_t offset, std::span<const std::byte> data) = 0;
  // Sets the length of an object that is being written, to end one of aligned transfers where it
  // ends. UNIMPLEMENTED where kDirectIo is not offered.
  virtual Status truncate(uint64_t size_bytes) = 0;
  // Bytes and length durable; for kCreateVisible the name too. Never retried after a failure.
  virtual Status sync() = 0;
  // Publishes atomically under the key and makes the name durable. Lost race: ABORTED. When only
  // the durability of the name is in doubt: UNAVAILABLE with detail commit=unknown.
  virtual Status commit(CommitCondition condition, std::string_view expected_version) = 0;
  // Leaves nothing visible.
  virtual void abort() = 0;
  // Reports errors of close (NFS, quota); the object is closed either way.
  virtual Status close() = 0;
  virtual Result<ObjectStat> stat() = 0;
  // Bytes of a range that lie in memory already, so that read_at copies them without the device,
  // where the object was opened without `direct`. 0 = none, or not known.
  virtual uint64_t cached_bytes(uint64_t offset, uint64_t size_bytes);
};

struct OpenOptions {
  OpenMode mode = OpenMode::kRead;
  uint32_t file_mode = 0;  // 0 = 0666 and the umask
  bool durable = true;     // false: sync and commit skip fsync
  bool direct = false;     // hint: large aligned transfers, bypass the page cache where it wins
  uint64_t expected_bytes = 0;  // hint for preallocation
  // kCreate, hint: an object in flight that needs a temporary name gets key + "." + this, so that a
  // leftover tells whose it is; ALREADY_EXISTS when that name is taken. Empty = drawn at random. No
  // "/".
  std::string temporary_suffix;
};

enum class LockMode : int32_t {
  kShared = 0,     // beside any number of other shared holders
  kExclusive = 1,  // alone
};

// An advisory lock that is held; its destruction gives it back.
class StorageLock {
 public:
  virtual ~StorageLock() = default;
  // ABORTED when it no longer stands for its key, because what is locked was removed or replaced:
  // others may hold the key since then. Thread-safe.
  virtual Status check() = 0;
};

class Storage {
 public:
  virtual ~Storage() = default;
  virtual std::string_view name() const = 0;
  virtual uint64_t capabilities() const = 0;
  // Required multiple of address, offset and size for direct transfers; 1 = none.
  virtual uint64_t alignment() const = 0;
  // Least size of a part where kMultipart is offered, else 0.
  virtual uint64_t part_bytes() const = 0;
  // NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED (detail unsafe for links and special files below
  // the root).
  virtual Result<std::unique_ptr<StorageObject>> open(std::string_view key,
                                                      const OpenOptions& options) = 0;
  // A queue for batches of reads and writes of its open objects, of the engine that suits those
  // that lie where `like` does; it does not outlive the storage. Where nothing is gained by
  // batches, each request is carried out when it is submitted.
  virtual Result<std::unique_ptr<IoQueue>> open_queue(StorageObject& like, uint32_t depth);
  virtual Result<ObjectStat> stat(std::string_view key) = 0;
  // Calls sink per object whose key begins with prefix, ascending bytes; a failure of sink stops
  // and is returned. delimiter: kNoDelimiter, or kDelimiter for one level: keys that go on behind
  // the next "/" after the prefix are listed once, as what they begin with up to it, with size 0.
  // Where prefixes are things of their own, one without objects is listed as its key + "/" with
  // size 0 and its time. An object in flight may be listed under its temporary name. Links and
  // special files are not objects.
  virtual Status list(std::string_view prefix, char delimiter,
                      const std::function<Status(const ListEntry&)>& sink) = 0;
  // Removing a missing key is fine. A prefix that became empty needs no removal by the caller (the
  // storage drops it when it can); key + "/" removes an empty prefix as listed.
  virtual Status remove(std::string_view key) = 0;
  // Removes everything below a prefix, and the prefix; the bytes that went. What cannot be removed
  // does not stop it; the first failure is returned. A storage that makes prefixes does this
  // without memory, so that a failure for want of it leaves nothing behind.
  virtual Result<uint64_t> remove_prefix(std::string_view prefix);
  // Free bytes where the key would live; UNIMPLEMENTED when not offered.
  virtual Result<uint64_t> free_space(std::string_view key) = 0;
  // Makes a new prefix exclusively (a directory on posix); ALREADY_EXISTS when it is there.
  // Durable.
  virtual Status create_prefix(std::string_view prefix) = 0;
  // Makes names below the prefix durable; *supported tells whether the system can (report:
  // dir_fsync).
  virtual Status sync_prefix(std::string_view prefix, bool* supported) = 0;
  // Makes every name that leads to the prefix durable, those above the root included, whoever made
  // them: a save that was killed may have left folders that were never synced.
  virtual Status sync_above(std::string_view prefix) = 0;
  // Takes an advisory lock of a key or says at once that it cannot: nullptr with success when the
  // lock of somebody else forbids it. UNIMPLEMENTED when locks are not offered, and for nothing
  // else: whoever hears it goes on without.
  virtual Result<std::unique_ptr<StorageLock>> try_lock(std::string_view key, LockMode mode) = 0;
};

// "ATOMIC_COMMIT" for kAtomicCommit: the name that the C surface and errors have for a capability.
std::string_view capability_name(uint64_t capability);
bool offers(const Storage& storage, uint64_t capability);
// FAILED_PRECONDITION with detail capability when the storage does not offer it. why: what would
// go wrong without, and what to do instead.
Status need_capability(const Storage& storage, uint64_t capability, std::string_view why);
// What listing with a delimiter gives in place of a key: up to the next "/" behind the prefix, or
// all of it.
std::string_view level_of(std::string_view key, std::string_view prefix);
// INVALID_ARGUMENT for a key that breaks the rules above (the empty key too).
Status check_key(std::string_view key);
// prefix + "/" + name; name alone when prefix is empty.
std::string join_key(std::string_view prefix, std::string_view name);
// Reads a whole object of at most limit_bytes (RESOURCE_EXHAUSTED above it).
Result<std::vector<std::byte>> read_all(Storage& storage, std::string_view key,
                                        uint64_t limit_bytes);
// A new object with these bytes, synced where options.durable, and still open: one of kCreate is
// seen by nobody before its commit. options: kCreate or kCreateVisible; expected_bytes is set here.
Result<std::unique_ptr<StorageObject>> write_uncommitted(Storage& storage, std::string_view key,
                                                         std::span<const std::byte> bytes,
                                                         OpenOptions options);
// The same, committed (kCreate, in place of what is there) and closed: bytes and name are durable
// where options.durable. A failure of a kCreate object leaves what was there.
Status write_all(Storage& storage, std::string_view key, std::span<const std::byte> bytes,
                 OpenOptions options);
// write_all of kCreate by the only writer that uses options.temporary_suffix, which is not empty,
// for this key: what one that was killed has left under it goes first.
Status put_in_place(Storage& storage, std::string_view key, std::span<const std::byte> bytes,
                    OpenOptions options);
// Removes what a writer that was killed has left of a kCreate object with this temporary_suffix.
Status remove_in_flight(Storage& storage, std::string_view key, std::string_view suffix);

}  // namespace shardwright::storage
