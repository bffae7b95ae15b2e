// SPDX-License-Identifier: Apache-2.0
//
// Names, the coordinator's half, and the half of each rank.
#include "core/format/safetensors/safetensors_saving.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/generation_id.h"
#include "core/base/text.h"
#include "core/format/other_formats.h"
#include "core/format/safetensors/file_plan.h"
#include "core/format/safetensors/header.h"
#include "core/format/safetensors/header_reader_internal.h"
#include "core/format/safetensors/hf_index.h"
#include "core/format/safetensors/object_text.h"
#include "core/format/safetensors/placement_internal.h"
#include "core/format/safetensors/safetensors_checkpoint.h"
#include "core/format/safetensors/safetensors_format.h"

namespace shardwright::format::safetensors {
namespace {

// What loaders look for before the index: a lone file, and the indexes of other formats.
constexpr std::string_view kReadBefore[] = {"model.safetensors", "manifest.shw", ".metadata",
                                            "__*.metadata"};
constexpr std::string_view kFileBeginning = "model-";
// Of all objects that are no text: two thirds of a header as base64.
constexpr uint64_t kMaxStoredObjectBytes = kMaxHeaderBytes / 2;

// Of any object of a directory that this writer names, "" for others.
std::string_view generation_in(std::string_view name) {
  if (!name.starts_with(kFileBeginning)) return {};
  const std::string_view generation = name.substr(kFileBeginning.size(), kGenerationDigits);
  const size_t end = kFileBeginning.size() + generation.size();
  return is_generation_id(generation) && name.substr(end, 1) == "-" ? generation
                                                                    : std::string_view();
}

bool is_one_file(const Location& location) {
  return location.prefix.ends_with(kFileSuffix);
}

std::string index_key(const Location& location) {
  return storage::join_key(location.prefix, kIndexName);
}

// What the keys of all files of a generation begin with.
std::string beginning_of(const Location& location, std::string_view generation) {
  if (is_one_file(location)) return fmt::format("{}.{}", location.prefix, generation);
  return storage::join_key(location.prefix, fmt::format("{}{}-", kFileBeginning, generation));
}

Result<std::vector<std::string>> keys_of(const Location& location, std::string_view beginning) {
  std::vector<std::string> keys;
  SHW_RETURN_IF_ERROR(location.storage->list(beginning, storage::kNoDelimiter,
                                             [&](const storage::ListEntry& entry) {
                                               if (!entry.key.ends_with('/'))
                                                 keys.push_back(entry.key);
                                               return Status();
                                             }));
  return keys;
}

// Objects become metadata, which is all that the format has room for: text as it is, in each file,
// bytes as text, in the first.
class ObjectsAsMetadata {
 public:
  ObjectsAsMetadata(const State& state, FileMetadata* metadata)
      : state_(state), metadata_(metadata) {}

  Status add(const plan::Catalog& catalog, const plan::ObjectRecord& record) {
    const std::string name(catalog.texts.at(record.name));
    const std::optional<size_t> index = state_.find_object(name);
    if (record.rank > 0 || !index.has_value()) {
      return refuse(
          unimplemented(because(
              name,
              "the format keeps objects in its metadata, which rank 0 writes; rank 0 has none "
              "of this name")),
          name);
    }
    const ObjectEntry& entry = state_.objects()[*index];
    if (!is_text(name, entry)) return add_bytes(name, entry);
    const std::string_view text(reinterpret_cast<const char*>(entry.bytes.data()),
                                entry.bytes.size());
    if (metadata_->of_all.emplace(name, text).second) return {};
    return refuse(unimplemented(because(name, "the metadata has another value of this name")),
                  name);
  }

