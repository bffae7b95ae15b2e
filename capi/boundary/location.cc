// SPDX-License-Identifier: Apache-2.0
//
// A relative path is joined to the current directory at the call, because a job may run after the
// host has changed it.
#include "capi/boundary/location.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
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

}  // namespace

Result<format::Location> read_location(const shw_storage* storage, const char* path,
                                       const char* parameter) {
  format::Location location;
  if (storage == nullptr) {
    SHW_ASSIGN_OR_RETURN(auto given, path_argument(path, parameter));
    location.display = given;
    SHW_ASSIGN_OR_RETURN(auto root, absolute_path(std::move(given)));
    location.storage = storage::make_posix_storage(std::move(root));
    return location;
  }
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
