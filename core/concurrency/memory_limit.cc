// SPDX-License-Identifier: Apache-2.0
//
// /proc/self/cgroup has one line "number:controllers:path" per hierarchy: number 0 without
// controllers is cgroup 2, mounted at /sys/fs/cgroup; the controller memory of cgroup 1 lies at
// /sys/fs/cgroup/memory. A container sees its own group at the root of the mount, whatever its
// path.
#include "core/concurrency/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace shardwright {
namespace {

struct Names {
  const char* limit;
  const char* used;
  const char* files;  // what stands in front of the keys of memory.stat that count the groups below
};
constexpr Names kSecond{"memory.max", "memory.current", ""};
constexpr Names kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"};

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  return file >> word ? number_of(word) : std::nullopt;
}

uint64_t file_pages_bytes(const std::string& path, const std::string& prefix) {
  std::ifstream file(path);
  std::string key;
  uint64_t value = 0;
  uint64_t bytes = 0;
  while (file >> key >> value) {
    if (key == prefix + "inactive_file" || key == prefix + "active_file") bytes += value;
  }
  return bytes;
}

uint64_t left_in(const std::string& group, const Names& names) {
  const auto limit = number_in(group + '/' + names.limit);
  const auto used = number_in(group + '/' + names.used);
  if (!limit.has_value() || !used.has_value()) return kNoMemoryLimit;
  if (*limit >= uint64_t{1} << 62) return kNoMemoryLimit;  // how cgroup 1 says that there is none
  const uint64_t files = file_pages_bytes(group + "/memory.stat", names.files);
  const uint64_t held = *used - std::min(*used, files);
  return *limit - std::min(*limit, held);
}

// The group and those above it, up to the mount.
uint64_t left_under(const std::string& mount, std::string path, const Names& names) {
  uint64_t least = kNoMemoryLimit;
  while (!path.empty() && path != "/") {
    least = std::min(least, left_in(mount + path, names));
    path.resize(path.find_last_of('/'));
  }
  return std::min(least, left_in(mount, names));
}

bool names_memory(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string each; std::getline(list, each, ',');) {
    if (each == "memory") return true;
  }
  return false;
}

}  // namespace

uint64_t memory_left_bytes() {
  return memory_left_bytes("");
}

uint64_t memory_left_bytes(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  uint64_t least = kNoMemoryLimit;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, left_under(root + "/sys/fs/cgroup", path, kSecond));
    if (names_memory(controllers))
      least = std::min(least, left_under(root + "/sys/fs/cgroup/memory", path, kFirst));
  }
  return least;
}

}  // namespace shardwright
