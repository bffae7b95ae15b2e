// SPDX-License-Identifier: Apache-2.0
//
// Opening reads the index and every header once. Nothing of them is kept but what they say and a
// digest of each text, by which verification tells whether the files are still those that were
// opened. Immutable, any thread.
#include "core/format/safetensors/safetensors_checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/safetensors/contents_internal.h"
#include "core/format/safetensors/header.h"
#include "core/format/safetensors/header_reader_internal.h"
#include "core/format/safetensors/hf_index.h"
#include "core/format/safetensors/safetensors_saving.h"
#include "core/format/safetensors/stored_headers_internal.h"
#include "core/integrity/digest.h"

namespace shardwright::format::safetensors {
namespace {

using internal::Contents;
using internal::ContentsBuilder;
using internal::Parts;
using internal::SourceFile;
using internal::StoredIndex;

Digest128 digest_of(std::string_view text) {
  return integrity::xxh3_128(std::as_bytes(std::span(text)));
}

// Name of the one file that a location is, for messages and lists.
std::string own_name(const Location& location) {
  std::string path = shown_path(location);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

// Reads what is in front of the buffer. NOT_FOUND when the file is not there.
Result<SourceFile> read_source(const Location& location, FileInfo info) {
  SHW_ASSIGN_OR_RETURN(
      internal::StoredHeader header,
      internal::read_header(*location.storage, stored_key(location, info), info.key));
  SourceFile source;
  source.info = std::move(info);
  source.info.size_bytes = header.file_bytes;
  source.version = std::move(header.version);
  source.header = std::move(header.text);
  return source;
}

Result<std::string> read_index(const Location& location, const std::string& name) {
  SHW_ASSIGN_OR_RETURN(
      const std::unique_ptr<storage::StorageObject> object,
      location.storage->open(storage::join_key(location.prefix, name), storage::OpenOptions{}));
  SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, object->stat());
  if (stat.size_bytes > kMaxIndexBytes) {
    return data_loss(fmt::format("index '{}' has {} bytes, more than {}", escape_text(name),
                                 stat.size_bytes, kMaxIndexBytes))
        .with_detail("file", name)
        .with_detail("limit", fmt::to_string(kMaxIndexBytes));
  }
  SHW_ASSIGN_OR_RETURN(std::string text, internal::read_text(*object, 0, stat.size_bytes));
  SHW_RETURN_IF_ERROR(object->close());
  return text;
}

class SafetensorsCheckpoint final : public OpenedCheckpoint {
 public:
  SafetensorsCheckpoint(Location location, Contents contents, const StoredIndex& index,
                        bool is_directory)
      : location_(std::move(location)),
        contents_(std::move(contents)),
        is_directory_(is_directory),
        index_name_(index.name),
        index_digest_(digest_of(index.text)),
        identity_(to_hex(integrity::xxh3_128(identity_bytes()))) {}

  std::string_view format_name() const override {
    return is_directory_ ? kDirectoryFormat : kFileFormat;
  }
  std::string_view generation() const override { return ""; }
  std::string_view identity() const override { return identity_; }
  int32_t world_size() const override { return 1; }
  int64_t created_unix_ns() const override { return 0; }
  const std::map<std::string, std::string>& metadata() const override { return contents_.metadata; }
  const plan::Catalog& catalog() const override { return contents_.catalog; }
  const std::vector<FileInfo>& files() const override { return contents_.files; }
  const std::vector<std::string>& notes() const override { return contents_.notes; }
  uint32_t chunk_file(size_t chunk) const override { return contents_.chunk_files[chunk]; }
  uint32_t object_file(size_t object) const override { return contents_.object_files[object]; }
  Result<Extent> chunk_extent(size_t chunk) const override {
    return Extent{contents_.chunk_files[chunk], contents_.chunk_offsets[chunk],
                  catalog().chunk_bytes(chunk)};
  }
  Result<Extent> object_extent(size_t object) const override {
    return Extent{derived_file(), contents_.object_offsets[object],
                  catalog().objects[object].size_bytes};
  }
  Result<std::unique_ptr<storage::StorageObject>> open_derived() const override {
    return contents_.derived.open(
        [](uint32_t) -> Result<std::unique_ptr<storage::StorageObject>> {
          return internal_error("objects of safetensors are in memory");
        },
        shown_path(location_));
  }
  uint64_t digest_block_bytes() const override { return 0; }
  Status prepare_file(uint32_t file) const override;
  Status check_file(uint32_t file) const override;
  Status check_manifest() const override;
  Status check_chunk_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status check_object_block(size_t, uint64_t, std::span<const std::byte>) const override {
    return {};
  }
  Status explain_missing(uint32_t file) const override {
    return data_loss(fmt::format("file {} was there when the checkpoint was opened and is gone",
                                 escape_text(files()[file].key)))
        .with_detail("file", files()[file].key);
  }
  Result<std::vector<Extent>> padding(uint32_t) const override { return std::vector<Extent>(); }