 private:
  static std::string because(std::string_view name, std::string_view why) {
    return fmt::format("object '{}' cannot be saved as safetensors: {}", escape_text(name), why);
  }
  static Status refuse(Status status, std::string_view name) {
    return std::move(status).with_detail("object", name).with_detail("format", kFormatName);
  }
  // A name that reads as that of bytes is one.
  static bool is_text(std::string_view name, const ObjectEntry& entry) {
    const std::string_view text(reinterpret_cast<const char*>(entry.bytes.data()),
                                entry.bytes.size());
    return (entry.content_type == "application/json" || entry.content_type.starts_with("text/")) &&
           is_valid_utf8(text) && !name.starts_with(kObjectPrefix);
  }

  Status add_bytes(const std::string& name, const ObjectEntry& entry) {
    if (entry.bytes.size() > kMaxStoredObjectBytes - bytes_) {
      return refuse(resource_exhausted(
                        "object_bytes",
                        because(name, fmt::format("its {} bytes make more than {} of all objects "
                                                  "that are no text, which stand in a header",
                                                  entry.bytes.size(), kMaxStoredObjectBytes))),
                    name)
          .with_detail("limit", fmt::to_string(kMaxStoredObjectBytes));
    }
    bytes_ += entry.bytes.size();
    metadata_->of_first.emplace(fmt::format("{}{}", kObjectPrefix, name),
                                object_text(entry.content_type, entry.bytes));
    return {};
  }

  const State& state_;
  FileMetadata* metadata_;
  uint64_t bytes_ = 0;
};

// What reads as the key of an object must be one.
Status check_metadata(const std::map<std::string, std::string>& metadata) {
  const auto taken = metadata.lower_bound(std::string(kObjectPrefix));
  if (taken == metadata.end() || !taken->first.starts_with(kObjectPrefix)) return {};
  return invalid_argument(fmt::format("the metadata has '{}': keys that begin with '{}' are those "
                                      "of objects in safetensors files",
                                      escape_text(taken->first, 200), kObjectPrefix))
      .with_detail("parameter", "metadata");
}

class SafetensorsGeneration final : public GenerationWriter {
 public:
  SafetensorsGeneration(const Location& location, const plan::Catalog& catalog,
                        SaveSettings settings, std::vector<PlannedFile> files, StoredParts replaced)
      : location_(location),
        catalog_(catalog),
        settings_(std::move(settings)),
        files_(std::move(files)),
        replaced_(std::move(replaced)) {}

  Result<uint64_t> planned_bytes() const override { return file_bytes(); }
  Status make(std::string_view generation, Existing existing) override;
  const StoredParts& parts() const override { return parts_; }
  // Where a rank's bytes belong stands in the header, and the files have their size before any of
  // them is written, so what a rank reports says nothing that could be compared.
  Status check_written(const plan::WriteResult&) const override { return {}; }
  Status encode(std::span<const plan::WriteResult> results, int64_t created_unix_ns) override;
  Result<std::unique_ptr<storage::StorageObject>> open_commit() override;
  uint64_t file_count() const override { return files_.size(); }
  uint64_t file_bytes() const override {
    uint64_t bytes = 0;
    for (const PlannedFile& file : files_) bytes += file.size_bytes();
    return bytes;
  }
  std::vector<StoredParts> replaced_parts() const override {
    return replaced_.keys.empty() ? std::vector<StoredParts>()
                                  : std::vector<StoredParts>{replaced_};
  }

 private:
  storage::OpenOptions open_options(storage::OpenMode mode, uint64_t bytes) const;
  Status make_file(const PlannedFile& file, const std::string& key);
  // Ranks open the one file by its temporary name, which not every storage gives to it.
  Status check_seen(const std::string& key) const;
  // Whether the file is there as make_file makes it, whatever of its tensors was written.
  Result<bool> has_file(const PlannedFile& file, const std::string& key) const;

