// SPDX-License-Identifier: Apache-2.0
//
// Indexes of ranks that saved by themselves, as one: the names of all, each with the chunks of all.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/torch_dcp/dcp_index.h"

namespace shardwright::format::torch_dcp {
namespace {

class Merger {
 public:
  explicit Merger(std::vector<DcpIndex> ranks) : ranks_(std::move(ranks)) {}

  Result<DcpIndex> merge() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      SHW_RETURN_IF_ERROR(take_names(rank));
      take_rest(rank);
    }
    for (const Parts& parts : tensors_) add_tensor(parts);
    return std::move(merged_);
  }

 private:
  // A tensor by the indexes that have it.
  struct Parts {
    std::vector<std::pair<size_t, size_t>> of;  // rank, number there
  };

  Status take_names(size_t rank) {
    const DcpIndex& index = ranks_[rank];
    file_shift_.push_back(static_cast<uint32_t>(merged_.files.size()));
    transform_shift_.push_back(static_cast<uint32_t>(merged_.transforms.size()));
    for (size_t i = 0; i < index.tensors.size(); ++i) {
      const DcpIndex::Tensor& tensor = index.tensors[i];
      const auto [known, added] = names_.try_emplace(tensor.name, tensors_.size());
      if (added) tensors_.emplace_back();
      if (known->second == kObject) return differs(tensor.name, rank);
      Parts& parts = tensors_[known->second];
      if (!parts.of.empty()) {
        const DcpIndex::Tensor& first = ranks_[parts.of[0].first].tensors[parts.of[0].second];
        if (first.dtype != tensor.dtype || first.shape != tensor.shape)
          return differs(tensor.name, rank);
      }
      parts.of.emplace_back(rank, i);
    }
    for (const DcpIndex::Object& object : index.objects) {
      const auto [known, added] = names_.try_emplace(object.name, kObject);
      if (known->second != kObject) return differs(object.name, rank);
      if (!added) continue;
      merged_.objects.push_back(object);
      merged_.objects.back().place = shifted(rank, object.place);
    }
    return {};
  }

  Status differs(const std::string& name, size_t rank) const {
    return data_loss(fmt::format("rank {} has '{}' with another dtype, shape or kind than a rank "
                                 "before it",
                                 rank, escape_text(name)))
        .with_detail("tensor", name)
        .with_detail("file", fmt::format("__{}.metadata", rank));
  }

  void take_rest(size_t rank) {
    DcpIndex& index = ranks_[rank];
    for (std::string& file : index.files) merged_.files.push_back(std::move(file));
    for (std::string& each : index.transforms) merged_.transforms.push_back(std::move(each));
    for (const auto& [key, value] : index.facts) merged_.facts.try_emplace(key, value);
    for (std::string& note : index.notes) merged_.notes.push_back(std::move(note));
  }

  ItemPlace shifted(size_t rank, ItemPlace place) const {
    if (place.file != ItemPlace::kNowhere) place.file += file_shift_[rank];
    if (place.transform != 0) place.transform += transform_shift_[rank];
    return place;
  }

  void add_tensor(const Parts& parts) {
    struct Chunk {
      std::span<const int64_t> extents;
      ItemPlace place;
    };
    std::vector<Chunk> chunks;
    for (const auto& [rank, number] : parts.of) {
      const DcpIndex& index = ranks_[rank];
      const DcpIndex::Tensor& tensor = index.tensors[number];
      const size_t step = tensor.shape.size() * 2;
      for (uint64_t i = 0; i < tensor.chunk_count; ++i) {
        const auto extents = std::span(index.extents).subspan(tensor.extent_begin + i * step, step);
        chunks.push_back({extents, shifted(rank, index.places[tensor.chunk_begin + i])});
      }
    }
    // Copies of a chunk become neighbours, that of the lowest rank first.
    std::ranges::stable_sort(chunks, [](const Chunk& a, const Chunk& b) {
      return std::ranges::lexicographical_compare(a.extents, b.extents);
    });
    const auto copies = std::ranges::unique(chunks, [](const Chunk& a, const Chunk& b) {
      return std::ranges::equal(a.extents, b.extents);
    });
    chunks.erase(copies.begin(), copies.end());
    DcpIndex::Tensor merged = ranks_[parts.of[0].first].tensors[parts.of[0].second];
    merged.chunk_begin = merged_.places.size();
    merged.extent_begin = merged_.extents.size();
    merged.chunk_count = chunks.size();
    for (const Chunk& chunk : chunks) {
      merged_.extents.insert(merged_.extents.end(), chunk.extents.begin(), chunk.extents.end());
      merged_.places.push_back(chunk.place);
    }
    merged_.tensors.push_back(std::move(merged));
  }

  static constexpr size_t kObject = SIZE_MAX;

  std::vector<DcpIndex> ranks_;
  DcpIndex merged_;
  std::unordered_map<std::string, size_t> names_;
  std::vector<Parts> tensors_;
  std::vector<uint32_t> file_shift_;
  std::vector<uint32_t> transform_shift_;
};

}  // namespace

Result<DcpIndex> merge_indexes(std::vector<DcpIndex> ranks) {
  if (ranks.size() == 1) return std::move(ranks[0]);
  return Merger(std::move(ranks)).merge();
}

}  // namespace shardwright::format::torch_dcp
