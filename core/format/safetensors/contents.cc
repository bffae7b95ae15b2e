// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/json_events.h"
#include "core/format/safetensors/contents_internal.h"
#include "core/format/safetensors/object_text.h"
#include "core/integrity/digest.h"

namespace shardwright::format::safetensors::internal {
namespace {

constexpr size_t kMaxNotes = 16;

}  // namespace

void ContentsBuilder::add_note(std::string note) {
  if (!note.empty() && contents_.notes.size() < kMaxNotes)
    contents_.notes.push_back(std::move(note));
}

Status ContentsBuilder::add_file(SourceFile source) {
  const auto file = static_cast<uint32_t>(headers_.size());
  const uint64_t begin = kLengthBytes + source.header.size();
  if (source.info.size_bytes < begin) return damaged_file(source.info.key, "it ends in its header");
  SHW_ASSIGN_OR_RETURN(
      Header header, decode_header(source.header, source.info.size_bytes - begin, source.info.key));
  contents_.identities.push_back(
      {std::move(source.version), integrity::xxh3_128(std::as_bytes(std::span(source.header)))});
  source.header = std::string();
  const auto sharding = header.metadata.find(std::string(kShardingKey));
  const bool is_sharded = parts_ == Parts::kOfTensors && sharding != header.metadata.end();
  shardings_.emplace_back();
  if (is_sharded) {
    SHW_ASSIGN_OR_RETURN(shardings_.back(), decode_sharding(sharding->second, source.info.key));
    header.metadata.erase(sharding);  // the chunks say it
  }
  is_sharded_.push_back(is_sharded);
  SHW_RETURN_IF_ERROR(add_objects({source.info.key, file}, &header));
  add_note(std::exchange(header.note, {}));
  const std::vector<HeaderTensor> tensors = std::exchange(header.tensors, {});
  headers_.push_back(std::move(header));
  contents_.files.push_back(std::move(source.info));
  buffer_begins_.push_back(begin);
  for (const HeaderTensor& tensor : tensors) {
    if (!is_elsewhere(headers_.back().name(tensor), file)) items_.push_back({file, tensor, kNone});
  }
  return {};
}

Status ContentsBuilder::add_objects(const ObjectSource& from, Header* header) {
  std::unordered_set<std::string_view> tensors;
  auto at = header->metadata.lower_bound(std::string(kObjectPrefix));
  while (at != header->metadata.end() && at->first.starts_with(kObjectPrefix)) {
    if (tensors.empty()) {
      for (const HeaderTensor& tensor : header->tensors) tensors.insert(header->name(tensor));
    }
    const std::string_view name = std::string_view(at->first).substr(kObjectPrefix.size());
    const Status added = tensors.contains(name) ? invalid_argument("is a tensor, too")
                                                : add_object(from, name, at->second);
    if (added.code() == StatusCode::kInvalidArgument) {
      return damaged_file(from.key, fmt::format("the object '{}' in its metadata {}", shown(name),
                                                added.message()))
          .with_detail("object", name);
    }
    SHW_RETURN_IF_ERROR(added);
    at = header->metadata.erase(at);
  }
  return {};
}

// INVALID_ARGUMENT for what no object may be.
Status ContentsBuilder::add_object(const ObjectSource& from, std::string_view name,
                                   std::string_view text) {
  const Digest128 digest = integrity::xxh3_128(std::as_bytes(std::span(text)));
  const auto [seen, is_first] = objects_.try_emplace(std::string(name), digest);
  if (!is_first)
    return seen->second == digest ? Status() : invalid_argument("is another one in another file");
  SHW_ASSIGN_OR_RETURN(const ObjectOfText object, read_object_text(text, name, from.key));
  plan::ObjectRecord record;
  record.size_bytes = object.bytes.size();
  SHW_RETURN_IF_ERROR(plan::CatalogBuilder(&contents_.catalog, kMaxDescribedObjectBytes)
                          .add_object(record, name, "", object.content_type));
  contents_.object_files.push_back(from.file);
  contents_.object_offsets.push_back(contents_.derived.add_bytes(object.bytes));
  return {};
}

// Tensors of one file against objects of another.
Status ContentsBuilder::check_object_names() const {
  if (objects_.empty()) return {};
  for (const uint32_t first : firsts_) {
    const std::string_view name = name_of(items_[first]);
    if (!objects_.contains(name)) continue;
    const std::string& file = contents_.files[items_[first].file].key;
    return damaged_file(file, fmt::format("its tensor '{}' is an object in the metadata of another",
                                          shown(name)))
        .with_detail("tensor", name);
  }
  return {};
}

// Whether the index says that another file has the tensor; notes what it does not know.
bool ContentsBuilder::is_elsewhere(std::string_view name, uint32_t file) {
  if (index_ == nullptr) return false;
  const auto listed = index_->file_of.find(name);
  if (listed == index_->file_of.end()) {
    if (unlisted_++ == 0) first_unlisted_ = std::string(name);
    return false;
  }
  if (listed->second == file) {
    ++found_;
    return false;
  }
  add_note(fmt::format(
      "file '{}' holds tensor '{}' too, which the index names in '{}': that one "
      "is read",
      shown(contents_.files[file].key), shown(name), shown(index_->files[listed->second])));
  return true;
}

Status ContentsBuilder::find_listed() const {
  if (index_ == nullptr || found_ == index_->file_of.size()) return {};
  if (headers_.size() != index_->files.size())
    return data_loss(fmt::format("index '{}' names {} files, {} were read", shown(index_name_),
                                 index_->files.size(), headers_.size()));
  std::vector<ByName<bool>> there(headers_.size());
  for (const Item& item : items_) there[item.file].try_emplace(std::string(name_of(item)), true);
  const std::string* lost = nullptr;  // the first by name, so that equal files give equal errors
  uint32_t where = 0;
  for (const auto& [name, file] : index_->file_of) {
    if (there[file].contains(name) || (lost != nullptr && *lost < name)) continue;
    lost = &name;
    where = file;
  }
  if (lost == nullptr) return {};
  return data_loss(fmt::format("index '{}' names tensor '{}' in file '{}', whose header does not "
                               "have it",
                               shown(index_name_), shown(*lost), shown(index_->files[where])))
      .with_detail("file", index_->files[where])
      .with_detail("tensor", *lost)
      .with_detail("hint", "index and files are of different models: copy both again");
}

Status ContentsBuilder::same_name_twice(const Item& first, const Item& second) const {
  const std::string_view name = name_of(first);
  return data_loss(fmt::format("tensor '{}' is in the files '{}' and '{}', and no index says which "
                               "one counts",
                               shown(name), shown(contents_.files[first.file].key),
                               shown(contents_.files[second.file].key)))
      .with_detail("file", contents_.files[second.file].key)
      .with_detail("tensor", name)
      .with_detail("hint", "open the file that you want instead of its directory");
}

// Parts of the same tensor become neighbours of its first one.
Status ContentsBuilder::join_parts() {
  struct Chain {
    uint32_t first = 0;
    uint32_t last = 0;
  };
  std::unordered_map<std::string_view, Chain> chains;
  chains.reserve(items_.size());
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const auto [chain, added] = chains.try_emplace(name_of(items_[i]), Chain{i, i});
    if (added) {
      firsts_.push_back(i);
      continue;
    }
    const Item& first = items_[chain->second.first];
    if (!is_sharded_[first.file] || !is_sharded_[items_[i].file])
      return same_name_twice(first, items_[i]);
    items_[chain->second.last].next = i;
    chain->second.last = i;
  }
  return {};
}

