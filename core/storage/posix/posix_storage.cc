// SPDX-License-Identifier: Apache-2.0
//
// Storage in a directory. Keys are paths beneath the root (directory_internal.h says how they are
// resolved); objects are regular files. kCreate writes to "<key>.<suffix>" beside the key and
// renames; kCreateVisible writes under the key. Missing directories are made on the way.
// Thread-safe.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/base/without_exceptions.h"
#include "core/storage/backends.h"
#include "core/storage/posix/lock_internal.h"
#include "core/storage/posix/object_internal.h"
#include "core/storage/posix/ring_queue_internal.h"

namespace shardwright::storage {
namespace {

using internal::Descriptor;
using internal::Missing;
using internal::Parent;
using internal::PosixObject;
using internal::Root;
using internal::uninterrupted;

constexpr int kMaxNameDraws = 16;     // tries for an unused temporary name
constexpr size_t kMaxListDepth = 64;  // directories inside directories

std::string drawn_suffix() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number))) {
    number = static_cast<uint64_t>(::getpid()) << 32 |
             static_cast<uint64_t>(static_cast<uint32_t>(::gettid()));
  }
  return fmt::format("{:016x}", number);
}

// Key of the directory that holds the last part of a key, "" = the root.
std::string_view directory_of(std::string_view key) {
  const size_t slash = key.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
}

bool is_prefix_of(std::string_view prefix, std::string_view key) {
  return key.starts_with(prefix);
}

class PosixStorage final : public Storage {
 public:
  PosixStorage(std::string root, std::shared_ptr<SystemCalls> calls)
      : root_(std::make_shared<const Root>(std::move(root), std::move(calls))) {}

  std::string_view name() const override { return "posix"; }
  uint64_t capabilities() const override {
    return kPositionalWrite | kAtomicCommit | kConditionalCommit | kConcurrentRead | kDirectIo |
           kDurable;
  }
  uint64_t alignment() const override { return internal::kDirectAlignment; }
  uint64_t part_bytes() const override { return 0; }

  Result<std::unique_ptr<StorageObject>> open(std::string_view key,
                                              const OpenOptions& options) override;
  Result<std::unique_ptr<IoQueue>> open_queue(StorageObject& like, uint32_t depth) override;
  Result<ObjectStat> stat(std::string_view key) override;
  Status list(std::string_view prefix, char delimiter,
              const std::function<Status(const ListEntry&)>& sink) override;
  Status remove(std::string_view key) override;
  Result<uint64_t> remove_prefix(std::string_view prefix) override;
  Result<uint64_t> free_space(std::string_view key) override;
  Status create_prefix(std::string_view prefix) override;
  Status sync_prefix(std::string_view prefix, bool* supported) override;
  Status sync_above(std::string_view prefix) override;
  Result<std::unique_ptr<StorageLock>> try_lock(std::string_view key, LockMode mode) override;

 private:
  struct Listing {
    std::string_view prefix;
    char delimiter;
    const std::function<Status(const ListEntry&)>& sink;
  };
  SystemCalls& calls() const { return root_->calls(); }
  Result<std::unique_ptr<StorageObject>> open_existing(std::string_view key,
                                                       const OpenOptions& options);
  Result<std::unique_ptr<StorageObject>> create(std::string_view key, const OpenOptions& options);
  Result<Descriptor> create_file(const Parent& parent, std::string_view key,
                                 const OpenOptions& options, std::string* temporary_name);
  int remove_key(const Descriptor& parent, std::string_view key, bool is_directory);
  Status check_regular(const struct stat& found, std::string_view key) const;
  int stat_name(DirectoryName target, struct stat* found) const;
  Status list_directory(std::string_view directory, const Listing& listing, size_t depth);

  bool uses_ring(const PosixObject& like);

  std::shared_ptr<const Root> root_;  // co-owned by open objects
  IoThreads io_threads_;
  Mutex mutex_;
  std::map<dev_t, bool> ring_by_mount_ SHW_GUARDED_BY(mutex_);
};

Status PosixStorage::check_regular(const struct stat& found, std::string_view key) const {
  if (S_ISREG(found.st_mode)) return {};
  if (S_ISDIR(found.st_mode)) {
    return not_found(
               fmt::format("'{}' is a directory, not a file", escape_text(root_->path_of(key))))
        .with_detail("file", key);
  }
  return root_->failure(S_ISLNK(found.st_mode) ? -ELOOP : -ENXIO, "use", key);
}

