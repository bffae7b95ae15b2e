// SPDX-License-Identifier: Apache-2.0
//
// Writes the merged catalog: per group the distinct boxes of all members in row-major order of
// their offsets, and for each the members that hold exactly this box. Scratch columns are reused
// from group to group, so the work per item is a copy and, when ranks do not come in box order, its
// part of one sort.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

// A listed box in the merged tensor's split dimensions.
struct Candidate {
  ExtentPair first;
  ExtentPair second;
  uint64_t more = 0;  // index of its further pairs in the scratch column
  Holder holder;
};

class Deduplication {
 public:
  explicit Deduplication(std::span<const LocalSavePlan> locals) : locals_(locals) {}

  Result<Deduplicated> run(const MergedEntries& merged) {
    reserve(merged);
    out_.chunk_holder_begins.push_back(0);
    for (size_t g = 0; g < merged.tensors.size(); ++g)
      SHW_RETURN_IF_ERROR(add_tensor(merged.tensors.of(g)));
    out_.object_holder_begins.push_back(0);
    for (size_t g = 0; g < merged.objects.size(); ++g) add_object(merged.objects.of(g));
    return std::move(out_);
  }

 private:
  void reserve(const MergedEntries& merged) {
    size_t chunks = 0;
    size_t most = 0;
    for (const LocalSavePlan& local : locals_) {
      chunks += local.catalog.chunks.size();
      most = std::max(most, local.catalog.chunks.size());
    }
    out_.catalog.texts.reserve(2 * merged.tensors.size() + 3 * merged.objects.size(),
                               locals_[0].catalog.texts.blob().size());
    out_.catalog.tensors.reserve(merged.tensors.size());
    out_.catalog.objects.reserve(merged.objects.size());
    out_.catalog.chunks.reserve(most);
    out_.chunk_holder_begins.reserve(most + 1);
    out_.chunk_holders.reserve(chunks);
    out_.object_holders.reserve(merged.objects.members.size());
  }

  Status add_tensor(std::span<const Member> members) {
    Catalog& catalog = out_.catalog;
    const Catalog& source = locals_[members[0].rank].catalog;
    const TensorRecord& from = source.tensors[members[0].entry];
    const std::span<const int64_t> shape = source.shape(members[0].entry);
    TensorRecord record;
    record.name = catalog.texts.append(source.texts.at(from.name));
    record.path = catalog.texts.append(source.texts.at(from.path));
    record.dtype = from.dtype;
    record.kind = from.kind;
    record.rank = from.rank;
    record.shape_begin = catalog.shapes.size();
    record.dimension_count = from.dimension_count;
    record.chunk_begin = catalog.chunks.size();
    record.more_begin = catalog.more.size();
    for (const Member& member : members) {
      record.split_mask |= locals_[member.rank].catalog.tensors[member.entry].split_mask;
    }
    catalog.shapes.insert(catalog.shapes.end(), shape.begin(), shape.end());
    split_ = split_dims(shape, record.split_mask);
    gather(members);
    sort_candidates();
    SHW_RETURN_IF_ERROR(emit_distinct(source.texts.at(from.name)));
    record.chunk_count = catalog.chunks.size() - record.chunk_begin;
    catalog.tensors.push_back(record);
    return {};
  }

