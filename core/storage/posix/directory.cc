// SPDX-License-Identifier: Apache-2.0
//
// Resolution of keys, creation of missing directories and durability of names. Immutable, any
// thread.
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/storage/posix/directory_internal.h"

namespace shardwright::storage::internal {
namespace {

constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr int kMaxResolveTries = 64;  // openat2 gives EAGAIN while somebody renames beside us

// The root is used long after the call that named it, so a relative path is tied to the working
// directory now.
std::string absolute_path(std::string path) {
  if (path.empty()) path = ".";
  if (path.front() == '/') return path;
  char buffer[PATH_MAX];
  if (::getcwd(buffer, sizeof(buffer)) == nullptr)
    return path;  // a removed working directory: keep what was said
  return fmt::format("{}/{}", buffer, path);
}

uint64_t length_limit(std::string_view path) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    if (slash - begin > NAME_MAX) return NAME_MAX;
    begin = slash + 1;
  }
  return PATH_MAX - 1;
}

// Of a key or path, without the slash; "" when there is none before the last part.
std::string_view directory_of(std::string_view key) {
  const size_t slash = key.rfind('/');
  if (slash == std::string_view::npos) return {};
  return key.substr(0, slash == 0 && key.size() > 1 ? 1 : slash);
}

Status unsafe(std::string_view path, std::string_view kind) {
  return permission_denied(
             fmt::format(
                 "'{}' is or leads through a {}, which a checkpoint may not hold: replace it by "
                 "the file or directory itself",
                 escape_text(path), kind))
      .with_detail("unsafe", kind);
}

}  // namespace

int open_readable(int directory) {
  return uninterrupted([directory] {
    const int opened = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return opened < 0 ? -errno : opened;
  });
}

std::string blob_behind(const DirectoryName& link) {
  constexpr std::string_view kUp = "../";
  constexpr std::string_view kFolder = "blobs/";
  constexpr size_t kMaxLinkBytes = 128;
  char buffer[kMaxLinkBytes];
  const ssize_t size = ::readlinkat(link.directory, link.name.c_str(), buffer, sizeof(buffer));
  if (size <= 0 || size == static_cast<ssize_t>(sizeof(buffer))) return "";
  const std::string_view target(buffer, static_cast<size_t>(size));
  std::string_view rest = target;
  while (rest.starts_with(kUp)) rest.remove_prefix(kUp.size());
  if (rest.size() + 2 * kUp.size() > target.size() || !rest.starts_with(kFolder)) return "";
  rest.remove_prefix(kFolder.size());
  const bool is_digest = (rest.size() == 40 || rest.size() == 64) &&
                         rest.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_digest ? std::string(target) : "";
}

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);  // read side or O_PATH: nothing to lose
}

Root::Root(std::string path, std::shared_ptr<SystemCalls> calls)
    : path_(absolute_path(std::move(path))), self_{AT_FDCWD, path_, ""}, calls_(std::move(calls)) {}

std::string Root::path_of(std::string_view key) const {
  if (key.empty()) return path_;
  if (key.front() == '/') return std::string(key);  // a directory above the root that is being made
  return path_.ends_with('/') ? fmt::format("{}{}", path_, key) : fmt::format("{}/{}", path_, key);
}

Status Root::failure(int negative_errno, std::string_view doing, std::string_view key) const {
  const std::string path = path_of(key);
  const int error_number = -negative_errno;
  Status status;
  if (error_number == ELOOP) {
    status = unsafe(path, "symlink");
  } else if (error_number == EXDEV) {
    status = unsafe(path, "path escape");
  } else if (error_number == ENXIO) {
    status = unsafe(path, "special file");
  } else if (error_number == ENAMETOOLONG) {
    const uint64_t limit = length_limit(path);
    status = invalid_argument(
                 fmt::format("cannot {} '{}': the {} is longer than the limit of {} bytes", doing,
                             escape_text(path),
                             limit == NAME_MAX ? "name of a file or directory" : "path", limit))
                 .with_detail("limit", fmt::to_string(limit))
                 .with_detail("errno", fmt::to_string(error_number));
  } else if (error_number == ENOTDIR) {
    status = invalid_argument(
                 fmt::format("cannot {} '{}': a part of the path is a file, not a directory", doing,
                             escape_text(path)))
                 .with_detail("errno", fmt::to_string(error_number));
  } else {
    status = status_from_errno(error_number, doing, path);
  }
  return std::move(status).with_detail("file", key.empty() ? std::string_view(path_) : key);
}

Status Root::not_a_directory(const DirectoryName& target) const {
  struct stat found{};
  if (calls_->stat_name(target, &found) == 0 && S_ISLNK(found.st_mode))
    return failure(-ELOOP, "enter", target.key);
  return failure(-ENOTDIR, "enter", target.key);
}

// Enters one directory that is no link, making it when asked.
Result<Descriptor> Root::step(const Descriptor& from, const DirectoryName& target,
                              Missing missing) const {
  const auto open = [&] { return calls_->open_file(target, kDirectoryFlags | O_NOFOLLOW); };
  int opened = uninterrupted(open);
  if (opened == -ENOENT && missing != Missing::kRefuse) {
    const int made = uninterrupted([&] { return calls_->make_directory(target); });
    if (made < 0 && made != -EEXIST) return failure(made, "make directory", target.key);
    // Also when somebody else made it just now: that one may not be there to sync it.
    if (missing == Missing::kMakeDurable) {
      SHW_RETURN_IF_ERROR(sync_directory(from, directory_of(target.key), nullptr));
    }
    opened = uninterrupted(open);
  }
  if (opened == -ENOTDIR || opened == -ELOOP) return not_a_directory(target);
  if (opened < 0) return failure(opened, "open directory", target.key);
  return Descriptor(opened);
}

