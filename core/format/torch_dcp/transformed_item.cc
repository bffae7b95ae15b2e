// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/transformed_item.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zstd_frames.h"
#include "core/format/read_only_object.h"
#include "core/format/torch_dcp/tensor_item.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr std::string_view kZstd = "stream.zstd/1";
// Headers, directory, pickle, and gaps of up to 64 KiB in front of each record.
constexpr uint64_t kMaxFramingBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxUnpackedBytes = uint64_t{4} << 30;
constexpr size_t kKeptArchives = 4;
constexpr uint64_t kKeptBytes = uint64_t{1} << 30;  // together, unless one has more

// A name with its version, of which only the first number says what it means.
bool is_zstd(std::string_view descriptor) {
  return descriptor == kZstd || (descriptor.starts_with(kZstd) && descriptor[kZstd.size()] == '.' &&
                                 descriptor.find(' ') == std::string_view::npos);
}

Status too_large(const archive::ArchiveBytes& stored, uint64_t bytes) {
  return resource_exhausted(
             "memory",
             fmt::format("file '{}': an item at {} is unpacked as a whole, and may have "
                         "{} bytes then, more than {}",
                         escape_text(stored.file), stored.file_offset, bytes, kMaxUnpackedBytes))
      .with_detail("file", stored.file)
      .with_detail("offset", fmt::to_string(stored.file_offset))
      .with_detail("hint", "load it with torch and save it without the transform");
}

// Bytes in memory as a file.
class UnpackedFile final : public ReadOnlyObject {
 public:
  using Get = std::function<Result<std::shared_ptr<const UnpackedArchives::Bytes>>()>;
  UnpackedFile(Get get, std::string name) : ReadOnlyObject(std::move(name)), get_(std::move(get)) {}

  Status read_at(uint64_t offset, std::span<std::byte> data) override {
    SHW_ASSIGN_OR_RETURN(const auto bytes, get_());
    if (offset > bytes->size() || data.size() > bytes->size() - offset)
      return data_loss(fmt::format("file '{}': an item that is stored through a transform ends "
                                   "before its tensor does",
                                   escape_text(name())))
          .with_detail("file", name());
    std::ranges::copy(std::span(*bytes).subspan(offset, data.size()), data.begin());
    return {};
  }
  Result<storage::ObjectStat> stat() override {
    SHW_ASSIGN_OR_RETURN(const auto bytes, get_());
    storage::ObjectStat stat;
    stat.size_bytes = bytes->size();
    return stat;
  }

 private:
  const Get get_;
};

}  // namespace

std::unique_ptr<storage::StorageObject> open_unpacked(UnpackedFile::Get get, std::string name) {
  return std::make_unique<UnpackedFile>(std::move(get), std::move(name));
}

Status check_transforms(std::string_view descriptors, std::string_view file, uint64_t offset) {
  if (is_zstd(descriptors)) return {};
  return unimplemented(fmt::format("file '{}': the item at {} is stored through '{}', which is not "
                                   "undone here",
                                   escape_text(file), offset, escape_text(descriptors)))
      .with_detail("file", file)
      .with_detail("offset", fmt::to_string(offset))
      .with_detail("hint", "load it with torch and save it without the transform");
}

uint64_t most_archive_bytes(uint64_t tensor_bytes) {
  uint64_t most = 0;
  return checked_add(tensor_bytes, kMaxFramingBytes, &most) ? most : UINT64_MAX;
}

Result<std::vector<std::byte>> unpack_item(const archive::ArchiveBytes& stored,
                                           uint64_t most_bytes) {
  const uint64_t most = std::min(most_bytes, kMaxUnpackedBytes);
  auto unpacked = archive::unpack_zstd(stored, most);
  if (!unpacked.ok() && most < most_bytes) return too_large(stored, most_bytes);
  return unpacked;
}

Result<std::vector<std::byte>> undo_transform(const archive::ArchiveBytes& stored,
                                              uint64_t most_bytes) {
  SHW_ASSIGN_OR_RETURN(std::vector<std::byte> unpacked, unpack_item(stored, most_bytes));
  const auto bytes = archive::bytes_of(unpacked, stored.file_offset, stored.file);
  SHW_RETURN_IF_ERROR(archive::check_payloads(bytes).annotated(
      fmt::format("read what '{}' unpacks to", escape_text(stored.file))));
  return unpacked;
}

Result<StridedSource> find_transformed_elements(const archive::ArchiveBytes& stored,
                                                uint64_t most_bytes, DType dtype,
                                                std::span<const int64_t> sizes) {
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> head,
                       archive::unpack_zstd(stored, most_bytes, kItemHeadBytes));
  archive::ArchiveBytes item = archive::bytes_of(head, stored.file_offset, stored.file);
  item.size_bytes = most_bytes;  // what it has is seen when it is read
  const auto quick = find_elements_in_head(item, head, dtype, sizes);
  if (quick.ok() && quick->has_value()) return (**quick).source;
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> whole, undo_transform(stored, most_bytes));
  SHW_ASSIGN_OR_RETURN(FoundElements found,
                       find_elements(archive::bytes_of(whole, stored.file_offset, stored.file),
                                     whole, dtype, sizes));
  return std::move(found.source);
}

std::shared_ptr<UnpackedArchives::Slot> UnpackedArchives::slot_of(uint64_t number) {
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find(slots_, number, &Slot::number);
  if (found == slots_.end()) {
    slots_.push_front(std::make_shared<Slot>(number));
  } else {
    slots_.splice(slots_.begin(), slots_, found);
  }
  return slots_.front();
}

// Those that were used longest ago make room.
void UnpackedArchives::count(Slot* slot, uint64_t bytes) {
  const MutexLock lock(mutex_);
  slot->kept_bytes = bytes;
  uint64_t total = 0;
  for (const auto& each : slots_) total += each->kept_bytes;
  while (slots_.size() > 1 && (slots_.size() > kKeptArchives || total > kKeptBytes)) {
    total -= slots_.back()->kept_bytes;
    slots_.pop_back();
  }
}

Result<std::shared_ptr<const UnpackedArchives::Bytes>> UnpackedArchives::get(uint64_t number,
                                                                             const Unpack& unpack) {
  const std::shared_ptr<Slot> slot = slot_of(number);
  std::shared_ptr<const Bytes> bytes;
  {
    const MutexLock lock(slot->mutex);
    if (slot->bytes != nullptr) return slot->bytes;
    SHW_ASSIGN_OR_RETURN(Bytes unpacked, unpack());
    bytes = std::make_shared<const Bytes>(std::move(unpacked));
    slot->bytes = bytes;
  }
  count(slot.get(), bytes->size());
  return bytes;
}

}  // namespace shardwright::format::torch_dcp