Result<std::unique_ptr<StorageObject>> PosixStorage::open(std::string_view key,
                                                          const OpenOptions& options) {
  if (options.mode == OpenMode::kRead || options.mode == OpenMode::kUpdate)
    return open_existing(key, options);
  SHW_RETURN_IF_ERROR(check_key(key));
  return create(key, options);
}

// The probe of a mount, once.
bool PosixStorage::uses_ring(const PosixObject& like) {
  MutexLock lock(mutex_);
  const auto known = ring_by_mount_.find(like.device());
  if (known != ring_by_mount_.end()) return known->second;
  const bool works = like.probe_ring();
  ring_by_mount_.emplace(like.device(), works);
  return works;
}

Result<std::unique_ptr<IoQueue>> PosixStorage::open_queue(StorageObject& like, uint32_t depth) {
  const auto& object = static_cast<const PosixObject&>(like);
  if (object.device() != 0 && uses_ring(object)) {
    int error = 0;
    std::unique_ptr<Ring> ring = calls().open_ring(depth, &error);
    if (ring != nullptr) return internal::make_ring_queue(std::move(ring), depth);
    if (error != -ENOMEM && error != -EMFILE && error != -ENFILE) {
      MutexLock lock(mutex_);  // not built in, or forbidden: that stays so
      ring_by_mount_[object.device()] = false;
    }
  }
  return io_threads_.open_queue(depth);
}

