// SPDX-License-Identifier: Apache-2.0
//
// From the names in a directory to an opened checkpoint: the indexes that count, sizes of files,
// digests, byte objects.
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/torch_dcp/contents_internal.h"
#include "core/format/torch_dcp/digest_sidecar.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/find_sidecar.h"
#include "core/format/torch_dcp/item_digests_internal.h"
#include "core/format/torch_dcp/kept_openings.h"

namespace shardwright::format::torch_dcp {
namespace {

using internal::Contents;
using internal::Opened;

// r of __r.metadata, or nullopt.
std::optional<int32_t> rank_of_index(std::string_view name) {
  constexpr std::string_view kSuffix = ".metadata";
  if (!name.starts_with("__") || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(2, name.size() - 2 - kSuffix.size());
  int32_t rank = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  return whole && rank >= 0 ? std::optional(rank) : std::nullopt;
}

// The indexes that count: the one of all ranks where there is one.
std::vector<std::string> index_keys(std::span<const std::string> names) {
  if (std::ranges::find(names, kIndexName) != names.end()) return {std::string(kIndexName)};
  std::map<int32_t, std::string> by_rank;
  for (const std::string& name : names) {
    if (const auto rank = rank_of_index(name)) by_rank.emplace(*rank, name);
  }
  std::vector<std::string> keys;
  keys.reserve(by_rank.size());
  for (auto& [rank, name] : by_rank) keys.push_back(std::move(name));
  return keys;
}

// Sizes of the files, as one listing says them.
Result<std::vector<uint64_t>> sizes_of(const Location& location,
                                       const std::vector<std::string>& files) {
  SHW_ASSIGN_OR_RETURN(const DirectoryListing listing, list_directory(location));
  std::vector<uint64_t> sizes;
  sizes.reserve(files.size());
  for (const std::string& file : files) {
    const auto found = listing.find(file);
    if (found != listing.end()) {
      sizes.push_back(found->second.size_bytes);
      continue;
    }
    const auto stat = location.storage->stat(storage::join_key(location.prefix, file));
    if (stat.status().code() != StatusCode::kNotFound) SHW_RETURN_IF_ERROR(stat.status());
    sizes.push_back(stat.ok() ? stat->size_bytes : Opened::kMissing);
  }
  return sizes;
}

// Items, the blocks that lie in the files, and one block begun per item.
uint64_t most_sidecar_bytes(const DcpIndex& index, const Opened& opened) {
  const uint64_t items = index.places.size() + index.objects.size();
  uint64_t blocks = items;
  for (const uint64_t bytes : opened.file_bytes)
    blocks += bytes == Opened::kMissing ? 0 : bytes / kDigestBlockBytes + 1;
  return kSidecarHeaderBytes + items * sizeof(SidecarItem) + blocks * sizeof(Digest128);
}

// The digests of the only index, where there are any. One that is damaged is as good as none.
Status take_sidecar(const Location& location, const DcpIndex& index, Opened* opened,
                    std::vector<std::string>* notes) {
  if (opened->indexes.size() != 1 || rank_of_index(opened->indexes[0].key).has_value()) return {};
  SHW_ASSIGN_OR_RETURN(const auto found, find_sidecar(location, opened->indexes[0].bytes, notes));
  if (!found.has_value()) return {};
  // A body is made of its header's bytes: one that says more than there is to say is not read.
  Status sound;
  std::vector<std::byte> bytes;
  if (found->header.body_bytes > most_sidecar_bytes(index, *opened)) {
    sound = data_loss(fmt::format("'{}' says that it has {} bytes", escape_text(found->key),
                                  found->header.body_bytes));
  } else {
    SHW_ASSIGN_OR_RETURN(bytes, storage::read_all(*location.storage, found->key, kMaxSidecarBytes));
    sound = internal::check_sidecar(bytes, index);
  }
  if (sound.ok()) {
    opened->sidecar = std::move(bytes);
  } else {
    notes->push_back(
        fmt::format("nothing that is read is compared with a digest: {}", sound.message()));
  }
  return {};
}

// What lies there before anything of it is read; nullopt = that cannot be kept.
Result<std::optional<KeptOpenings::Seen>> see(const Location& location,
                                              std::span<const std::string> keys,
                                              const KeptOpenings* kept) {
  if (kept == nullptr || location.path.empty()) return std::optional<KeptOpenings::Seen>();
  const int64_t now_ns = kept->now_ns();
  SHW_ASSIGN_OR_RETURN(const DirectoryListing listing, list_directory(location));
  return KeptOpenings::see(location, keys, listing, now_ns);
}

Status read_indexes(const Location& location, std::span<const std::string> keys, Opened* opened) {
  for (const std::string& key : keys) {
    SHW_ASSIGN_OR_RETURN(
        std::vector<std::byte> index,
        storage::read_all(*location.storage, storage::join_key(location.prefix, key),
                          kMaxIndexBytes));
    opened->indexes.push_back({key, std::move(index)});
  }
  return {};
}

}  // namespace

bool is_index_name(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);
  return name == kIndexName || rank_of_index(name).has_value();
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_directory(const Location& location,
                                                               std::span<const std::string> names,
                                                               KeptOpenings* kept,
                                                               std::vector<std::byte>* bytes) {
  return open_indexes(location, index_keys(names), kept, bytes);
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_indexes(const Location& location,
                                                             std::span<const std::string> keys,
                                                             KeptOpenings* kept,
                                                             std::vector<std::byte>* bytes) {
  SHW_ASSIGN_OR_RETURN(std::optional<KeptOpenings::Seen> seen, see(location, keys, kept));
  if (seen.has_value()) {
    auto found = kept->find(*seen);
    if (found != nullptr && bytes == nullptr) return found;
  }
  Opened opened;
  SHW_RETURN_IF_ERROR(read_indexes(location, keys, &opened));
  SHW_ASSIGN_OR_RETURN(DcpIndex index, internal::index_of(opened));
  SHW_ASSIGN_OR_RETURN(opened.file_bytes, sizes_of(location, index.files));
  std::vector<FileInfo> files(index.files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    files[i].key = index.files[i];
    files[i].size_bytes = opened.file_bytes[i] == Opened::kMissing ? 0 : opened.file_bytes[i];
  }
  SHW_RETURN_IF_ERROR(take_sidecar(location, index, &opened, &index.notes));
  opened.objects =
      read_objects(location, index, files, internal::check_items(opened, index), &index.notes);
  if (bytes != nullptr) *bytes = internal::encode_opened(opened);
  // What lies elsewhere was not seen.
  const bool all_seen = std::ranges::all_of(index.files, is_data_file);
  SHW_ASSIGN_OR_RETURN(Contents contents, internal::contents_of(std::move(index), opened));
  const uint64_t held = internal::held_bytes(opened, contents);
  auto checkpoint = internal::make_checkpoint(location, opened, std::move(contents));
  if (seen.has_value() && all_seen) kept->keep(std::move(*seen), held, checkpoint);
  return checkpoint;
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(const Opened opened, internal::decode_opened(bytes));
  SHW_ASSIGN_OR_RETURN(DcpIndex index, internal::index_of(opened));
  SHW_ASSIGN_OR_RETURN(Contents contents, internal::contents_of(std::move(index), opened));
  return internal::make_checkpoint(location, opened, std::move(contents));
}

}  // namespace shardwright::format::torch_dcp
