// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/record.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/crash/victim/seam.h"

namespace shardwright::crash {
namespace {

// Path below the root; false when it lies elsewhere.
bool relative(std::string* path, std::string_view root) {
  if (!path->starts_with(root) || path->size() <= root.size() || (*path)[root.size()] != '/')
    return *path == root ? (path->clear(), true) : false;
  path->erase(0, root.size() + 1);
  return true;
}

}  // namespace

std::vector<RecordedCall> read_record(const std::string& log, std::string_view root) {
  std::ifstream stream(log, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)),
                          std::istreambuf_iterator<char>());
  std::vector<RecordedCall> calls;
  size_t at = 0;
  const auto take = [&](size_t size) {
    if (bytes.size() - at < size) throw std::runtime_error("the log ends within an event");
    at += size;
    return bytes.substr(at - size, size);
  };
  while (at < bytes.size()) {
    seam_event event{};
    std::memcpy(&event, take(sizeof(event)).data(), sizeof(event));
    RecordedCall call;
    call.kind = event.kind;
    call.rank = event.rank;
    call.error = event.result;
    call.inode = event.inode;
    call.offset = event.offset;
    call.path = take(event.path_size);
    call.second = take(event.second_size);
    call.data = std::make_shared<const std::string>(take(event.data_size));
    if (call.kind == SEAM_MARK) {
      calls.push_back(std::move(call));
      continue;
    }
    const bool is_ours = relative(&call.path, root);
    if (is_ours && !call.second.empty()) (void)relative(&call.second, root);
    if (is_ours) calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace shardwright::crash