Result<std::unique_ptr<StorageObject>> PosixStorage::open_existing(std::string_view key,
                                                                   const OpenOptions& options) {
  PosixObject::Parts parts;
  int opened = 0;
  const bool updates = options.mode == OpenMode::kUpdate;
  const int flags = (updates ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC;  // no FIFO may block us
  if (key.empty() && !updates) {
    opened = uninterrupted([&] { return calls().open_file({AT_FDCWD, root_->path(), ""}, flags); });
  } else {
    SHW_RETURN_IF_ERROR(check_key(key));
    SHW_ASSIGN_OR_RETURN(parts.parent, root_->open_parent(key, Missing::kRefuse));
    const auto open_name = [&] {
      return calls().open_file(parts.parent.target(key), flags | O_NOFOLLOW);
    };
    opened = uninterrupted(open_name);
    std::string blob =
        opened == -ELOOP && !updates ? internal::blob_behind(parts.parent.target(key)) : "";
    if (!blob.empty()) {
      parts.parent.name = std::move(blob);
      opened = uninterrupted(open_name);
    }
  }
  if (opened < 0) return root_->failure(opened, "open", key);
  parts.file = Descriptor(opened);
  struct stat found{};
  const int looked = uninterrupted([&] { return calls().stat_file({opened, key}, &found); });
  if (looked < 0) return root_->open_failure(looked, "look at", key);
  SHW_RETURN_IF_ERROR(check_regular(found, key));
  parts.root = root_;
  parts.key = std::string(key);
  parts.options = options;
  return std::unique_ptr<StorageObject>(std::make_unique<PosixObject>(std::move(parts)));
}

Result<std::unique_ptr<StorageObject>> PosixStorage::create(std::string_view key,
                                                            const OpenOptions& options) {
  PosixObject::Parts parts;
  SHW_ASSIGN_OR_RETURN(parts.parent, root_->open_parent(key, options.durable ? Missing::kMakeDurable
                                                                             : Missing::kMake));
  parts.root = root_;
  parts.key = std::string(key);
  parts.options = options;
  SHW_ASSIGN_OR_RETURN(parts.file, create_file(parts.parent, key, options, &parts.temporary_name));
  std::unique_ptr<PosixObject> object;
  try {
    object = std::make_unique<PosixObject>(std::move(parts));  // only the allocation may fail
  } catch (const std::bad_alloc&) {
    const std::string& name =
        parts.temporary_name.empty() ? parts.parent.name : parts.temporary_name;
    (void)calls().remove_name({parts.parent.directory.get(), name.c_str(), key},
                              /*directory=*/false);
    throw;
  }
  Status reserved =
      without_exceptions("reserving space", [&object] { return object->preallocate(); });
  if (!reserved.ok()) {
    object->abort();
    return reserved;
  }
  return std::unique_ptr<StorageObject>(std::move(object));
}

Result<Descriptor> PosixStorage::create_file(const Parent& parent, std::string_view key,
                                             const OpenOptions& options,
                                             std::string* temporary_name) {
  const bool drawn = options.mode == OpenMode::kCreate && options.temporary_suffix.empty();
  const mode_t mode =
      options.file_mode == 0 ? 0666 : static_cast<mode_t>(options.file_mode & 07777U);
  int created = -EEXIST;
  DirectoryName target = parent.target(key);
  for (int draws = 0; created == -EEXIST && draws < (drawn ? kMaxNameDraws : 1); ++draws) {
    if (options.mode == OpenMode::kCreate) {
      target.name =
          fmt::format("{}.{}", parent.name, drawn ? drawn_suffix() : options.temporary_suffix);
      if (target.name.find('/', parent.name.size()) != std::string::npos) {
        return invalid_argument("temporary_suffix holds a '/'")
            .with_detail("parameter", "temporary_suffix");
      }
      *temporary_name = target.name;
    }
    created = uninterrupted(
        [&] { return calls().create_file(target, O_RDWR | O_NONBLOCK | O_CLOEXEC, mode); });
  }
  if (created < 0) return root_->failure(created, "create", key);
  Descriptor file(created);
  // The umask cut the asked mode; a mode that was asked for is kept as it is. Only this new file is
  // touched.
  const int set = options.file_mode == 0 ? 0 : calls().set_mode({created, key}, mode);
  if (set < 0) {
    (void)calls().remove_name(target, /*directory=*/false);  // the first failure is what counts
    return root_->failure(set, "set the mode of", key);
  }
  return file;
}

// Of the file itself where the name is a link that is followed.
int PosixStorage::stat_name(DirectoryName target, struct stat* found) const {
  const auto look = [&] { return calls().stat_name(target, found); };
  const int looked = uninterrupted(look);
  if (looked < 0 || !S_ISLNK(found->st_mode)) return looked;
  std::string blob = internal::blob_behind(target);
  if (blob.empty()) return looked;
  target.name = std::move(blob);
  return uninterrupted(look);
}

Result<ObjectStat> PosixStorage::stat(std::string_view key) {
  struct stat found{};
  int looked = 0;
  if (key.empty()) {
    looked = ::stat(root_->path().c_str(), &found) == 0 ? 0 : -errno;
  } else {
    SHW_RETURN_IF_ERROR(check_key(key));
    SHW_ASSIGN_OR_RETURN(const Parent parent, root_->open_parent(key, Missing::kRefuse));
    looked = stat_name(parent.target(key), &found);
  }
  if (looked < 0) return root_->failure(looked, "look at", key);
  SHW_RETURN_IF_ERROR(check_regular(found, key));
  return internal::object_stat(found);
}

Status PosixStorage::list(std::string_view prefix, char delimiter,
                          const std::function<Status(const ListEntry&)>& sink) {
  const size_t slash = prefix.rfind('/');
  const std::string directory(slash == std::string_view::npos ? std::string_view()
                                                              : prefix.substr(0, slash));
  if (!directory.empty()) SHW_RETURN_IF_ERROR(check_key(directory));
  return list_directory(directory, {prefix, delimiter, sink}, 0);
}

// Calls sink for what lies in a directory, ascending by key. A directory sorts by its name with "/"
// appended.
Status PosixStorage::list_directory(std::string_view directory, const Listing& listing,
                                    size_t depth) {
  const auto& [prefix, delimiter, sink] = listing;
  if (depth > kMaxListDepth) {
    return resource_exhausted("directory depth",
                              fmt::format("directories in '{}' are nested more than {} deep",
                                          escape_text(root_->path_of(directory)), kMaxListDepth))
        .with_detail("limit", fmt::to_string(kMaxListDepth));
  }
  Result<Descriptor> opened = root_->open_directory(directory, Missing::kRefuse);
  // A listing of nothing is empty: object stores do not know missing directories.
  if (!opened.ok())
    return opened.status().code() == StatusCode::kNotFound ? Status() : opened.status();
  const int readable = internal::open_readable(opened->get());
  if (readable < 0) return root_->failure(readable, "list", directory);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(readable), &::closedir);
  if (stream == nullptr) {
    const Status failed = root_->failure(-errno, "list", directory);
    ::close(readable);
    return failed;
  }
  std::vector<std::pair<std::string, ObjectStat>> entries;  // directories end in "/"
  bool is_empty = true;
  errno = 0;
  for (const dirent* each = ::readdir(stream.get()); each != nullptr;
       errno = 0, each = ::readdir(stream.get())) {
    const std::string_view name = each->d_name;
    if (name == "." || name == "..") continue;
    is_empty = false;
    struct stat found{};
    const DirectoryName entry{opened->get(), std::string(name), join_key(directory, name)};
    const int looked = stat_name(entry, &found);
    if (looked == -ENOENT) continue;  // removed while we looked
    if (looked < 0) return root_->failure(looked, "look at", entry.key);
    if (S_ISREG(found.st_mode)) entries.emplace_back(name, internal::object_stat(found));
    if (S_ISDIR(found.st_mode)) entries.emplace_back(std::string(name) + "/", ObjectStat{});
  }
  if (errno != 0) return root_->failure(-errno, "list", directory);
  if (is_empty && !directory.empty()) {
    const std::string marker = std::string(directory) + "/";
    struct stat found{};
    const int looked =
        uninterrupted([&] { return calls().stat_file({opened->get(), directory}, &found); });
    if (looked < 0) return root_->open_failure(looked, "look at", directory);
    const ObjectStat stat{0, internal::object_stat(found).modified_ns, "", 0};
    return is_prefix_of(prefix, marker) ? sink({marker, stat}) : Status();
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [name, found] : entries) {
    const std::string key = join_key(directory, name);
    if (!is_prefix_of(prefix, key) && !is_prefix_of(key, prefix)) continue;
    const bool is_level = delimiter == kDelimiter && key.size() > prefix.size();
    if (name.ends_with('/') && is_level) {
      SHW_RETURN_IF_ERROR(sink({key, {}}));
    } else if (name.ends_with('/')) {
      SHW_RETURN_IF_ERROR(
          list_directory(std::string_view(key).substr(0, key.size() - 1), listing, depth + 1));
    } else if (is_prefix_of(prefix, key)) {
      SHW_RETURN_IF_ERROR(sink({key, found}));
    }
  }
  return {};
}

