// SPDX-License-Identifier: Apache-2.0
//
// A relative path is joined to the current directory at the call, because a job may run after the
// host has changed it.
#include "capi/boundary/location.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "core/base/text.h"
#include "core/storage/backends.h"

namespace shardwright::capi {
namespace {

Result<std::string> absolute_path(std::string path) {
  if (path.size() >= PATH_MAX) {
    return invalid_argument(fmt::format("the path has {} bytes, the system allows {}", path.size(),
                                        PATH_MAX - 1))
        .with_detail("limit", std::to_string(PATH_MAX - 1));
  }
  if (path.front() == '/') return path;
  char buffer[PATH_MAX];
  if (getcwd(buffer, sizeof(buffer)) == nullptr) {
    return status_from_errno(errno, "ask for the current directory of", path);
  }
  return fmt::format("{}/{}", buffer, path);
}

// "s3" of "s3://bucket/x", as URLs spell schemes; "" where there is none.
std::string_view scheme_of(std::string_view path) {
  const size_t end = path.find("://");
  if (end == std::string_view::npos || end == 0) return {};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto may_follow = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  };
  const std::string_view scheme = path.substr(0, end);
  const bool valid = is_letter(scheme.front()) && std::ranges::all_of(scheme, may_follow);
  return valid ? scheme : std::string_view();
}

// A file system would take it for a folder that is called "s3:".
Status refuse_scheme(std::string_view path, const char* parameter) {
  const std::string_view scheme = scheme_of(path);
  if (scheme.empty()) return {};
  return unimplemented(
             fmt::format("'{}' names a place by the scheme '{}://', and no storage was "
                         "given for it: give one and the key prefix in it as path; a path "
                         "without a storage is one of the file system",
                         escape_text(path), scheme))
      .with_detail("parameter", parameter)
      .with_detail("scheme", scheme);
}

// Of the file system.
Result<format::Location> local_location(const char* path, const char* parameter, PathKind kind) {
  format::Location location;
  SHW_ASSIGN_OR_RETURN(auto given, path_argument(path, parameter));
  SHW_RETURN_IF_ERROR(refuse_scheme(given, parameter));
  location.display = given;
  SHW_ASSIGN_OR_RETURN(auto root, absolute_path(std::move(given)));
  location.path = std::filesystem::path(root).lexically_normal().string();
  while (location.path.size() > 1 && location.path.back() == '/') location.path.pop_back();
  const std::filesystem::path place(location.path);
  std::error_code unknown;
  // One file lies in a directory, where others may stand beside it while it is made.
  if (kind == PathKind::kFile ||
      (location.path.ends_with(".safetensors") && !std::filesystem::is_directory(place, unknown))) {
    location.prefix = place.filename().string();
    root = place.parent_path().string();
  }
  location.storage = storage::make_posix_storage(std::move(root));
  return location;
}

}  // namespace

Result<format::Location> read_location(const shw_storage* storage, const char* path,
                                       const char* parameter, PathKind kind) {
  if (storage == nullptr) return local_location(path, parameter, kind);
  format::Location location;
  SHW_ASSIGN_OR_RETURN(const auto impl, need(storage, "storage"));
  SHW_RETURN_IF_ERROR(need_pointer(path, parameter));
  std::string prefix(path);
  while (!prefix.empty() && prefix.back() == '/') prefix.pop_back();
  if (!prefix.empty()) SHW_RETURN_IF_ERROR(storage::check_key(prefix));
  location.storage = impl->storage;
  location.prefix = std::move(prefix);
  return location;
}

}  // namespace shardwright::capi
