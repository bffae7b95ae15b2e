// SPDX-License-Identifier: Apache-2.0
//
// The first checks of every buffer. The order is fixed: the FlatBuffers verifier only asserts the
// length, checks alignment relative to the start of the buffer, and accepts bytes after the
// prefixed length.
#include <cstring>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/wire/catalog_wire.h"

namespace shardwright::plan {
namespace {

constexpr size_t kLeastBytes = 12;  // length prefix, root offset, identifier
constexpr size_t kPrefixBytes = 4;
constexpr size_t kIdentifierAt = 8;
constexpr size_t kIdentifierBytes = 4;
constexpr uintptr_t kAlignment = 8;

}  // namespace

Result<std::span<const std::byte>> check_buffer_frame(std::span<const std::byte> buffer,
                                                      const char* identifier,
                                                      std::vector<std::byte>* aligned) {
  if (buffer.size() < kLeastBytes || buffer.size() > kMaxFlatBufferBytes) {
    return invalid_argument(fmt::format("a buffer of {} bytes is no {} buffer, which has {} to {}",
                                        buffer.size(), identifier, kLeastBytes,
                                        kMaxFlatBufferBytes))
        .with_detail("length", std::to_string(buffer.size()));
  }
  if (reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment != 0) {
    aligned->assign(buffer.begin(), buffer.end());
    buffer = *aligned;
  }
  uint32_t prefix = 0;
  std::memcpy(&prefix, buffer.data(), kPrefixBytes);
  const bool identified =
      std::memcmp(buffer.data() + kIdentifierAt, identifier, kIdentifierBytes) == 0;
  if (!identified) {
    const std::string_view found(reinterpret_cast<const char*>(buffer.data()) + kIdentifierAt,
                                 kIdentifierBytes);
    return invalid_argument(fmt::format("the buffer has identifier '{}', not '{}'",
                                        escape_text(found), identifier))
        .with_detail("expected", identifier)
        .with_detail("found", escape_text(found));
  }
  if (prefix != buffer.size() - kPrefixBytes) {
    return data_loss(fmt::format("the {} buffer has {} bytes, its length prefix says {}",
                                 identifier, buffer.size(), uint64_t{prefix} + kPrefixBytes))
        .with_detail("expected", std::to_string(uint64_t{prefix} + kPrefixBytes))
        .with_detail("found", std::to_string(buffer.size()));
  }
  return buffer;
}

}  // namespace shardwright::plan
