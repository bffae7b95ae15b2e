// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_save/stored_value.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/torch_save/old_file_internal.h"

namespace shardwright::format::torch_save {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers travel in little-endian order");

constexpr std::string_view kDataFolder = "data/";
// Directory and records of a few hundred tensors.
constexpr uint64_t kTailBytes = uint64_t{64} << 10;

// Name of the file that a location is.
std::string own_name(const Location& location) {
  std::string path = shown_path(location);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

struct FileToRead {
  std::unique_ptr<storage::StorageObject> object;
  storage::ObjectStat stat;
  archive::ArchiveBytes bytes;
};

Result<FileToRead> open_to_read(const Location& location) {
  FileToRead file;
  SHW_ASSIGN_OR_RETURN(file.object, location.storage->open(location.prefix, {}));
  SHW_ASSIGN_OR_RETURN(file.stat, file.object->stat());
  file.bytes = archive::bytes_of(*file.object, 0, file.stat.size_bytes, own_name(location));
  return file;
}

// As a model's code is. Nothing of it is read, and a note says so.
bool is_compressed(const archive::ZipEntry& entry) {
  return entry.method != 0;
}

Status read_archive(const archive::ArchiveBytes& bytes, StoredValue* stored) {
  SHW_ASSIGN_OR_RETURN(const archive::TorchArchive found,
                       archive::TorchArchive::open(bytes, kTailBytes));
  stored->is_script = found.is_script();
  SHW_ASSIGN_OR_RETURN(stored->pickle, found.read_pickle(bytes));
  const std::string folder = std::string(found.root()) + std::string(kDataFolder);
  for (size_t i = 0; i < found.directory().size(); ++i) {
    const archive::ZipEntry entry = found.directory().entry(i);
    if (!entry.name.starts_with(folder)) {
      if (is_compressed(entry)) ++stored->compressed_records;
      continue;
    }
    SHW_ASSIGN_OR_RETURN(const uint64_t payload, archive::locate_payload(bytes, entry));
    stored->storages.push_back(
        {std::string(entry.name.substr(folder.size())), payload, entry.size_bytes, entry.crc});
  }
  return {};
}

class ByteWriter {
 public:
  void number(uint64_t value) {
    const auto raw = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void text(std::span<const std::byte> text) {
    number(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  void text(std::string_view text_value) { text(std::as_bytes(std::span(text_value))); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Result<uint64_t> number() {
    uint64_t value = 0;
    if (bytes_.size() < sizeof(value)) return cut_short();
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_ = bytes_.subspan(sizeof(value));
    return value;
  }
  Result<std::span<const std::byte>> text() {
    SHW_ASSIGN_OR_RETURN(const uint64_t size, number());
    if (size > bytes_.size()) return cut_short();
    const auto taken = bytes_.first(static_cast<size_t>(size));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  bool ended() const { return bytes_.empty(); }

 private:
  static Status cut_short() {
    return data_loss("what another rank read of a file of torch.save came cut short");
  }
  std::span<const std::byte> bytes_;
};

std::string string_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

const StorageRecord* StoredValue::find(std::string_view key) const {
  const auto found = std::ranges::lower_bound(storages, key, {}, &StorageRecord::key);
  return found == storages.end() || found->key != key ? nullptr : &*found;
}

bool is_zip_file(std::span<const std::byte> head) {
  constexpr std::string_view kMagic = "PK\x03\x04";
  return head.size() >= kMagic.size() &&
         std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<StoredValue> read_stored_value(const Location& location) {
  SHW_ASSIGN_OR_RETURN(FileToRead file, open_to_read(location));
  StoredValue stored;
  stored.name = file.bytes.file;
  stored.file_bytes = file.stat.size_bytes;
  stored.version = file.stat.version;
  std::vector<std::byte> head(
      static_cast<size_t>(std::min<uint64_t>(stored.file_bytes, internal::kOldMagicBytes)));
  SHW_RETURN_IF_ERROR(file.bytes.read_range(0, head, "its first bytes"));
  stored.is_archive = !is_old_file(head);
  SHW_RETURN_IF_ERROR(stored.is_archive ? read_archive(file.bytes, &stored)
                                        : internal::read_old_file(file.bytes, &stored));
  std::ranges::sort(stored.storages, {}, &StorageRecord::key);
  SHW_RETURN_IF_ERROR(file.object->close());
  return stored;
}

Status check_records(const Location& location, std::span<const uint64_t> but_payloads) {
  SHW_ASSIGN_OR_RETURN(const FileToRead file, open_to_read(location));
  SHW_RETURN_IF_ERROR(archive::check_payloads(file.bytes, {kTailBytes, but_payloads}));
  return file.object->close();
}

std::vector<std::byte> encode_stored_value(const StoredValue& stored) {
  ByteWriter writer;
  writer.text(stored.name);
  writer.number(stored.file_bytes);
  writer.number((stored.is_archive ? 1U : 0U) | (stored.is_script ? 2U : 0U));
  writer.number(stored.compressed_records);
  writer.text(stored.pickle);
  for (const StorageRecord& record : stored.storages) {
    writer.text(record.key);
    writer.number(record.offset);
    writer.number(record.size_bytes);
    writer.number(record.crc);
  }
  return writer.take();
}

Result<StoredValue> decode_stored_value(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  StoredValue stored;
  SHW_ASSIGN_OR_RETURN(const auto name, reader.text());
  stored.name = string_of(name);
  SHW_ASSIGN_OR_RETURN(stored.file_bytes, reader.number());
  SHW_ASSIGN_OR_RETURN(const uint64_t kinds, reader.number());
  stored.is_archive = (kinds & 1) != 0;
  stored.is_script = (kinds & 2) != 0;
  SHW_ASSIGN_OR_RETURN(stored.compressed_records, reader.number());
  SHW_ASSIGN_OR_RETURN(const auto pickle, reader.text());
  stored.pickle.assign(pickle.begin(), pickle.end());
  while (!reader.ended()) {
    StorageRecord record;
    SHW_ASSIGN_OR_RETURN(const auto key, reader.text());
    record.key = string_of(key);
    SHW_ASSIGN_OR_RETURN(record.offset, reader.number());
    SHW_ASSIGN_OR_RETURN(record.size_bytes, reader.number());
    SHW_ASSIGN_OR_RETURN(const uint64_t crc, reader.number());
    record.crc = static_cast<uint32_t>(crc);
    const bool fits = record.offset <= stored.file_bytes &&
                      record.size_bytes <= stored.file_bytes - record.offset;
    const bool ascends = stored.storages.empty() || stored.storages.back().key < record.key;
    if (!fits || !ascends)
      return data_loss("what another rank read of a file of torch.save is no such file");
    stored.storages.push_back(std::move(record));
  }
  return stored;
}

}  // namespace shardwright::format::torch_save
