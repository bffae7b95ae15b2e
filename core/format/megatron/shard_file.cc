// SPDX-License-Identifier: Apache-2.0
//
// A list around a value costs two opcodes: EMPTY_LIST behind the protocol of its pickle, APPEND in
// front of STOP. What lies between uses the stack above the list and knows nothing of it.
#include "core/format/megatron/shard_file.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/format/archive/torch_archive.h"
#include "core/format/archive/zip_writer.h"
#include "core/format/json_events.h"
#include "core/integrity/crc32.h"

namespace shardwright::format::megatron {
namespace {

constexpr std::string_view kEnding = ".pt";
constexpr std::string_view kPickleRecord = "data.pkl";
constexpr std::byte kProtocol{0x80};
constexpr std::byte kEmptyList{']'};
constexpr std::byte kAppend{'a'};
constexpr std::byte kStop{'.'};

Result<std::vector<std::byte>> listed_pickle(const archive::ArchiveBytes& value,
                                             const archive::TorchArchive& records) {
  SHW_ASSIGN_OR_RETURN(std::vector<std::byte> pickle, records.read_pickle(value));
  if (pickle.empty() || pickle.back() != kStop)
    return value.damaged(0, "the pickle of its value does not end");
  const ptrdiff_t front = pickle.size() > 2 && pickle.front() == kProtocol ? 2 : 0;
  pickle.back() = kAppend;
  pickle.push_back(kStop);
  pickle.insert(pickle.begin() + front, kEmptyList);
  return pickle;
}

// Records of the new archive in the order of the old one's directory.
class Lister {
 public:
  Lister(const archive::ArchiveBytes& value, const archive::TorchArchive& records)
      : value_(value), records_(records) {}

  Result<ListedArchive> run() {
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> pickle, listed_pickle(value_, records_));
    const std::string pickle_name = std::string(records_.root()) + std::string(kPickleRecord);
    const archive::ZipDirectory& directory = records_.directory();
    for (size_t i = 0; i < directory.size(); ++i) {
      const archive::ZipEntry entry = directory.entry(i);
      const bool is_pickle = entry.name == pickle_name;
      SHW_ASSIGN_OR_RETURN(const size_t number,
                           writer_.add(entry.name, is_pickle ? pickle.size() : entry.size_bytes));
      writer_.set_crc(number, is_pickle ? integrity::crc32(0, pickle) : entry.crc);
      add_bytes(writer_.header(number));
      if (is_pickle) {
        add_bytes(pickle);
      } else {
        SHW_RETURN_IF_ERROR(add_range(entry));
      }
      add_bytes(writer_.trailer(number));
    }
    add_bytes(writer_.end());
    for (const ListedArchive::Part& part : listed_.parts) listed_.size_bytes += part.size_bytes;
    return std::move(listed_);
  }

 private:
  void add_bytes(const std::vector<std::byte>& bytes) {
    if (bytes.empty()) return;
    if (listed_.parts.empty() || listed_.parts.back().bytes.empty()) listed_.parts.emplace_back();
    ListedArchive::Part& part = listed_.parts.back();
    part.bytes.insert(part.bytes.end(), bytes.begin(), bytes.end());
    part.size_bytes = part.bytes.size();
  }

  Status add_range(const archive::ZipEntry& entry) {
    SHW_ASSIGN_OR_RETURN(const uint64_t offset, archive::locate_payload(value_, entry));
    if (entry.size_bytes > 0) listed_.parts.push_back({{}, offset, entry.size_bytes});
    return {};
  }

  const archive::ArchiveBytes& value_;
  const archive::TorchArchive& records_;
  archive::ZipWriter writer_{archive::ZipFraming::kTorch};
  ListedArchive listed_;
};

}  // namespace

Result<std::optional<ObjectKey>> object_of_file(std::string_view path) {
  const std::optional<ObjectKey> none;
  if (!path.ends_with(kEnding)) return none;
  Result<ObjectKey> name = split_object_key(path.substr(0, path.size() - kEnding.size()));
  if (!name.ok() || name->key.empty()) return none;
  const Status inside = check_object_cell(*name);
  if (inside.ok()) return std::optional(*std::move(name));
  return data_loss(fmt::format("file '{}' is no object of the key '{}': {}", shown(path),
                               shown(name->key), inside.message()))
      .with_detail("file", std::string(path))
      .with_detail("object", name->key);
}

Result<ListedArchive> listed_archive(const archive::ArchiveBytes& value) {
  SHW_ASSIGN_OR_RETURN(const archive::TorchArchive records, archive::TorchArchive::open(value));
  if (records.is_script())
    return unimplemented(fmt::format("file '{}' holds a model with its code, which is no object "
                                     "that is read",
                                     value.file))
        .with_detail("file", value.file);
  return Lister(value, records).run();
}

}  // namespace shardwright::format::megatron