// Where the part of the file lies in its tensor.
Result<Box> ContentsBuilder::box_of(const Item& item) const {
  Box box = whole_box(headers_[item.file].shape(item.tensor));
  if (!is_sharded_[item.file]) return box;
  const std::string& file = contents_.files[item.file].key;
  const std::string_view name = name_of(item);
  const auto fault = [&](std::string_view what) {
    return data_loss(fmt::format("file '{}': {} of tensor '{}' {}", shown(file), kShardingKey,
                                 shown(name), what))
        .with_detail("file", file)
        .with_detail("tensor", name);
  };
  const auto offsets = shardings_[item.file].find(name);
  if (offsets == shardings_[item.file].end()) return fault("is missing");
  if (offsets->second.size() != box.sizes.size()) {
    return fault(fmt::format("has {} offsets, its shape {} dimensions", offsets->second.size(),
                             box.sizes.size()));
  }
  box.offsets = offsets->second;
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    int64_t end = 0;
    if (!checked_add(box.offsets[d], box.sizes[d], &end))
      return fault("ends beyond what can be counted");
  }
  return box;
}

// Appends a tensor with all its parts, ascending by box. Empty ones say no more than the shape.
Status ContentsBuilder::add_tensor(uint32_t first) {
  struct Part {
    Box box;
    uint32_t item = 0;
  };
  std::vector<Part> parts;
  Dims shape(headers_[items_[first].file].shape(items_[first].tensor).size(), 0);
  for (uint32_t i = first; i != kNone; i = items_[i].next) {
    const Item& item = items_[i];
    SHW_ASSIGN_OR_RETURN(Box box, box_of(item));
    if (item.tensor.dtype != items_[first].tensor.dtype || box.sizes.size() != shape.size()) {
      return data_loss(fmt::format("tensor '{}' has another dtype or rank in file '{}' than in "
                                   "'{}'",
                                   shown(name_of(item)), shown(contents_.files[item.file].key),
                                   shown(contents_.files[items_[first].file].key)))
          .with_detail("file", contents_.files[item.file].key)
          .with_detail("tensor", name_of(item));
    }
    for (size_t d = 0; d < shape.size(); ++d)
      shape[d] = std::max(shape[d], box.offsets[d] + box.sizes[d]);
    parts.push_back({std::move(box), i});
  }
  std::erase_if(parts, [](const Part& part) { return box_is_empty(part.box); });
  std::ranges::sort(parts, {}, [](const Part& part) { return std::tie(part.box, part.item); });
  std::vector<plan::CatalogBuilder::Chunk> chunks;
  for (Part& part : parts) {
    const Item& item = items_[part.item];
    contents_.chunk_files.push_back(item.file);
    contents_.chunk_offsets.push_back(buffer_begins_[item.file] + item.tensor.begin);
    chunks.push_back({std::move(part.box), 0});
  }
  plan::CatalogBuilder::Tensor tensor;
  tensor.name = name_of(items_[first]);
  tensor.dtype = items_[first].tensor.dtype;
  tensor.kind = chunks.size() > 1 ? EntryKind::kSharded : EntryKind::kReplicated;
  tensor.shape = shape.span();
  const Status added = plan::CatalogBuilder(&contents_.catalog).add_tensor(tensor, chunks);
  if (added.ok()) return {};
  return not_together(first, added);
}

