// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/torch_dcp/contents_internal.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/layout/box.h"

namespace shardwright::format::torch_dcp::internal {
namespace {

constexpr size_t kMaxNotes = 16;

// r of a file HINT__r_k.distcp, -1 for other names.
int32_t rank_of(std::string_view key) {
  std::string_view name = key.substr(key.rfind('/') + 1);
  name.remove_prefix(hint_of(name).size());
  int32_t rank = -1;
  if (!name.starts_with("__")) return -1;
  const auto parsed = std::from_chars(name.data() + 2, name.data() + name.size(), rank);
  const bool is_rank = parsed.ec == std::errc() && parsed.ptr < name.data() + name.size() &&
                       *parsed.ptr == '_' && rank >= 0 && rank < kMaxWorldSize;
  return is_rank ? rank : -1;
}

class ContentsBuilder {
 public:
  ContentsBuilder(DcpIndex index, const Opened& opened)
      : index_(std::move(index)), opened_(opened) {}

  Result<Contents> build() {
    contents_.notes = std::move(index_.notes);
    SHW_RETURN_IF_ERROR(add_files());
    for (const DcpIndex::Tensor& tensor : index_.tensors) {
      const Status added = add_tensor(tensor);
      if (!added.ok()) return not_whole(tensor.name, added);
    }
    SHW_RETURN_IF_ERROR(add_objects());
    for (size_t tensor = 0; tensor < contents_.catalog.tensors.size(); ++tensor) {
      const Status covered = plan::prove_cover(contents_.catalog, tensor);
      if (!covered.ok()) return not_whole(contents_.catalog.tensor_name(tensor), covered);
    }
    plan::find_grids(&contents_.catalog);
    SHW_RETURN_IF_ERROR(plan::check_catalog(contents_.catalog));
    contents_.metadata = std::move(index_.facts);
    contents_.transforms = std::move(index_.transforms);
    if (contents_.notes.size() > kMaxNotes) contents_.notes.resize(kMaxNotes);
    return std::move(contents_);
  }

 private:
  std::string_view index_key() const { return opened_.indexes.front().key; }

  Status not_whole(std::string_view name, const Status& why) const {
    return data_loss(fmt::format("file '{}': tensor '{}': {}", escape_text(index_key()),
                                 escape_text(name), why.message()))
        .with_detail("file", index_key())
        .with_detail("tensor", name);
  }

  Status add_files() {
    if (opened_.file_bytes.size() != index_.files.size())
      return data_loss("another rank saw other files than the index names");
    size_t missing = 0;
    for (size_t i = 0; i < index_.files.size(); ++i) {
      FileInfo file;
      file.key = index_.files[i];
      file.rank = rank_of(file.key);
      const bool is_there = opened_.file_bytes[i] != Opened::kMissing;
      file.size_bytes = is_there ? opened_.file_bytes[i] : 0;
      contents_.world_size = std::max(contents_.world_size, file.rank + 1);
      if (!is_there && missing++ == 0)
        contents_.notes.push_back(
            fmt::format("file '{}' of the index is not there", escape_text(file.key)));
      contents_.files.push_back(std::move(file));
    }
    return {};
  }

  Status add_tensor(const DcpIndex::Tensor& tensor) {
    chunks_.clear();
    for (uint64_t i = 0; i < tensor.chunk_count; ++i) {
      const auto sizes = index_.sizes(tensor, i);
      if (std::ranges::find(sizes, 0) != sizes.end()) continue;  // says no more than the shape
      const ItemPlace& place = index_.places[tensor.chunk_begin + i];
      plan::CatalogBuilder::Chunk chunk;
      chunk.box.offsets = Dims(index_.offsets(tensor, i));
      chunk.box.sizes = Dims(sizes);
      if (place.file == ItemPlace::kNowhere)
        return data_loss(
            fmt::format("the index has no place of its chunk {}", box_text(chunk.box)));
      const int32_t rank = contents_.files[place.file].rank;
      chunk.place = static_cast<uint32_t>(std::max(rank, 0));
      chunks_.push_back(std::move(chunk));
      contents_.chunks.push_back(place);
      contents_.numbers.push_back(tensor.chunk_begin + i);
    }
    plan::CatalogBuilder::Tensor added;
    added.name = tensor.name;
    added.path = tensor.path;
    added.dtype = tensor.dtype;
    added.kind = chunks_.size() > 1 ? EntryKind::kSharded : EntryKind::kReplicated;
    if (tensor.rank >= 0) added.kind = EntryKind::kRankLocal;
    added.rank = tensor.rank;
    added.shape = tensor.shape;
    return plan::CatalogBuilder(&contents_.catalog).add_tensor(added, chunks_);
  }

  Status add_objects() {
    if (opened_.objects.size() != index_.objects.size())
      return data_loss("another rank saw other objects than the index names");
    plan::CatalogBuilder builder(&contents_.catalog, kMaxDescribedObjectBytes);
    for (size_t i = 0; i < index_.objects.size(); ++i) {
      const DcpIndex::Object& object = index_.objects[i];
      const ByteObject& read = opened_.objects[i];
      if (object.place.file == ItemPlace::kNowhere)
        return not_whole(object.name, data_loss("the index has no place of it"));
      plan::ObjectRecord record;
      if (object.rank >= 0) record.kind = EntryKind::kRankLocal;
      record.rank = object.rank;
      record.size_bytes = read.is_stored ? object.place.size_bytes : read.bytes.size();
      SHW_RETURN_IF_ERROR(builder.add_object(record, object.name, object.path, read.content_type));
      contents_.objects.push_back(object.place);
    }
    return {};
  }

  DcpIndex index_;
  const Opened& opened_;
  Contents contents_;
  std::vector<plan::CatalogBuilder::Chunk> chunks_;
};

}  // namespace

Result<DcpIndex> index_of(const Opened& opened) {
  std::vector<DcpIndex> indexes;
  for (const Opened::IndexFile& file : opened.indexes) {
    SHW_ASSIGN_OR_RETURN(DcpIndex index, decode_index(file.bytes, file.key));
    indexes.push_back(std::move(index));
  }
  if (indexes.empty()) return data_loss("there is no index of torch.distributed.checkpoint");
  if (indexes.size() == 1) name_rank_local(&indexes[0]);
  return merge_indexes(std::move(indexes));
}

Result<Contents> contents_of(DcpIndex index, const Opened& opened) {
  return ContentsBuilder(std::move(index), opened).build();
}

}  // namespace shardwright::format::torch_dcp::internal