  const Location location_;
  const plan::Catalog& catalog_;
  const SaveSettings settings_;
  const std::vector<PlannedFile> files_;
  const StoredParts replaced_;
  StoredParts parts_;
  std::unique_ptr<storage::StorageObject> one_file_;  // until the commit, where there is one
  std::string index_;
};

storage::OpenOptions SafetensorsGeneration::open_options(storage::OpenMode mode,
                                                         uint64_t bytes) const {
  storage::OpenOptions options;
  options.mode = mode;
  options.file_mode = settings_.file_mode;
  options.durable = settings_.durable;
  options.expected_bytes = bytes;
  options.temporary_suffix = parts_.generation;
  return options;
}

Status SafetensorsGeneration::make(std::string_view generation, Existing existing) {
  parts_ = {std::string(generation), "", {}};
  if (is_one_file(location_)) {
    parts_.keys.push_back(beginning_of(location_, generation));
    if (existing == Existing::kGoOn)  // nothing says how much of it is there
      SHW_RETURN_IF_ERROR(location_.storage->remove(parts_.keys.front()));
    SHW_RETURN_IF_ERROR(make_file(files_.front(), location_.prefix));
    return check_seen(parts_.keys.front());
  }
  if (existing == Existing::kGoOn)
    SHW_RETURN_IF_ERROR(
        storage::remove_in_flight(*location_.storage, index_key(location_), generation));
  for (size_t f = 0; f < files_.size(); ++f) {
    std::string key = fmt::format("{}{:05}-of-{:05}{}", beginning_of(location_, generation), f + 1,
                                  files_.size(), kFileSuffix);
    parts_.keys.push_back(key);
    if (existing == Existing::kGoOn) {
      SHW_ASSIGN_OR_RETURN(const bool is_there, has_file(files_[f], key));
      if (is_there) continue;
      SHW_RETURN_IF_ERROR(location_.storage->remove(key));
    }
    const Status made = make_file(files_[f], key);
    if (made.code() == StatusCode::kAlreadyExists) parts_.keys.clear();  // they are another one's
    SHW_RETURN_IF_ERROR(made);
  }
  // The names of all files, before an index can name them.
  bool supported = false;
  return settings_.durable ? location_.storage->sync_prefix(location_.prefix, &supported)
                           : Status();
}

Status SafetensorsGeneration::check_seen(const std::string& key) const {
  const Status seen = location_.storage->stat(key).status();
  if (seen.code() != StatusCode::kNotFound) return seen;
  return failed_precondition(
             fmt::format("storage '{}' has no name for a file before its commit, by which ranks "
                         "could write into '{}'; save into a directory, or in the native format",
                         escape_text(location_.storage->name()), escape_text(location_.prefix)))
      .with_detail("file", location_.prefix);
}

Result<bool> SafetensorsGeneration::has_file(const PlannedFile& file,
                                             const std::string& key) const {
  const Result<std::unique_ptr<storage::StorageObject>> object =
      location_.storage->open(key, storage::OpenOptions{});
  if (object.status().code() == StatusCode::kNotFound) return false;
  SHW_RETURN_IF_ERROR(object.status());
  SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, (*object)->stat());
  if (stat.size_bytes != file.size_bytes()) return false;
  std::string head(file.head.size(), '\0');
  SHW_RETURN_IF_ERROR((*object)->read_at(0, std::as_writable_bytes(std::span(head))));
  return head == file.head;
}

// The last byte makes it as long as it will be; the rank that has it writes it again.
Status SafetensorsGeneration::make_file(const PlannedFile& file, const std::string& key) {
  const bool one_file = is_one_file(location_);
  const auto mode = one_file ? storage::OpenMode::kCreate : storage::OpenMode::kCreateVisible;
  SHW_ASSIGN_OR_RETURN(std::unique_ptr<storage::StorageObject> object,
                       location_.storage->open(key, open_options(mode, file.size_bytes())));
  SHW_RETURN_IF_ERROR(object->write_at(0, std::as_bytes(std::span(file.head))));
  const std::byte zero{0};
  if (file.buffer_bytes > 0)
    SHW_RETURN_IF_ERROR(object->write_at(file.size_bytes() - 1, std::span(&zero, 1)));
  if (settings_.durable) SHW_RETURN_IF_ERROR(object->sync());
  if (one_file) {
    one_file_ = std::move(object);
    return {};
  }
  return object->close();
}

// Files that all have their size, and an index that reads as it was meant.
Status SafetensorsGeneration::encode(std::span<const plan::WriteResult>, int64_t) {
  if (is_one_file(location_)) return {};
  std::vector<std::string> names;
  for (size_t f = 0; f < files_.size(); ++f) {
    const std::string& key = parts_.keys[f];
    SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, location_.storage->stat(key));
    if (stat.size_bytes != files_[f].size_bytes()) {
      return data_loss(fmt::format("{} has {} bytes, {} were planned", escape_text(key),
                                   stat.size_bytes, files_[f].size_bytes()))
          .with_detail("file", key);
    }
    names.push_back(key.substr(location_.prefix.empty() ? 0 : location_.prefix.size() + 1));
  }
  index_ = encode_index(catalog_, files_, names);
  SHW_ASSIGN_OR_RETURN(const HfIndex again, decode_index(index_, kIndexName));
  if (again.file_of.size() == catalog_.tensors.size()) return {};
  return internal_error("the new index decodes to something else");
}