// Files that are sound one by one and make no tensor together.
Status ContentsBuilder::not_together(uint32_t first, const Status& why) const {
  const std::string& file = contents_.files[items_[first].file].key;
  const std::string_view name = name_of(items_[first]);
  return data_loss(fmt::format("the parts of tensor '{}' in file '{}' and others do not make a "
                               "whole tensor: {}",
                               shown(name), shown(file), why.message()))
      .with_detail("file", file)
      .with_detail("tensor", name)
      .with_detail("hint", "a file is missing or is of another save");
}

Status ContentsBuilder::prove() {
  for (size_t tensor = 0; tensor < firsts_.size(); ++tensor) {
    const Status covered = plan::prove_cover(contents_.catalog, tensor);
    if (!covered.ok()) return not_together(firsts_[tensor], covered);
  }
  plan::find_grids(&contents_.catalog);
  return plan::check_catalog(contents_.catalog);
}

// A key that files fill differently says which file it is of.
void ContentsBuilder::merge_metadata() {
  std::map<std::string, bool> differs;
  std::map<std::string, std::string> values;
  for (const Header& header : headers_) {
    for (const auto& [key, value] : header.metadata) {
      const auto [known, added] = values.try_emplace(key, value);
      differs[key] |= !added && known->second != value;
    }
  }
  for (size_t file = 0; file < headers_.size(); ++file) {
    for (auto& [key, value] : headers_[file].metadata) {
      const std::string name =
          differs[key] ? fmt::format("{}@{}", key, contents_.files[file].key) : key;
      contents_.metadata.insert_or_assign(name, value);
    }
  }
  if (index_ == nullptr) return;
  for (const auto& [key, value] : index_->metadata) contents_.metadata.try_emplace(key, value);
}

void ContentsBuilder::compare_with_index() {
  if (index_ == nullptr) return;
  if (unlisted_ > 0) {
    add_note(fmt::format("{} that index '{}' does not name {} in its files, the first is '{}'",
                         unlisted_ == 1 ? "1 tensor" : fmt::format("{} tensors", unlisted_),
                         shown(index_name_), unlisted_ == 1 ? "is" : "are",
                         shown(first_unlisted_)));
  }
  const uint64_t bytes = contents_.catalog.payload_bytes();
  if (index_->total_size.has_value() && *index_->total_size != bytes) {
    add_note(fmt::format("index '{}' says that its tensors have {} bytes, they have {}",
                         shown(index_name_), *index_->total_size, bytes));
  }
}

Result<Contents> ContentsBuilder::finish() && {
  SHW_RETURN_IF_ERROR(find_listed());
  SHW_RETURN_IF_ERROR(join_parts());
  for (const uint32_t first : firsts_) SHW_RETURN_IF_ERROR(add_tensor(first));
  SHW_RETURN_IF_ERROR(check_object_names());
  SHW_RETURN_IF_ERROR(prove());
  merge_metadata();
  compare_with_index();
  return std::move(contents_);
}

}  // namespace shardwright::format::safetensors::internal