 private:
  // Digest of the index, sizes of all files and digests of their headers.
  std::vector<std::byte> identity_bytes() const {
    std::vector<std::byte> bytes(index_digest_.begin(), index_digest_.end());
    for (size_t file = 0; file < files().size(); ++file) {
      const auto size = std::as_bytes(std::span(&files()[file].size_bytes, 1));
      bytes.insert(bytes.end(), size.begin(), size.end());
      const Digest128& header = contents_.identities[file].header;
      bytes.insert(bytes.end(), header.begin(), header.end());
    }
    return bytes;
  }
  Status replaced(std::string_view file) const {
    return aborted(fmt::format("file '{}' was replaced or changed since the checkpoint was opened; "
                               "open it again",
                               escape_text(file)))
        .with_detail("file", file);
  }

  Location location_;
  Contents contents_;
  bool is_directory_;
  std::string index_name_;  // "" = there is none
  Digest128 index_digest_;
  std::string identity_;
};

// A file that was put in place of the one whose header was read would give bytes of other tensors.
Status SafetensorsCheckpoint::prepare_file(uint32_t file) const {
  if (file >= files().size())
    return out_of_range(fmt::format("file {} of {}", file, files().size()));
  const Result<storage::ObjectStat> stat =
      location_.storage->stat(stored_key(location_, files()[file]));
  if (stat.status().code() == StatusCode::kNotFound) return explain_missing(file);
  SHW_RETURN_IF_ERROR(stat.status());
  const std::string& version = contents_.identities[file].version;
  const bool same = stat->size_bytes == files()[file].size_bytes &&
                    (version.empty() || stat->version.empty() || stat->version == version);
  return same ? Status() : replaced(files()[file].key);
}

Status SafetensorsCheckpoint::check_file(uint32_t file) const {
  if (file >= files().size())
    return out_of_range(fmt::format("file {} of {}", file, files().size()));
  const Result<SourceFile> source = read_source(location_, files()[file]);
  if (source.status().code() == StatusCode::kNotFound) return explain_missing(file);
  SHW_RETURN_IF_ERROR(source.status());
  const bool same = source->info.size_bytes == files()[file].size_bytes &&
                    digest_of(source->header) == contents_.identities[file].header;
  if (same) return {};
  return data_loss(fmt::format("file '{}' has another size or header than when it was opened",
                               escape_text(files()[file].key)))
      .with_detail("file", files()[file].key);
}

Status SafetensorsCheckpoint::check_manifest() const {
  if (index_name_.empty()) return {};
  const Result<std::string> text = read_index(location_, index_name_);
  if (text.status().code() == StatusCode::kNotFound) {
    return data_loss(fmt::format("index '{}' is gone", escape_text(index_name_)))
        .with_detail("file", index_name_);
  }
  SHW_RETURN_IF_ERROR(text.status());
  return digest_of(*text) == index_digest_ ? Status() : replaced(index_name_);
}

// Decodes an index when there is one.
Result<std::optional<HfIndex>> decoded(const StoredIndex& index) {
  if (index.name.empty()) return std::optional<HfIndex>();
  SHW_ASSIGN_OR_RETURN(HfIndex decoded, decode_index(index.text, index.name));
  return std::optional(std::move(decoded));
}

Result<std::shared_ptr<const OpenedCheckpoint>> opened_from(const Location& location,
                                                            ContentsBuilder builder,
                                                            const StoredIndex& index,
                                                            bool is_directory) {
  SHW_ASSIGN_OR_RETURN(Contents contents, std::move(builder).finish());
  return std::shared_ptr<const OpenedCheckpoint>(std::make_shared<const SafetensorsCheckpoint>(
      location, std::move(contents), index, is_directory));
}

Status lost_file(const StoredIndex& index, const std::string& file) {
  return data_loss(fmt::format("index '{}' names the file '{}', which is not there",
                               escape_text(index.name), escape_text(file)))
      .with_detail("file", file)
      .with_detail("hint", "copy or download the missing file into the directory");
}

// Adds the file and, where it is asked for, its text.
Status add_file(const Location& location, FileInfo info, const StoredIndex& index,
                ContentsBuilder* builder, std::vector<std::byte>* bytes) {
  const std::string key = info.key;
  Result<SourceFile> source = read_source(location, std::move(info));
  if (source.status().code() == StatusCode::kNotFound && !index.name.empty())
    return lost_file(index, key);
  SHW_RETURN_IF_ERROR(source.status());
  if (bytes != nullptr) internal::append_file(*source, bytes);
  return builder->add_file(std::move(*source));
}

// The names that lie directly in the directory and end so.
std::vector<std::string> names_with(std::span<const std::string> names, std::string_view suffix) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name.ends_with(suffix) && name.find('/') == std::string::npos) found.push_back(name);
  }
  std::ranges::sort(found);
  return found;
}