Result<std::unique_ptr<storage::StorageObject>> SafetensorsGeneration::open_commit() {
  if (!is_one_file(location_)) {
    return storage::write_uncommitted(*location_.storage, index_key(location_),
                                      std::as_bytes(std::span(index_)),
                                      open_options(storage::OpenMode::kCreate, index_.size()));
  }
  std::unique_ptr<storage::StorageObject> object = std::move(one_file_);
  if (settings_.durable) SHW_RETURN_IF_ERROR(object->sync());
  return object;
}

// The items that a rank writes, by the names of their tensors, until their places are found.
class RankPlacement {
 public:
  RankPlacement(const Location& location, const RankContents& contents)
      : location_(location), contents_(contents) {
    const std::vector<plan::WriteItem>& items = contents.list.items;
    for (uint32_t i = 0; i < items.size(); ++i) {
      if (items[i].piece == plan::kObjectPiece || items[i].size_bytes == 0) continue;
      items_of_[contents.state.tensors()[items[i].entry].name].push_back(i);
    }
  }

  Result<std::vector<FileLayout>> run() {
    if (items_of_.empty()) return std::move(layouts_);
    SHW_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                         keys_of(location_, beginning_of(location_, contents_.list.generation)));
    for (const std::string& key : keys) {
      if (is_one_file(location_) || key.ends_with(kFileSuffix)) SHW_RETURN_IF_ERROR(place_in(key));
    }
    if (items_of_.empty()) return std::move(layouts_);
    const std::string_view name = items_of_.begin()->first;
    return data_loss(fmt::format("tensor '{}' is in none of the {} files that the coordinator made "
                                 "at '{}': the path must be on storage that all ranks share",
                                 escape_text(name), keys.size(),
                                 escape_text(shown_path(location_))))
        .with_detail("tensor", name)
        .with_detail("hint", "save to a path on a file system that all ranks mount");
  }

 private:
  Status place_in(const std::string& key);
  Status place_items(const Header& header, const HeaderTensor& tensor, uint64_t buffer_begin,
                     FileLayout* layout);

  const Location& location_;
  const RankContents& contents_;
  std::unordered_map<std::string_view, std::vector<uint32_t>> items_of_;
  std::vector<FileLayout> layouts_;
};

