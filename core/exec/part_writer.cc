// SPDX-License-Identifier: Apache-2.0
//
// Bytes are put behind each other in one block; as soon as they make a part it is written.
#include "core/exec/part_writer_internal.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/base/checked.h"

namespace shardwright::exec::internal {

Status PartWriter::acquire(BufferPool& staging, const CallControl& control) {
  uint64_t size_bytes = 0;
  if (!checked_add(part_bytes_, kMostRoomBytes, &size_bytes)) size_bytes = UINT64_MAX;
  Result<StagingBuffer> memory = staging.acquire(size_bytes, control);
  if (!memory.ok()) {
    return Status(memory.status())
        .annotated(fmt::format("gathering parts of at least {} bytes", part_bytes_));
  }
  memory_ = std::move(*memory);
  return {};
}

std::span<std::byte> PartWriter::room(uint64_t size_bytes) const {
  return memory_.bytes().subspan(static_cast<size_t>(size_bytes_), static_cast<size_t>(size_bytes));
}

Status PartWriter::filled(uint64_t size_bytes) {
  size_bytes_ += size_bytes;
  return size_bytes_ >= part_bytes_ ? write_part() : Status();
}

Status PartWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t size_bytes = std::min<size_t>(bytes.size(), kMostRoomBytes);
    std::memcpy(room(size_bytes).data(), bytes.data(), size_bytes);
    SHW_RETURN_IF_ERROR(filled(size_bytes));
    bytes = bytes.subspan(size_bytes);
  }
  return {};
}

Status PartWriter::finish() {
  return size_bytes_ > 0 ? write_part() : Status();
}

Status PartWriter::write_part() {
  SHW_RETURN_IF_ERROR(
      object_.write_at(offset_, memory_.bytes().first(static_cast<size_t>(size_bytes_))));
  offset_ += size_bytes_;
  size_bytes_ = 0;
  return {};
}

}  // namespace shardwright::exec::internal
