// SPDX-License-Identifier: Apache-2.0
//
//   written file = size of the name (8 bytes), name, details (rank_items.h)
#include "core/format/torch_dcp/write_digests.h"

#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/digest_sidecar.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

// Items by file and offset.
class ItemsByPlace {
 public:
  explicit ItemsByPlace(std::span<const WrittenFile> files) {
    for (const WrittenFile& file : files) {
      size_t digest = 0;
      for (const WrittenItem& item : file.written.items) {
        items_[file.name].try_emplace(item.offset, Found{&file, &item, digest});
        if (!file.written.digests.empty())
          digest += static_cast<size_t>(integrity::block_count(item.payload_bytes));
      }
    }
  }

  // What is known of the item at a place, its digests appended to the sidecar's.
  SidecarItem take(const DcpIndex& index, const ItemPlace& place, bool is_object,
                   DigestSidecar* sidecar) const {
    SidecarItem taken;
    if (place.file == ItemPlace::kNowhere || place.transform != 0) return taken;
    const auto file = items_.find(index.files[place.file]);
    if (file == items_.end()) return taken;
    const auto found = file->second.find(place.offset);
    if (found == file->second.end() || found->second.item->size_bytes != place.size_bytes)
      return taken;
    const WrittenItem& item = *found->second.item;
    if (!is_object) taken.payload_offset = item.payload_offset;
    const std::vector<Digest128>& digests = found->second.file->written.digests;
    const auto blocks = static_cast<size_t>(integrity::block_count(item.payload_bytes));
    if (digests.empty() || blocks > digests.size() - found->second.first_digest) return taken;
    taken.first_digest = sidecar->digests.size();
    const auto begin = digests.begin() + static_cast<std::ptrdiff_t>(found->second.first_digest);
    sidecar->digests.insert(sidecar->digests.end(), begin,
                            begin + static_cast<std::ptrdiff_t>(blocks));
    return taken;
  }

 private:
  struct Found {
    const WrittenFile* file = nullptr;
    const WrittenItem* item = nullptr;
    size_t first_digest = 0;
  };
  std::map<std::string, std::map<uint64_t, Found>, std::less<>> items_;
};

Result<std::string> generation_of(std::span<const WrittenFile> files) {
  std::string generation;
  for (const WrittenFile& file : files) {
    const auto name = parse_data_file_name(file.name);
    if (!name.has_value() || (!generation.empty() && name->generation != generation)) {
      return invalid_argument(fmt::format("file '{}' is not one of generation '{}' like the others",
                                          escape_text(file.name), generation))
          .with_detail("file", file.name);
    }
    generation = name->generation;
  }
  if (!generation.empty()) return generation;
  return invalid_argument("no file was written, so there are no digests");
}

}  // namespace

std::vector<std::byte> encode_written_file(const WrittenFile& file) {
  const uint64_t size = file.name.size();
  std::vector<std::byte> bytes(sizeof(size) + file.name.size());
  std::memcpy(bytes.data(), &size, sizeof(size));
  std::memcpy(bytes.data() + sizeof(size), file.name.data(), file.name.size());
  const std::vector<std::byte> details = encode_details(file.written);
  bytes.insert(bytes.end(), details.begin(), details.end());
  return bytes;
}

Result<WrittenFile> decode_written_file(std::span<const std::byte> bytes) {
  uint64_t size = 0;
  if (bytes.size() < sizeof(size)) return data_loss("what was written of a file is cut");
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes = bytes.subspan(sizeof(size));
  if (size > bytes.size()) return data_loss("what was written of a file is cut");
  WrittenFile file;
  file.name.assign(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(size));
  SHW_ASSIGN_OR_RETURN(file.written, decode_details(bytes.subspan(static_cast<size_t>(size))));
  return file;
}

Result<std::vector<std::byte>> make_sidecar(std::span<const std::byte> index_bytes,
                                            std::span<const WrittenFile> files,
                                            int64_t created_unix_ns) {
  DigestSidecar sidecar;
  SHW_ASSIGN_OR_RETURN(sidecar.generation, generation_of(files));
  sidecar.created_unix_ns = created_unix_ns;
  SHW_ASSIGN_OR_RETURN(const DcpIndex index, decode_index(index_bytes, kIndexName));
  const ItemsByPlace items(files);
  for (const ItemPlace& place : index.places)
    sidecar.chunks.push_back(items.take(index, place, false, &sidecar));
  for (const DcpIndex::Object& object : index.objects)
    sidecar.objects.push_back(items.take(index, object.place, true, &sidecar));
  return encode_sidecar(sidecar, index_bytes);
}

Status write_sidecar(const Location& location, std::string_view generation,
                     std::span<const std::byte> sidecar, bool durable) {
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreate;
  options.durable = durable;
  const std::string key = storage::join_key(location.prefix, digests_file_name(generation));
  return storage::write_all(*location.storage, key, sidecar, std::move(options));
}

}  // namespace shardwright::format::torch_dcp
