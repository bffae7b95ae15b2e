// SPDX-License-Identifier: Apache-2.0
//
// Writes the merged catalog: per group the distinct boxes of all members in row-major order of
// their offsets, and for each the members that hold it. Scratch columns are reused from group to
// group. Tensors of a model are mostly cut alike, so the order that sorted the boxes of one group is
// tried on the next before sorting: the work per item is a copy and two comparisons. What this
// enumerates, symbolic plans have in closed form where a tensor is a grid of shards
// (core/plan/symbolic/shard_grid_internal.h) and with a plain sort where it is not (listed_tensor.cc);
// SymbolicPlan.RandomJobsEqualTheExplicitPlan holds all of them equal.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/base/huge_pages.h"
#include "core/base/text.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/conflicts_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr size_t kAhead = 16;  // members whose boxes are asked for before they are needed

// A listed box in the merged tensor's split dimensions.
struct Candidate {
  ExtentPair first;
  ExtentPair second;
  uint64_t more = 0;  // index of its further pairs in the scratch column
  UnitHolder holder;
};

// The columns of a rank that are read once per item: they lie close to those of the next rank.
struct Source {
  const TensorRecord* tensors = nullptr;
  const ChunkRecord* chunks = nullptr;
};

// Offsets in the first two split dimensions.
struct Key {
  int64_t first = 0;
  int64_t second = 0;
  uint32_t candidate = 0;
};

class Deduplication {
 public:
  Deduplication(std::span<const LocalView> locals, const MergePolicy& policy)
      : locals_(locals), policy_(policy) {
    sources_.reserve(locals.size());
    for (const LocalView& local : locals)
      sources_.push_back({local.catalog.tensors.data(), local.catalog.boxes.data()});
  }

  Result<Deduplicated> run(MergedEntries* merged) {
    SHW_RETURN_IF_ERROR(reserve(*merged));
    out_.holder_begins.push_back(0);
    for (size_t g = 0; g < merged->tensors.size(); ++g)
      SHW_RETURN_IF_ERROR(add_tensor(merged->tensors.of(g)));
    for (size_t g = 0; g < merged->objects.size(); ++g) add_object(merged->objects.of(g));
    return std::move(out_);
  }

 private:
  Status reserve(const MergedEntries& merged) {
    size_t items = 0;
    for (const LocalView& local : locals_) items += local.item_count();
    if (items >= std::numeric_limits<uint32_t>::max()) {
      return resource_exhausted("items", fmt::format("{} boxes of all ranks are too many", items));
    }
    out_.catalog.texts.reserve(2 * merged.tensors.size() + 3 * merged.objects.size(),
                               locals_[0].catalog.texts.blob().size());
    out_.catalog.tensors.reserve(merged.tensors.size());
    out_.catalog.objects.reserve(merged.objects.size());
    // Room for the case that nothing is held twice; what is not used stays untouched.
    reserve_large(&out_.catalog.boxes, items);
    reserve_large(&out_.holder_begins, items + 1);
    reserve_large(&out_.holders, items);
    return {};
  }

  Status add_tensor(std::span<const Member> members) {
    Catalog& catalog = out_.catalog;
    const CatalogView& source = locals_[members[0].rank].catalog;
    const TensorRecord& from = source.tensors[members[0].entry];
    const std::span<const int64_t> shape = source.shape(members[0].entry);
    TensorRecord record;
    record.name = catalog.texts.append(source.texts.at(from.name));
    record.path = catalog.texts.append(source.texts.at(from.path));
    record.dtype = from.dtype;
    record.kind = from.kind;
    record.rank = owner_of(from.kind, members[0]);
    record.shape_begin = catalog.shapes.size();
    record.dimension_count = from.dimension_count;
    record.chunk_begin = record.box_begin = catalog.boxes.size();
    record.more_begin = catalog.more.size();
    for (const Member& member : members) record.split_mask |= tensor_of(member).split_mask;
    catalog.shapes.insert(catalog.shapes.end(), shape.begin(), shape.end());
    split_ = split_dims(shape, record.split_mask);
    uneven_ = false;
    if (record.split_mask != 0 || !emit_replicas(members)) {
      gather(members, record.split_mask);
      sort_candidates();
      SHW_RETURN_IF_ERROR(emit_distinct(source.texts.at(from.name)));
    }
    record.chunk_count = catalog.boxes.size() - record.chunk_begin;
    catalog.tensors.push_back(record);
    out_.uneven.push_back(uneven_);
    return {};
  }