  void gather(std::span<const Member> members) {
    candidates_.clear();
    more_.clear();
    for (const Member& member : members) {
      const Catalog& catalog = locals_[member.rank].catalog;
      const TensorRecord& tensor = catalog.tensors[member.entry];
      for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
        Candidate candidate;
        candidate.holder = {member.rank, member.entry, catalog.chunks[c].place};
        candidate.more = more_.size();
        uint32_t own = 0;  // split dimensions of the member passed so far
        for (uint32_t k = 0; k < split_.count; ++k) {
          const bool is_own = (tensor.split_mask >> split_.dims[k] & 1) != 0;
          const ExtentPair pair =
              is_own ? chunk_pair(catalog, tensor, c, own++) : ExtentPair{0, split_.extents[k]};
          if (k == 0) {
            candidate.first = pair;
          } else if (k == 1) {
            candidate.second = pair;
          } else {
            more_.push_back(pair);
          }
        }
        candidates_.push_back(candidate);
      }
    }
  }

  // Row-major by offsets, then by sizes.
  std::strong_ordering compare_boxes(const Candidate& a, const Candidate& b) const {
    if (auto order = a.first.offset <=> b.first.offset; order != 0) return order;
    if (auto order = a.second.offset <=> b.second.offset; order != 0) return order;
    const uint64_t further = more_per_chunk(split_.count);
    for (uint64_t k = 0; k < further; ++k) {
      if (auto order = more_[a.more + k].offset <=> more_[b.more + k].offset; order != 0)
        return order;
    }
    if (auto order = a.first.size <=> b.first.size; order != 0) return order;
    if (auto order = a.second.size <=> b.second.size; order != 0) return order;
    for (uint64_t k = 0; k < further; ++k) {
      if (auto order = more_[a.more + k].size <=> more_[b.more + k].size; order != 0) return order;
    }
    return std::strong_ordering::equal;
  }

  void sort_candidates() {
    const auto before = [this](const Candidate& a, const Candidate& b) {
      if (auto order = compare_boxes(a, b); order != 0) return order < 0;
      if (a.holder.rank != b.holder.rank) return a.holder.rank < b.holder.rank;
      return a.holder.piece < b.holder.piece;
    };
    if (!std::is_sorted(candidates_.begin(), candidates_.end(), before)) {
      std::sort(candidates_.begin(), candidates_.end(), before);
    }
  }

  Status emit_distinct(std::string_view name) {
    Catalog& catalog = out_.catalog;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (i == 0 || compare_boxes(candidates_[i - 1], candidate) != 0) {
        if (i != 0) out_.chunk_holder_begins.push_back(out_.chunk_holders.size());
        ChunkRecord record;
        record.tensor = static_cast<uint32_t>(catalog.tensors.size());
        record.offset0 = candidate.first.offset;
        record.size0 = candidate.first.size;
        record.offset1 = candidate.second.offset;
        record.size1 = candidate.second.size;
        catalog.chunks.push_back(record);
        const auto further = more_.begin() + static_cast<std::ptrdiff_t>(candidate.more);
        catalog.more.insert(catalog.more.end(), further,
                            further + static_cast<std::ptrdiff_t>(more_per_chunk(split_.count)));
      } else if (candidates_[i - 1].holder.rank == candidate.holder.rank) {
        return listed_twice(name, candidate.holder);
      }
      out_.chunk_holders.push_back(candidate.holder);
    }
    if (!candidates_.empty()) out_.chunk_holder_begins.push_back(out_.chunk_holders.size());
    return {};
  }

  Status listed_twice(std::string_view name, const Holder& holder) const {
    const Catalog& catalog = locals_[holder.rank].catalog;
    uint64_t chunk = catalog.tensors[holder.entry].chunk_begin;
    while (catalog.chunks[chunk].place != holder.piece) ++chunk;
    const std::string box = box_text(catalog.chunk_box(chunk));
    return invalid_argument(
               fmt::format("tensor '{}': rank {} lists box {} twice, so it overlaps itself",
                           escape_text(name), holder.rank, box))
        .with_detail("tensor", name)
        .with_detail("rank", std::to_string(holder.rank))
        .with_detail("box", box);
  }

  void add_object(std::span<const Member> members) {
    Catalog& catalog = out_.catalog;
    const Catalog& source = locals_[members[0].rank].catalog;
    ObjectRecord record = source.objects[members[0].entry];
    record.name = catalog.texts.append(source.texts.at(record.name));
    record.path = catalog.texts.append(source.texts.at(record.path));
    const std::string_view type = source.texts.at(record.content_type);
    const bool same_type =
        !catalog.objects.empty() && catalog.texts.at(catalog.objects.back().content_type) == type;
    record.content_type =
        same_type ? catalog.objects.back().content_type : catalog.texts.append(type);
    catalog.objects.push_back(record);
    for (const Member& member : members) {
      out_.object_holders.push_back({member.rank, member.entry, kObjectPiece});
    }
    out_.object_holder_begins.push_back(out_.object_holders.size());
  }

  std::span<const LocalSavePlan> locals_;
  Deduplicated out_;
  SplitDims split_;
  std::vector<Candidate> candidates_;
  std::vector<ExtentPair> more_;
};

}  // namespace

Result<Deduplicated> deduplicate(std::span<const LocalSavePlan> locals,
                                 const MergedEntries& merged) {
  return Deduplication(locals).run(merged);
}

}  // namespace shardwright::plan::internal
