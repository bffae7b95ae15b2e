// SPDX-License-Identifier: Apache-2.0
#include "core/exec/path_fence_internal.h"

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/text.h"

namespace shardwright::exec::internal {
namespace {

constexpr std::string_view kDoing = "waiting for a gc or another save that works on this path";

Result<FenceLock> try_fence(const FencedPath& path, storage::LockMode mode) {
  return path.location.storage->try_lock(path.key, mode);
}

}  // namespace

Result<FenceLock> lock_path_to_save(Runtime& runtime, const FencedPath& path,
                                    storage::LockMode mode, const CallControl& control) {
  if (path.key.empty()) return FenceLock();
  const format::Location& location = path.location;
  const Clock& clock = runtime.clock();
  const int64_t begin = clock.monotonic_ns();
  const auto note = [&](const char* words) {
    log(runtime.log(), LogLevel::kInfo, "exec", [&] {
      return fmt::format("path '{}': {}", escape_text(format::shown_path(location)), words);
    });
  };
  const bool is_shared = mode == storage::LockMode::kShared;
  const std::string_view who = is_shared ? "gc" : "gc or another save";
  bool waited = false;
  while (true) {
    Result<FenceLock> lock = try_fence(path, mode);
    if (lock.status().code() == StatusCode::kUnimplemented) return FenceLock();
    if (!lock.ok()) {
      return lock.status().annotated(
          fmt::format("fencing '{}' against gc", escape_text(format::shown_path(location))));
    }
    if (*lock != nullptr) {
      if (waited) note("it is free again, the save goes on");
      return lock;
    }
    if (!waited) note("somebody works on it, the save waits");
    waited = true;
    SHW_RETURN_IF_ERROR(control.check(kDoing));
    if (clock.monotonic_ns() - begin >= kMaxFenceWaitNs) {
      return unavailable(
                 fmt::format("{} has had the path '{}' for {} s; save again when it is done", who,
                             escape_text(format::shown_path(location)),
                             kMaxFenceWaitNs / 1'000'000'000))
          .with_detail("file", path.key);
    }
    clock.wait_ns(kFencePollNs);
  }
}

Result<FenceLock> lock_path_alone(const FencedPath& path) {
  if (path.key.empty()) return unimplemented("saves of this format take no lock");
  return try_fence(path, storage::LockMode::kExclusive);
}

}  // namespace shardwright::exec::internal