Status RankPlacement::place_in(const std::string& key) {
  SHW_ASSIGN_OR_RETURN(const internal::StoredHeader stored,
                       internal::read_header(*location_.storage, key, key));
  const uint64_t buffer_begin = kLengthBytes + stored.text.size();
  SHW_ASSIGN_OR_RETURN(const Header header,
                       decode_header(stored.text, stored.file_bytes - buffer_begin, key));
  FileLayout layout;
  layout.key = key;
  layout.is_own = false;
  for (const HeaderTensor& tensor : header.tensors)
    SHW_RETURN_IF_ERROR(place_items(header, tensor, buffer_begin, &layout));
  if (layout.items.empty()) return {};
  std::ranges::sort(layout.items, {}, &PlacedItem::position);
  layouts_.push_back(std::move(layout));
  return {};
}

Status RankPlacement::place_items(const Header& header, const HeaderTensor& tensor,
                                  uint64_t buffer_begin, FileLayout* layout) {
  const auto found = items_of_.find(header.name(tensor));
  if (found == items_of_.end()) return {};
  for (const uint32_t number : found->second) {
    const plan::WriteItem& item = contents_.list.items[number];
    const TensorRef entry = contents_.state.tensors()[item.entry];
    if (entry.local.dtype != tensor.dtype ||
        !std::ranges::equal(entry.global_shape, header.shape(tensor))) {
      return data_loss(fmt::format("{} has tensor '{}' with another dtype or shape than this rank",
                                   escape_text(layout->key), escape_text(entry.name)))
          .with_detail("tensor", entry.name);
    }
    internal::BoxPlace place =
        internal::place_box(entry.pieces[item.piece].box, entry.global_shape, tensor.dtype);
    PlacedItem placed;
    placed.item = number;
    placed.position = buffer_begin + tensor.begin + place.offset;
    placed.size_bytes = item.size_bytes;
    if (!place.scatter.loops.empty()) {
      placed.scatter = static_cast<uint32_t>(layout->scatters.size());
      layout->scatters.push_back(std::move(place.scatter));
    }
    layout->data_bytes = std::max(layout->data_bytes, buffer_begin + tensor.end);
    layout->items.push_back(placed);
  }
  items_of_.erase(found);
  return {};
}

class SafetensorsWriter final : public FormatWriter {
 public:
  std::string_view name() const override { return kFormatName; }
  bool keeps_digests() const override { return false; }
  bool plans_object_bytes() const override { return true; }
  std::string commit_key(const Location& location) const override {
    return is_one_file(location) ? location.prefix : index_key(location);
  }
  std::string journal_key(const Location& location, std::string_view generation) const override {
    return is_one_file(location) ? "" : beginning_of(location, generation) + "journal";
  }
  // What gc removes beside one file is what no save can still write: it asks for the age.
  std::string fence_key(const Location& location) const override {
    return is_one_file(location) ? "" : storage::join_key(location.prefix, kLockName);
  }
  Result<CurrentCheckpoint> read_current(const Location& location) const override;
  Result<std::vector<GenerationInfo>> list_generations(const Location& location) const override;
  Result<std::unique_ptr<GenerationWriter>> begin(const Location& location,
                                                  const plan::GlobalSavePlan& plan,
                                                  const State& state, SaveSettings settings,
                                                  const CurrentCheckpoint& replaced) const override;
  Result<std::vector<FileLayout>> lay_out(const Location& location,
                                          const RankContents& contents) const override {
    return RankPlacement(location, contents).run();
  }
  Result<std::vector<std::byte>> encode_tail(const RankContents&, const FileLayout&, uint64_t,
                                             std::span<const Digest128>,
                                             plan::WriteResult*) const override {
    return internal_error("files of safetensors are nobody's own");
  }

 private:
  static Status check_place(const Location& location, const SaveSettings& settings);
};