int PosixStorage::remove_key(const Descriptor& parent, std::string_view key, bool is_directory) {
  const std::string_view last = key.substr(key.rfind('/') + 1);  // the whole key without any
  char name[NAME_MAX + 1];
  if (last.size() > NAME_MAX) return -ENAMETOOLONG;
  name[last.copy(name, last.size())] = '\0';
  return calls().remove_name({parent.get(), name, key}, is_directory);
}

// Needs no memory where the kernel resolves keys: failures leave nothing behind either.
Status PosixStorage::remove(std::string_view key) {
  const bool is_prefix = key.ends_with('/');
  const std::string_view bare = is_prefix ? key.substr(0, key.size() - 1) : key;
  SHW_RETURN_IF_ERROR(check_key(bare));
  const std::string_view parent_key = directory_of(bare);
  const Result<Descriptor> parent = root_->open_directory(parent_key, Missing::kRefuse);
  if (!parent.ok())
    return parent.status().code() == StatusCode::kNotFound ? Status() : parent.status();
  const int removed = remove_key(*parent, bare, is_prefix);
  const bool gone = removed == 0 || removed == -ENOENT;
  if (is_prefix)
    return gone || removed == -ENOTEMPTY || removed == -EEXIST
               ? Status()
               : root_->failure(removed, "remove", bare);
  if (removed == -EISDIR) return {};  // a prefix is no object
  if (!gone) return root_->failure(removed, "remove", bare);
  if (removed < 0 || parent_key.empty()) return {};
  // The directory goes with its last file; it stays when it holds more or may not be removed.
  const Result<Descriptor> above =
      root_->open_directory(directory_of(parent_key), Missing::kRefuse);
  if (above.ok()) (void)remove_key(*above, parent_key, /*is_directory=*/true);
  return {};
}

