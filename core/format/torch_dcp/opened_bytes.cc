// SPDX-License-Identifier: Apache-2.0
//
//   opened = count, (key, bytes)...   indexes
//            count, size...           files, 8 bytes each
//            count, (type, bytes, is_stored as 8 bytes)...  objects
//            bytes                    digests, empty = none
// A count, and the length in front of bytes, has 8 bytes, little-endian.
#include <cstring>

#include "core/format/torch_dcp/contents_internal.h"

namespace shardwright::format::torch_dcp::internal {
namespace {

constexpr uint64_t kNumberBytes = 8;

void append(uint64_t number, std::vector<std::byte>* out) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  out->insert(out->end(), bytes.begin(), bytes.end());
}

void append(std::span<const std::byte> bytes, std::vector<std::byte>* out) {
  append(bytes.size(), out);
  out->insert(out->end(), bytes.begin(), bytes.end());
}

void append(const std::string& text, std::vector<std::byte>* out) {
  append(std::as_bytes(std::span(text)), out);
}

class Taker {
 public:
  explicit Taker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool take(uint64_t* number) {
    if (bytes_.size() < kNumberBytes) return false;
    std::memcpy(number, bytes_.data(), kNumberBytes);
    bytes_ = bytes_.subspan(kNumberBytes);
    return true;
  }
  bool take(std::span<const std::byte>* part) {
    uint64_t size = 0;
    if (!take(&size) || size > bytes_.size()) return false;
    *part = bytes_.first(static_cast<size_t>(size));
    bytes_ = bytes_.subspan(static_cast<size_t>(size));
    return true;
  }
  bool take(std::string* text) {
    std::span<const std::byte> part;
    if (!take(&part)) return false;
    text->assign(reinterpret_cast<const char*>(part.data()), part.size());
    return true;
  }
  // Of things that have at least so many bytes each.
  bool take_count(uint64_t* count) { return take(count) && *count <= bytes_.size() / kNumberBytes; }
  bool ended() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

bool take_opened(Taker taker, Opened* opened) {
  uint64_t count = 0;
  if (!taker.take_count(&count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    Opened::IndexFile file;
    std::span<const std::byte> bytes;
    if (!taker.take(&file.key) || !taker.take(&bytes)) return false;
    file.bytes.assign(bytes.begin(), bytes.end());
    opened->indexes.push_back(std::move(file));
  }
  if (!taker.take_count(&count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    if (!taker.take(&size)) return false;
    opened->file_bytes.push_back(size);
  }
  if (!taker.take_count(&count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    ByteObject object;
    uint64_t is_stored = 0;
    if (!taker.take(&object.content_type) || !taker.take(&object.bytes) || !taker.take(&is_stored))
      return false;
    object.is_stored = is_stored != 0;
    opened->objects.push_back(std::move(object));
  }
  std::span<const std::byte> sidecar;
  if (!taker.take(&sidecar)) return false;
  opened->sidecar.assign(sidecar.begin(), sidecar.end());
  return taker.ended();
}

}  // namespace

std::vector<std::byte> encode_opened(const Opened& opened) {
  std::vector<std::byte> out;
  append(opened.indexes.size(), &out);
  for (const Opened::IndexFile& file : opened.indexes) {
    append(file.key, &out);
    append(file.bytes, &out);
  }
  append(opened.file_bytes.size(), &out);
  for (const uint64_t size : opened.file_bytes) append(size, &out);
  append(opened.objects.size(), &out);
  for (const ByteObject& object : opened.objects) {
    append(object.content_type, &out);
    append(object.bytes, &out);
    append(uint64_t{object.is_stored}, &out);
  }
  append(opened.sidecar, &out);
  return out;
}

Result<Opened> decode_opened(std::span<const std::byte> bytes) {
  Opened opened;
  if (!take_opened(Taker(bytes), &opened))
    return data_loss("what another rank read of the checkpoint is damaged");
  return opened;
}

}  // namespace shardwright::format::torch_dcp::internal
