// SPDX-License-Identifier: Apache-2.0
//
//   1. List all names with their sizes.
//   2. Read the header of each array.
//   3. Give every other file to the nearest array above it, or to the objects.
#include "core/format/megatron/zarr_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/format/json_events.h"
#include "core/format/megatron/marker_file.h"
#include "core/format/megatron/shard_file.h"
#include "core/format/zarr/chunk_grid.h"
#include "core/integrity/digest.h"
#include "core/storage/storage.h"

namespace shardwright::format::megatron {
namespace {

constexpr size_t kMaxUnknownNames = 4;
constexpr std::string_view kHeaderOfVersion3 = "zarr.json";
constexpr std::string_view kLocksEnding = ".sync";
// What zarr keeps beside arrays and nothing of an array is said by.
constexpr std::array<std::string_view, 3> kPassedOver = {".zattrs", ".zgroup", ".zmetadata"};

struct Parts {
  std::string_view folder;  // "" = the directory itself
  std::string_view name;
};

Parts split(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

bool is_lock(const ZarrFile& file) {
  std::string_view folder = split(file.name).folder;
  if (file.size_bytes > 0) return false;
  while (!folder.empty() && !folder.ends_with(kLocksEnding)) folder = split(folder).folder;
  return !folder.empty();
}

// What a chunk of some array would be called.
bool is_like_chunk(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.back() != '.' &&
         name.find_first_not_of("0123456789.") == std::string_view::npos;
}

class Finder {
 public:
  Finder(const Location& location, size_t most_files)
      : location_(location), most_files_(most_files) {}

  Result<ZarrFiles> run() {
    SHW_RETURN_IF_ERROR(list());
    for (const ZarrFile& file : found_.files) SHW_RETURN_IF_ERROR(take_header(file));
    for (uint32_t i = 0; i < found_.files.size(); ++i) SHW_RETURN_IF_ERROR(take_file(i));
    for (auto& [key, array] : found_.arrays)
      std::ranges::sort(array.chunks, {}, &ZarrArray::Chunk::number);
    found_.digest = integrity::xxh3_128(std::as_bytes(std::span(seen_)));
    return std::move(found_);
  }

 private:
  Status list() {
    const std::string prefix = location_.prefix.empty() ? "" : location_.prefix + "/";
    return location_.storage->list(
        prefix, storage::kNoDelimiter, [&](const storage::ListEntry& entry) -> Status {
          if (entry.key.size() <= prefix.size() || entry.key.ends_with('/')) return {};
          if (listed_++ == most_files_)
            return resource_exhausted(
                "files", fmt::format("the checkpoint has more than {} files", most_files_));
          ZarrFile file{entry.key.substr(prefix.size()), entry.stat.size_bytes, entry.stat.version};
          seen_ += fmt::format("{}\n{}\n", file.name, file.size_bytes);
          if (!is_lock(file)) found_.files.push_back(std::move(file));
          return {};
        });
  }

  Status take_header(const ZarrFile& file) {
    const auto [folder, name] = split(file.name);
    if (name == kHeaderOfVersion3) {
      return unimplemented(
                 fmt::format("file '{}' is of version 3 of zarr, and 2 is read", shown(file.name)))
          .with_detail("file", file.name);
    }
    if (name != zarr::kHeaderName || folder.empty()) return {};
    auto bytes = storage::read_all(
        *location_.storage, storage::join_key(location_.prefix, file.name), zarr::kMaxHeaderBytes);
    if (bytes.status().code() == StatusCode::kResourceExhausted) {
      return data_loss(fmt::format("file '{}' has more than {} bytes, and says no array",
                                   shown(file.name), zarr::kMaxHeaderBytes))
          .with_detail("file", file.name);
    }
    SHW_RETURN_IF_ERROR(bytes.status());
    seen_.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    SHW_ASSIGN_OR_RETURN(zarr::ArrayHeader header, zarr::decode_header(*bytes, folder));
    found_.arrays[std::string(folder)].header = std::move(header);
    return {};
  }

  Status take_file(uint32_t number) {
    const ZarrFile& file = found_.files[number];
    const auto [folder, name] = split(file.name);
    const bool is_of_directory = file.name == kMarkerName || file.name == kCommonName;
    if (is_of_directory || std::ranges::find(kPassedOver, name) != kPassedOver.end() ||
        (name == zarr::kHeaderName && !folder.empty()))
      return {};
    SHW_ASSIGN_OR_RETURN(const std::optional<ObjectKey> object, object_of_file(file.name));
    if (object.has_value()) {
      found_.objects.push_back(number);
      return {};
    }
    auto array = found_.arrays.end();
    std::string_view key = folder;
    for (; array == found_.arrays.end() && !key.empty();) {
      array = found_.arrays.find(key);
      if (array == found_.arrays.end()) key = split(key).folder;
    }
    if (array != found_.arrays.end()) return take_chunk(number, array->first, &array->second);
    if (!folder.empty() && is_like_chunk(name)) return of_no_array(file);
    add_unknown(file);
    return {};
  }

  Status take_chunk(uint32_t number, const std::string& key, ZarrArray* array) {
    const ZarrFile& file = found_.files[number];
    const zarr::ChunkGrid grid(array->header);
    const auto index = grid.index_of(std::string_view(file.name).substr(key.size() + 1));
    if (!index.has_value()) {
      add_unknown(file);
      return {};
    }
    const auto damaged = [&](const std::string& what) {
      return data_loss(fmt::format("array '{}': file '{}' {}", shown(key), shown(file.name), what))
          .with_detail("tensor", key)
          .with_detail("file", file.name);
    };
    const std::optional<uint64_t> chunk = grid.number_of(*index);
    if (!chunk.has_value())
      return damaged(fmt::format("is no chunk of its shape [{}] in chunks of [{}]",
                                 fmt::join(array->header.shape, ","),
                                 fmt::join(array->header.chunks, ",")));
    if (file.size_bytes != grid.file_bytes()) {
      return damaged(
                 fmt::format("has {} bytes, a chunk has {}", file.size_bytes, grid.file_bytes()))
          .with_detail("expected", fmt::to_string(grid.file_bytes()))
          .with_detail("found", fmt::to_string(file.size_bytes));
    }
    array->chunks.push_back({*chunk, number});
    return {};
  }

  static Status of_no_array(const ZarrFile& file) {
    return data_loss(fmt::format("file '{}' is a chunk of an array, and its {} is not there",
                                 shown(file.name), zarr::kHeaderName))
        .with_detail("file", file.name)
        .with_detail("hint", "copy the directory again: names with a dot in front belong to it");
  }

  void add_unknown(const ZarrFile& file) {
    if (found_.unknown_count++ < kMaxUnknownNames) found_.unknown.push_back(file.name);
  }

  const Location& location_;
  const size_t most_files_;
  size_t listed_ = 0;
  ZarrFiles found_;
  std::string seen_;
};

}  // namespace

Result<ZarrFiles> find_zarr_files(const Location& location, size_t most_files) {
  return Finder(location, most_files).run();
}

}  // namespace shardwright::format::megatron