// Files first, one after the other as the directory lists them, then the directory; also without
// memory. What is no plain file here goes the longer way.
Result<uint64_t> PosixStorage::remove_prefix(std::string_view prefix) {
  SHW_RETURN_IF_ERROR(check_key(prefix));
  Result<Descriptor> directory = root_->open_directory(prefix, Missing::kRefuse);
  if (!directory.ok()) {
    if (directory.status().code() == StatusCode::kNotFound) return uint64_t{0};
    return directory.status();
  }
  uint64_t removed = 0;
  char key[PATH_MAX + NAME_MAX + 2];
  const size_t begin = prefix.copy(key, PATH_MAX);
  key[begin] = '/';
  const Descriptor readable(::openat(directory->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  alignas(dirent64) char entries[4096];
  for (ssize_t bytes = 0; readable.valid();) {
    bytes = ::getdents64(readable.get(), entries, sizeof(entries));
    if (bytes <= 0) break;
    for (ssize_t at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      struct stat found{};
      if (::fstatat(directory->get(), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (!S_ISREG(found.st_mode)) continue;
      const std::string_view name = entry->d_name;
      const std::string_view whole(key, begin + 1 + name.copy(key + begin + 1, NAME_MAX));
      if (calls().remove_name({directory->get(), entry->d_name, whole}, /*directory=*/false) == 0)
        removed += static_cast<uint64_t>(found.st_size);
    }
  }
  const Result<Descriptor> parent = root_->open_directory(directory_of(prefix), Missing::kRefuse);
  if (parent.ok() && remove_key(*parent, prefix, /*is_directory=*/true) == 0) return removed;
  SHW_ASSIGN_OR_RETURN(const uint64_t rest, Storage::remove_prefix(prefix));
  return removed + rest;
}

Result<uint64_t> PosixStorage::free_space(std::string_view key) {
  std::string_view directory = key;
  Result<Descriptor> opened = root_->open_directory(directory, Missing::kRefuse);
  while (!opened.ok() && !directory.empty()) {
    directory = directory.substr(0, std::min(directory.rfind('/') + 1, directory.size()));
    if (!directory.empty()) directory.remove_suffix(1);
    opened = root_->open_directory(directory, Missing::kRefuse);
  }
  std::string path = root_->path();
  int found = -1;
  struct statvfs space{};
  if (opened.ok()) {
    found = ::fstatvfs(opened->get(), &space);
  } else {
    // The root is not there yet: the nearest directory above it is where it will live.
    while (found != 0 && path.size() > 1) {
      path.erase(std::max<size_t>(path.rfind('/'), 1));
      found = ::statvfs(path.c_str(), &space);
    }
  }
  if (found != 0) return root_->failure(-errno, "ask for the free space of", key);
  uint64_t bytes = 0;
  if (!checked_multiply<uint64_t>(space.f_bavail, space.f_frsize, &bytes)) bytes = UINT64_MAX;
  return bytes;
}

Status PosixStorage::create_prefix(std::string_view prefix) {
  SHW_RETURN_IF_ERROR(check_key(prefix));
  SHW_ASSIGN_OR_RETURN(const Parent parent, root_->open_parent(prefix, Missing::kMakeDurable));
  const int made = uninterrupted([&] { return calls().make_directory(parent.target(prefix)); });
  if (made < 0) return root_->failure(made, "make directory", prefix);
  return root_->sync_directory(parent.directory, parent.key, nullptr);
}

Status PosixStorage::sync_prefix(std::string_view prefix, bool* supported) {
  if (!prefix.empty()) SHW_RETURN_IF_ERROR(check_key(prefix));
  SHW_ASSIGN_OR_RETURN(const Descriptor directory, root_->open_directory(prefix, Missing::kRefuse));
  return root_->sync_directory(directory, prefix, supported);
}

Status PosixStorage::sync_above(std::string_view prefix) {
  SHW_RETURN_IF_ERROR(check_key(prefix));
  return root_->sync_above(prefix);
}

Result<std::unique_ptr<StorageLock>> PosixStorage::try_lock(std::string_view key, LockMode mode) {
  SHW_RETURN_IF_ERROR(check_key(key));
  return internal::lock_key(root_, key, mode);
}

}  // namespace

std::unique_ptr<Storage> make_posix_storage(std::string root, std::shared_ptr<SystemCalls> calls) {
  return std::make_unique<PosixStorage>(std::move(root), std::move(calls));
}

std::unique_ptr<Storage> make_posix_storage(std::string root) {
  return make_posix_storage(std::move(root), std::make_shared<KernelCalls>());
}

}  // namespace shardwright::storage