// A directory's generation is that of all files which its index names.
Result<CurrentCheckpoint> SafetensorsWriter::read_current(const Location& location) const {
  const std::string key = commit_key(location);
  const Result<storage::ObjectStat> stat = location.storage->stat(key);
  if (stat.status().code() == StatusCode::kNotFound) return CurrentCheckpoint{};
  SHW_RETURN_IF_ERROR(stat.status());
  CurrentCheckpoint current;
  current.exists = true;
  current.version = stat->version;
  if (is_one_file(location)) return current;
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                       storage::read_all(*location.storage, key, kMaxIndexBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Result<HfIndex> index = decode_index(text, key);
  current.damaged = !index.ok();
  if (!index.ok() || index->files.empty()) return current;
  const std::string_view generation = generation_of(index->files.front());
  const bool is_of_all = std::ranges::all_of(index->files, [generation](const std::string& file) {
    return generation_of(file) == generation;
  });
  if (is_of_all) current.generation = generation;
  return current;
}

Result<std::vector<GenerationInfo>> SafetensorsWriter::list_generations(
    const Location& location) const {
  SHW_ASSIGN_OR_RETURN(const CurrentCheckpoint current, read_current(location));
  SHW_RETURN_IF_ERROR(check_names_generation(current, index_key(location)));
  GenerationList found(current);
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  const std::string temporary = commit_key(location) + ".";
  SHW_RETURN_IF_ERROR(
      location.storage->list(is_one_file(location) ? temporary : prefix, storage::kNoDelimiter,
                             [&](const storage::ListEntry& entry) {
                               const std::string_view key = entry.key;
                               std::string_view generation;
                               if (key.starts_with(temporary)) {
                                 generation = key.substr(temporary.size());
                               } else if (!is_one_file(location)) {
                                 generation = generation_in(key.substr(prefix.size()));
                               }
                               if (!is_generation_id(generation)) return Status();
                               found.add(generation, entry);
                               return Status();
                             }));
  return found.take();
}

// What would be at the place besides, and what the storage can do.
Status SafetensorsWriter::check_place(const Location& location, const SaveSettings& settings) {
  SHW_RETURN_IF_ERROR(check_keeps_none(settings, "an index of safetensors"));
  SHW_RETURN_IF_ERROR(storage::need_capability(
      *location.storage, storage::kPositionalWrite,
      "ranks write their parts of safetensors files at positions; save in the native format"));
  if (is_one_file(location)) return {};
  return refuse_beside(location, kReadBefore);
}

Result<std::unique_ptr<GenerationWriter>> SafetensorsWriter::begin(
    const Location& location, const plan::GlobalSavePlan& plan, const State& state,
    SaveSettings settings, const CurrentCheckpoint& replaced) const {
  SHW_RETURN_IF_ERROR(check_place(location, settings));
  SHW_RETURN_IF_ERROR(check_metadata(settings.metadata));
  FileMetadata metadata{settings.metadata, {}};
  metadata.of_all.try_emplace("format", "pt");  // loaders of torch ask for it
  ObjectsAsMetadata objects(state, &metadata);
  for (const plan::ObjectRecord& record : plan.catalog.objects)
    SHW_RETURN_IF_ERROR(objects.add(plan.catalog, record));
  uint64_t max_file_bytes =
      settings.max_shard_bytes == 0 ? kDefaultShardBytes : settings.max_shard_bytes;
  if (is_one_file(location)) max_file_bytes = UINT64_MAX;
  SHW_ASSIGN_OR_RETURN(std::vector<PlannedFile> files,
                       plan_files(plan.catalog, metadata, max_file_bytes));
  StoredParts old{replaced.generation, "", {}};
  if (!is_one_file(location) && !replaced.generation.empty()) {
    SHW_ASSIGN_OR_RETURN(old.keys, keys_of(location, beginning_of(location, replaced.generation)));
  }
  return std::unique_ptr<GenerationWriter>(std::make_unique<SafetensorsGeneration>(
      location, plan.catalog, std::move(settings), std::move(files), std::move(old)));
}

}  // namespace

const FormatWriter& safetensors_writer() {
  static const SafetensorsWriter kWriter;
  return kWriter;
}

std::string_view generation_of(std::string_view file_name) {
  return file_name.ends_with(kFileSuffix) ? generation_in(file_name) : std::string_view();
}

}  // namespace shardwright::format::safetensors