  // Of a rank_local group, whose only member may not have known its rank when it was described.
  static int32_t owner_of(EntryKind kind, const Member& first) {
    return kind == EntryKind::kRankLocal ? static_cast<int32_t>(first.rank) : -1;
  }

  void gather(std::span<const Member> members, uint64_t mask) {
    candidates_.clear();
    more_.clear();
    for (size_t m = 0; m < members.size(); ++m) {
      if (m + kAhead < members.size()) prefetch(members[m + kAhead]);
      const uint32_t rank = members[m].rank;
      const TensorRecord& tensor = tensor_of(members[m]);
      for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
        const ChunkRecord& chunk = sources_[rank].chunks[c];
        Candidate candidate;
        candidate.holder = {rank, static_cast<uint32_t>(c)};
        candidate.more = more_.size();
        if (tensor.split_mask == mask) {
          candidate.first = {chunk.offset0, chunk.size0};
          candidate.second = {chunk.offset1, chunk.size1};
          for (uint32_t k = 2; k < split_.count; ++k)
            more_.push_back(chunk_pair(locals_[rank].catalog, tensor, c, k));
        } else {
          widen(locals_[rank].catalog, tensor, c, &candidate);
        }
        if (policy_.keep_empty || !is_empty(candidate)) {
          candidates_.push_back(candidate);
        } else {
          more_.resize(candidate.more);
        }
      }
    }
  }

  const TensorRecord& tensor_of(const Member& member) const {
    return sources_[member.rank].tensors[member.entry];
  }

  void prefetch(const Member& member) const {
    const TensorRecord& tensor = tensor_of(member);
    if (tensor.chunk_count == 0) return;
    const ChunkRecord* chunk = sources_[member.rank].chunks + tensor.chunk_begin;
    __builtin_prefetch(chunk);
    __builtin_prefetch(&chunk->number);  // where the record goes on in the next line
  }

  // Of a member that is split in fewer dimensions than the group.
  void widen(const CatalogView& catalog, const TensorRecord& tensor, uint64_t chunk,
             Candidate* candidate) {
    uint32_t own = 0;  // split dimensions of the member passed so far
    for (uint32_t k = 0; k < split_.count; ++k) {
      const bool is_own = (tensor.split_mask >> split_.dims[k] & 1) != 0;
      const ExtentPair pair =
          is_own ? chunk_pair(catalog, tensor, chunk, own++) : ExtentPair{0, split_.extents[k]};
      if (k == 0) {
        candidate->first = pair;
      } else if (k == 1) {
        candidate->second = pair;
      } else {
        more_.push_back(pair);
      }
    }
  }

  bool is_empty(const Candidate& candidate) const {
    if (split_.unsplit_elements == 0 || (split_.count > 0 && candidate.first.size == 0) ||
        (split_.count > 1 && candidate.second.size == 0)) {
      return true;
    }
    for (uint64_t k = 0; k < more_per_chunk(split_.count); ++k) {
      if (more_[candidate.more + k].size == 0) return true;
    }
    return false;
  }

  std::strong_ordering compare_offsets(const Candidate& a, const Candidate& b) const {
    if (auto order = a.first.offset <=> b.first.offset; order != 0) return order;
    if (auto order = a.second.offset <=> b.second.offset; order != 0) return order;
    for (uint64_t k = 0; k < more_per_chunk(split_.count); ++k) {
      if (auto order = more_[a.more + k].offset <=> more_[b.more + k].offset; order != 0)
        return order;
    }
    return std::strong_ordering::equal;
  }

  std::strong_ordering compare_sizes(const Candidate& a, const Candidate& b) const {
    if (auto order = a.first.size <=> b.first.size; order != 0) return order;
    if (auto order = a.second.size <=> b.second.size; order != 0) return order;
    for (uint64_t k = 0; k < more_per_chunk(split_.count); ++k) {
      if (auto order = more_[a.more + k].size <=> more_[b.more + k].size; order != 0) return order;
    }
    return std::strong_ordering::equal;
  }

  // Row-major by offsets, then by sizes where they count, then by holder.
  bool before(const Candidate& a, const Candidate& b) const {
    if (auto order = compare_offsets(a, b); order != 0) return order < 0;
    if (policy_.key_has_sizes) {
      if (auto order = compare_sizes(a, b); order != 0) return order < 0;
    }
    if (a.holder.rank != b.holder.rank) return a.holder.rank < b.holder.rank;
    return a.holder.item < b.holder.item;
  }

  void sort_candidates() {
    const auto ordered = [this](const Candidate& a, const Candidate& b) { return before(a, b); };
    if (std::ranges::is_sorted(candidates_, ordered)) return;
    if (permutation_.size() == candidates_.size() && permute_as_before()) return;
    // What decides nearly all comparisons lies in the keys themselves.
    keys_.resize(candidates_.size());
    for (uint32_t i = 0; i < keys_.size(); ++i)
      keys_[i] = {candidates_[i].first.offset, candidates_[i].second.offset, i};
    std::ranges::sort(keys_, [this](const Key& a, const Key& b) {
      if (a.first != b.first) return a.first < b.first;
      if (a.second != b.second) return a.second < b.second;
      return before(candidates_[a.candidate], candidates_[b.candidate]);
    });
    permutation_.resize(candidates_.size());
    for (size_t i = 0; i < keys_.size(); ++i) permutation_[i] = keys_[i].candidate;
    permute();
  }

  void permute() {
    sorted_.clear();
    sorted_.reserve(candidates_.size());
    for (const uint32_t from : permutation_) sorted_.push_back(candidates_[from]);
    candidates_.swap(sorted_);
  }

  // True when the order of the last group that was sorted fits; else nothing has changed.
  bool permute_as_before() {
    permute();
    const auto ordered = [this](const Candidate& a, const Candidate& b) { return before(a, b); };
    if (std::ranges::is_sorted(candidates_, ordered)) return true;
    candidates_.swap(sorted_);
    return false;
  }

  // Of a tensor that nobody cuts: one unit. False, and nothing done, when that is not all there is
  // to it.
  bool emit_replicas(std::span<const Member> members) {
    if (is_empty(Candidate()) && !policy_.keep_empty) return false;
    for (const Member& member : members) {
      if (tensor_of(member).chunk_count != 1) return false;
    }
    more_.clear();
    begin_chunk(Candidate());
    for (const Member& member : members) {
      out_.holders.push_back({member.rank, static_cast<uint32_t>(tensor_of(member).chunk_begin)});
    }
    out_.holder_begins.back() = out_.holders.size();
    return true;
  }

  Status emit_distinct(std::string_view name) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      const bool same_begin = i != 0 && compare_offsets(candidates_[i - 1], candidate) == 0;
      if (!same_begin) {
        begin_chunk(candidate);
      } else if (policy_.key_has_sizes && compare_sizes(candidates_[i - 1], candidate) != 0) {
        if (!is_empty(candidates_[i - 1]) && !is_empty(candidate))
          return sizes_differ(name, candidates_[i - 1].holder, candidate.holder);
        begin_chunk(candidate);
      } else if (!policy_.twice_on_rank &&
                 candidates_[i - 1].holder.rank == candidate.holder.rank && !is_empty(candidate)) {
        return lists_twice(name, candidate.holder);
      } else if (!policy_.key_has_sizes) {
        uneven_ |= compare_sizes(candidates_[i - 1], candidate) != 0;
      }
      out_.holders.push_back(candidate.holder);
      out_.holder_begins.back() = out_.holders.size();
    }
    return {};
  }

  // Opens a unit whose holders follow.
  void begin_chunk(const Candidate& candidate) {
    Catalog& catalog = out_.catalog;
    ChunkRecord record;
    record.tensor = static_cast<uint32_t>(catalog.tensors.size());
    record.offset0 = candidate.first.offset;
    record.size0 = candidate.first.size;
    record.offset1 = candidate.second.offset;
    record.size1 = candidate.second.size;
    catalog.boxes.push_back(record);
    for (uint64_t k = 0; k < more_per_chunk(split_.count); ++k)
      catalog.more.push_back(more_[candidate.more + k]);
    out_.holder_begins.push_back(out_.holders.size());
  }

  // Stands apart from the loop over the candidates.
  Status lists_twice(std::string_view name, const UnitHolder& holder) const {
    return listed_twice(name, static_cast<int32_t>(holder.rank),
                        chunk_box_of(locals_[holder.rank].catalog, holder.item));
  }

  Status sizes_differ(std::string_view name, const UnitHolder& a, const UnitHolder& b) const {
    const std::string first = box_text(chunk_box_of(locals_[a.rank].catalog, a.item));
    const std::string second = box_text(chunk_box_of(locals_[b.rank].catalog, b.item));
    return invalid_argument(fmt::format("tensor '{}': box {} of rank {} overlaps box {} of rank {}",
                                        escape_text(name), first, a.rank, second, b.rank))
        .with_detail("tensor", name)
        .with_detail("box", first)
        .with_detail("rank", std::to_string(a.rank))
        .with_detail("box", second)
        .with_detail("rank", std::to_string(b.rank));
  }

  // The first size of an object that is not unknown, else 0.
  uint64_t known_size(std::span<const Member> members) const {
    for (const Member& member : members) {
      const uint64_t bytes = locals_[member.rank].catalog.objects[member.entry].size_bytes;
      if (bytes != 0) return bytes;
    }
    return 0;
  }

  void add_object(std::span<const Member> members) {
    Catalog& catalog = out_.catalog;
    const CatalogView& source = locals_[members[0].rank].catalog;
    ObjectRecord record = source.objects[members[0].entry];
    record.rank = owner_of(record.kind, members[0]);
    if (policy_.described) record.size_bytes = known_size(members);
    record.name = catalog.texts.append(source.texts.at(record.name));
    record.path = catalog.texts.append(source.texts.at(record.path));
    const std::string_view type = source.texts.at(record.content_type);
    const bool same_type =
        !catalog.objects.empty() && catalog.texts.at(catalog.objects.back().content_type) == type;
    record.content_type =
        same_type ? catalog.objects.back().content_type : catalog.texts.append(type);
    catalog.objects.push_back(record);
    for (const Member& member : members) {
      const size_t chunks = locals_[member.rank].catalog.boxes.size();
      out_.holders.push_back({member.rank, static_cast<uint32_t>(chunks + member.entry)});
    }
    out_.holder_begins.push_back(out_.holders.size());
  }

  std::span<const LocalView> locals_;
  std::vector<Source> sources_;  // of each rank
  const MergePolicy& policy_;
  Deduplicated out_;
  SplitDims split_;
  bool uneven_ = false;  // as Deduplicated::uneven, of the tensor at hand
  std::vector<Candidate> candidates_;
  std::vector<Candidate> sorted_;
  std::vector<Key> keys_;
  std::vector<uint32_t> permutation_;  // that sorted the last group that was not in order
  std::vector<ExtentPair> more_;
};

}  // namespace

Result<Deduplicated> deduplicate(std::span<const LocalView> locals, MergedEntries* merged,
                                 const MergePolicy& policy) {
  return Deduplication(locals, policy).run(merged);
}

}  // namespace shardwright::plan::internal
