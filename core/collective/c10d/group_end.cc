// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <span>
#include <utility>

#include "core/collective/c10d/group_end_internal.h"
#include "core/collective/status_bytes_internal.h"

namespace shardwright::collective::internal {
namespace {

struct EndHeader {
  uint64_t call = 0;
  uint64_t operations = 0;
  int32_t rank = 0;
  int32_t transport_failed = 0;
};
static_assert(sizeof(EndHeader) == 24);

}  // namespace

std::vector<uint8_t> encode_end(const GroupEnd& end) {
  const EndHeader header{end.call, end.operations, end.rank, end.transport_failed ? 1 : 0};
  const auto status = encode_status(end.cause);
  std::vector<uint8_t> bytes(sizeof header + status.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!status.empty()) std::memcpy(bytes.data() + sizeof header, status.data(), status.size());
  return bytes;
}

GroupEnd decode_end(const std::vector<uint8_t>& bytes) {
  EndHeader header;
  GroupEnd end;
  if (bytes.size() < sizeof header) {
    end.cause = internal_error("the reason why a process group was given up cannot be read");
    return end;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  end.cause = decode_status(std::as_bytes(std::span(bytes)).subspan(sizeof header));
  if (end.cause.ok()) end.cause = aborted("a process group was given up without a reason");
  end.call = header.call;
  end.operations = header.operations;
  end.rank = header.rank;
  end.transport_failed = header.transport_failed != 0;
  return end;
}

}  // namespace shardwright::collective::internal