Result<Descriptor> Root::walk(Descriptor from, std::string_view key, Missing missing) const {
  for (size_t begin = 0; begin < key.size();) {
    const size_t slash = std::min(key.find('/', begin), key.size());
    const DirectoryName target{from.get(), std::string(key.substr(begin, slash - begin)),
                               std::string(key.substr(0, slash))};
    SHW_ASSIGN_OR_RETURN(Descriptor next, step(from, target, missing));
    from = std::move(next);
    begin = slash + 1;
  }
  return from;
}

Result<Descriptor> Root::open_root(Missing missing) const {
  const int opened = uninterrupted([this] { return calls_->open_file(self_, kDirectoryFlags); });
  if (opened >= 0) return Descriptor(opened);
  if (opened != -ENOENT || missing == Missing::kRefuse)
    return failure(opened, "open directory", "");
  // Parts of the user's own path may be links: they are followed, only the missing ones are made.
  Descriptor from(::open("/", kDirectoryFlags));
  if (!from.valid()) return failure(-errno, "open directory", "");
  for (size_t begin = 1; begin < path_.size();) {
    const size_t slash = std::min(path_.find('/', begin), path_.size());
    const DirectoryName target{from.get(), path_.substr(begin, slash - begin),
                               path_.substr(0, slash)};
    begin = slash + 1;
    if (target.name.empty()) continue;
    const int entered = uninterrupted([&] { return calls_->open_file(target, kDirectoryFlags); });
    Descriptor next(entered);
    if (entered < 0) {
      if (entered != -ENOENT) return failure(entered, "open directory", "");
      SHW_ASSIGN_OR_RETURN(next, step(from, target, missing));
    }
    from = std::move(next);
  }
  return from;
}

Result<Descriptor> Root::open_directory(std::string_view key, Missing missing) const {
  if (key.size() >= PATH_MAX)
    return failure(-ENAMETOOLONG, "open directory", key);  // walking would not notice
  SHW_ASSIGN_OR_RETURN(Descriptor root, open_root(missing));
  if (key.empty()) return root;
  char path[PATH_MAX];  // what is to be removed for want of memory must be found without
  path[key.copy(path, key.size())] = '\0';
  int opened = -EAGAIN;
  for (int tries = 0; opened == -EAGAIN && tries < kMaxResolveTries; ++tries) {
    opened = uninterrupted([&] { return calls_->open_beneath(root.get(), path, kDirectoryFlags); });
  }
  if (opened >= 0) return Descriptor(opened);
  const bool unknown_call =
      opened == -ENOSYS || opened == -EPERM || opened == -EINVAL || opened == -EAGAIN;
  const bool make = opened == -ENOENT && missing != Missing::kRefuse;
  if (unknown_call || make) return walk(std::move(root), key, missing);
  return failure(opened, "open directory", key);
}

Result<Parent> Root::open_parent(std::string_view key, Missing missing) const {
  const size_t slash = key.rfind('/');
  Parent parent;
  parent.name = std::string(slash == std::string_view::npos ? key : key.substr(slash + 1));
  parent.key =
      std::string(slash == std::string_view::npos ? std::string_view() : key.substr(0, slash));
  SHW_ASSIGN_OR_RETURN(parent.directory, open_directory(parent.key, missing));
  return parent;
}

Status Root::sync_directory(const Descriptor& directory, std::string_view key,
                            bool* supported) const {
  const int opened = open_readable(directory.get());
  if (opened < 0) return failure(opened, "open directory for syncing", key);
  const Descriptor readable(opened);
  const int synced = calls_->sync_directory({readable.get(), key});
  const bool unsupported = synced == -EINVAL || synced == -ENOTSUP || synced == -ENOSYS;
  if (supported != nullptr) *supported = !unsupported;
  if (synced < 0 && !unsupported) return failure(synced, "sync directory", key);
  return {};
}

Status Root::sync_above(std::string_view key) const {
  struct stat found{};
  for (std::string_view above = key; !above.empty();) {
    above = directory_of(above);
    SHW_ASSIGN_OR_RETURN(const Descriptor directory, open_directory(above, Missing::kRefuse));
    SHW_RETURN_IF_ERROR(sync_directory(directory, above, nullptr));
    const int looked =
        uninterrupted([&] { return calls_->stat_file({directory.get(), above}, &found); });
    if (looked < 0) return open_failure(looked, "look at", above);
  }
  return sync_above_root(found.st_dev);
}

Status Root::sync_above_root(dev_t device) const {
  std::string_view above = path_;
  while (above.size() > 1) {
    while (above.size() > 1 && above.ends_with('/')) above.remove_suffix(1);
    if (above.size() == 1) break;
    above = directory_of(above);
    const int opened = uninterrupted([&] {
      return calls_->open_file({AT_FDCWD, std::string(above), std::string(above)}, kDirectoryFlags);
    });
    if (opened == -EACCES) continue;  // nothing can be made where one may not even pass
    if (opened < 0) return failure(opened, "open directory", above);
    const Descriptor directory(opened);
    struct stat found{};
    const int looked = uninterrupted([&] { return calls_->stat_file({opened, above}, &found); });
    if (looked < 0) return open_failure(looked, "look at", above);
    if (found.st_dev != device) continue;
    const Status synced = sync_directory(directory, above, nullptr);
    const bool may_write = ::faccessat(opened, ".", W_OK, AT_EACCESS) == 0;
    if (!synced.ok() && (synced.code() != StatusCode::kPermissionDenied || may_write))
      return synced;
  }
  return {};
}

}  // namespace shardwright::storage::internal