// Name of the index that counts, "" when there is none.
Result<std::string> choose_index(const Location& location, std::span<const std::string> names) {
  const std::vector<std::string> found = names_with(names, kIndexSuffix);
  if (found.empty()) return std::string();
  if (found.size() == 1) return found.front();
  if (std::ranges::find(found, kIndexName) != found.end()) return std::string(kIndexName);
  return invalid_argument(fmt::format("'{}' has {} indexes of safetensors files, among them '{}' "
                                      "and '{}', and none is called {}",
                                      escape_text(shown_path(location)), found.size(),
                                      escape_text(found[0], 64), escape_text(found[1], 64),
                                      kIndexName))
      .with_detail("file", found[1])
      .with_detail("hint", "put one of the models into a directory of its own");
}

}  // namespace

bool is_safetensors_file(std::span<const std::byte> head, uint64_t file_bytes,
                         std::string_view name) {
  const auto character = [&head](size_t i) { return static_cast<char>(head[i]); };
  if (head.size() > kLengthBytes && character(kLengthBytes) == '{') return true;
  if (!name.ends_with(kFileSuffix)) return false;
  if (head.size() <= kLengthBytes) return true;
  // Blanks in front of the header, or nothing that another format would begin with.
  uint64_t length = 0;
  std::memcpy(&length, head.data(), sizeof(length));
  const bool blank =
      std::string_view(" \t\r\n").find(character(kLengthBytes)) != std::string_view::npos;
  return blank || length <= file_bytes - kLengthBytes;
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_file(const Location& location,
                                                          std::vector<std::byte>* bytes) {
  FileInfo info;
  info.key = own_name(location);
  info.is_location = true;
  ContentsBuilder builder(nullptr, "", Parts::kWhole);
  if (bytes != nullptr) internal::append_index({}, false, bytes);
  SHW_RETURN_IF_ERROR(add_file(location, std::move(info), {}, &builder, bytes));
  return opened_from(location, std::move(builder), {}, false);
}

namespace {

Status only_uncommitted(const Location& location) {
  const std::string where = shown_path(location);
  return not_found(fmt::format("there is no checkpoint at '{}': it holds safetensors files of a "
                               "save that was not committed, and no {}",
                               escape_text(where), kIndexName))
      .with_detail("file", where)
      .with_detail("hint", "a first save is running or was killed here; save again");
}

}  // namespace

Result<std::shared_ptr<const OpenedCheckpoint>> open_directory(const Location& location,
                                                               std::span<const std::string> names,
                                                               std::vector<std::byte>* bytes) {
  StoredIndex index;
  SHW_ASSIGN_OR_RETURN(index.name, choose_index(location, names));
  if (!index.name.empty()) {
    SHW_ASSIGN_OR_RETURN(index.text, read_index(location, index.name));
  }
  SHW_ASSIGN_OR_RETURN(const std::optional<HfIndex> decoded_index, decoded(index));
  std::vector<std::string> files;
  if (decoded_index.has_value()) {
    files = decoded_index->files;
  } else {
    files = names_with(names, kFileSuffix);
    std::erase_if(files, [](const std::string& file) { return !generation_of(file).empty(); });
    if (files.empty()) return only_uncommitted(location);
  }
  ContentsBuilder builder(decoded_index.has_value() ? &*decoded_index : nullptr, index.name,
                          Parts::kOfTensors);
  if (bytes != nullptr) internal::append_index(index, true, bytes);
  for (const std::string& file : files) {
    FileInfo info;
    info.key = file;
    SHW_RETURN_IF_ERROR(add_file(location, std::move(info), index, &builder, bytes));
  }
  return opened_from(location, std::move(builder), index, true);
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes) {
  internal::StoredHeaders stored(bytes);
  bool is_directory = false;
  SHW_ASSIGN_OR_RETURN(const StoredIndex index, stored.take_index(&is_directory));
  SHW_ASSIGN_OR_RETURN(const std::optional<HfIndex> decoded_index, decoded(index));
  ContentsBuilder builder(decoded_index.has_value() ? &*decoded_index : nullptr, index.name,
                          is_directory ? Parts::kOfTensors : Parts::kWhole);
  for (size_t file = 0; !stored.ended(); ++file) {
    SHW_ASSIGN_OR_RETURN(SourceFile source, stored.take_file());
    source.info.is_location = !is_directory;
    const bool wanted =
        decoded_index.has_value()
            ? file < decoded_index->files.size() && decoded_index->files[file] == source.info.key
            : file == 0 || is_directory;
    if (!wanted) return data_loss("another rank read other safetensors files than it names");
    SHW_RETURN_IF_ERROR(builder.add_file(std::move(source)));
  }
  return opened_from(location, std::move(builder), index, is_directory);
}

}  // namespace shardwright::format::safetensors
