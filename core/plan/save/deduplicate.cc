// SPDX-License-Identifier: Apache-2.0
//
// Writes the merged catalog: tensors that are cut by a rule as they are; of any other the distinct
// boxes of all members in row-major order of their offsets, and for each the members that hold it.
// Scratch columns are reused from tensor to tensor. Tensors of a model are mostly cut alike, so the
// order that sorted the boxes of one is tried on the next before sorting: the work per box is a
// copy and two comparisons.
#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/huge_pages.h"
#include "core/base/text.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/save/shard_rules_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr size_t kAhead = 8;  // members whose boxes are asked for before they are needed

// A listed box in the merged tensor's split dimensions.
struct Candidate {
  ExtentPair first;
  ExtentPair second;
  uint64_t more = 0;  // index of its further pairs in the scratch column
  ItemHolder holder;
};

// The columns of a rank that are read once per box: they lie close to those of the next rank.
struct Source {
  const BoxList* lists = nullptr;
  const ChunkRecord* boxes = nullptr;
};

// Offsets in the first two split dimensions.
struct Key {
  int64_t first = 0;
  int64_t second = 0;
  uint32_t candidate = 0;
};

class Deduplication {
 public:
  Deduplication(const RankPlans& ranks, const MergedEntries& entries, const MergePolicy& policy)
      : ranks_(ranks),
        entries_(entries),
        policy_(policy),
        by_rule_(goes_by_rule(policy)),
        members_(ranks),
        rules_(ranks, &out_) {
    sources_.reserve(ranks.rank_count());
    for (uint32_t r = 0; r < ranks.rank_count() && !ranks.parts.empty(); ++r)
      sources_.push_back({ranks.parts[r].lists.data(), ranks.parts[r].boxes.data()});
  }

  Result<Merged> run() {
    SHW_RETURN_IF_ERROR(reserve());
    out_.holder_begins.push_back(0);
    for (const CatalogEntry& entry : catalog_order(ranks_, entries_.tensors))
      SHW_RETURN_IF_ERROR(add_tensor(entry));
    for (const CatalogEntry& entry : catalog_order(ranks_, entries_.objects)) add_object(entry);
    out_.chosen.assign(out_.stored_count(), 0);
    return std::move(out_);
  }

 private:
  // Owners of a rule are chosen for a tensor as a whole, and its chunks are those of its columns
  // that hold elements, in their order.
  static bool goes_by_rule(const MergePolicy& policy) {
    return (policy.choice == MergePolicy::Choice::kBalanced ||
            policy.choice == MergePolicy::Choice::kLowestRank) &&
           policy.numbering == MergePolicy::Numbering::kRowMajor && !policy.keep_empty;
  }

  Status reserve() {
    size_t boxes = 0;
    for (const PartView& part : ranks_.parts) boxes += part.boxes.size();
    if (boxes >= std::numeric_limits<uint32_t>::max()) {
      return resource_exhausted("items", fmt::format("{} boxes of all ranks are too many", boxes));
    }
    const size_t tensors = entries_.tensors.size();
    const size_t objects = entries_.objects.size();
    out_.catalog.texts.reserve(2 * tensors + 3 * objects,
                               ranks_.descriptions[0].catalog.texts.blob().size());
    out_.catalog.tensors.reserve(tensors);
    out_.catalog.objects.reserve(objects);
    // Room for the case that nothing is held twice; what is not used stays untouched.
    reserve_large(&out_.catalog.boxes, boxes);
    reserve_large(&out_.holder_begins, boxes + 1);
    reserve_large(&out_.holders, boxes);
    return {};
  }

  Status add_tensor(const CatalogEntry& entry) {
    Catalog& catalog = out_.catalog;
    const Catalog& source = ranks_.of(entry.rank).description.catalog;
    const TensorRecord& from = source.tensors[entry.entry];
    const std::span<const int64_t> shape = source.shape(entry.entry);
    TensorRecord record;
    record.name = catalog.texts.append(source.texts.at(from.name));
    record.path = catalog.texts.append(source.texts.at(from.path));
    record.dtype = from.dtype;
    record.kind = from.kind;
    record.rank = owner_of(from.kind, entry);
    record.shape_begin = catalog.shapes.size();
    record.dimension_count = from.dimension_count;
    record.chunk_begin = catalog.chunk_count();
    record.box_begin = catalog.boxes.size();
    record.more_begin = catalog.more.size();
    catalog.shapes.insert(catalog.shapes.end(), shape.begin(), shape.end());
    uneven_ = false;
    TensorSource tensor;
    tensor.entry = entry;
    const std::span<const Member> members = members_of(entry);
    if (by_rule_ && entry.group != kOwnEntry) rules_.find(members, &tensor);
    if (tensor.is_ruled()) {
      const ShardGrid& grid = out_.grids[tensor.grid];
      record.chunk_count = grid.chunk_count();
      record.split_mask = grid.split_mask();
      if (record.chunk_count != 0) record.rank_map = 0;  // until its ranks are known
    } else {
      SHW_RETURN_IF_ERROR(add_boxes(entry, members, source.texts.at(from.name), &record));
    }
    catalog.tensors.push_back(record);
    out_.tensors.push_back(tensor);
    out_.uneven.push_back(uneven_);
    return {};
  }

  // A rank_local entry belongs to who lists it, who may not have known its rank.
  static int32_t owner_of(EntryKind kind, const CatalogEntry& entry) {
    return kind == EntryKind::kRankLocal ? static_cast<int32_t>(entry.rank) : -1;
  }

  std::span<const Member> members_of(const CatalogEntry& entry) const {
    return entry.group == kOwnEntry ? std::span<const Member>() : entries_.tensors.of(entry.group);
  }

  Status add_boxes(const CatalogEntry& entry, std::span<const Member> members,
                   std::string_view name, TensorRecord* record) {
    const RankMember own{entry.rank, ranks_.description_of_rank[entry.rank], entry.entry};
    const std::span<const RankMember> all =
        entry.group == kOwnEntry ? std::span(&own, 1) : members_.of(members);
    const std::span<const int64_t> shape =
        ranks_.of(entry.rank).description.catalog.shape(entry.entry);
    for (const RankMember& member : all) record->split_mask |= mask_of(member);
    split_ = split_dims(shape, record->split_mask);
    if (record->split_mask != 0 || !emit_replicas(all)) {
      gather(all, record->split_mask);
      if (dropped_) narrow(shape, record);
      sort_candidates();
      SHW_RETURN_IF_ERROR(emit_distinct(name));
    }
    record->chunk_count = out_.catalog.boxes.size() - record->box_begin;
    return {};
  }

  uint32_t form_of(const RankMember& member) const {
    return ranks_.descriptions[member.description].forms[member.entry];
  }
  const BoxList& list_of(const RankMember& member) const {
    return sources_[member.rank].lists[ranks_.numbers[member.description].lists[member.entry]];
  }

  // The box of a member that has one by a rule.
  Box ruled_box(const RankMember& member) const {
    const Description& description = ranks_.descriptions[member.description];
    return box_of_axes(description.axes_of(member.entry), description.catalog.shape(member.entry),
                       static_cast<int32_t>(member.rank));
  }

  uint64_t mask_of(const RankMember& member) const {
    const uint32_t form = form_of(member);
    if (form == kBoxes) return list_of(member).split_mask;
    if (form == kWhole || form == kNothing) return 0;
    const Box box = ruled_box(member);
    if (box_is_empty(box)) return 0;
    const auto shape = ranks_.descriptions[member.description].catalog.shape(member.entry);
    uint64_t mask = 0;
    for (size_t d = 0; d < shape.size(); ++d) mask |= uint64_t{box.sizes[d] != shape[d]} << d;
    return mask;
  }

  void gather(std::span<const RankMember> members, uint64_t mask) {
    candidates_.clear();
    more_.clear();
    dropped_ = false;
    for (size_t m = 0; m < members.size(); ++m) {
      if (m + kAhead < members.size()) prefetch(members[m + kAhead]);
      const uint32_t form = form_of(members[m]);
      if (form == kBoxes) {
        gather_list(members[m], mask);
      } else if (form != kNothing) {
        gather_ruled(members[m]);
      }
    }
  }

  void gather_list(const RankMember& member, uint64_t mask) {
    const BoxList& list = list_of(member);
    for (uint32_t b = 0; b < list.count; ++b) {
      const ChunkRecord& box = sources_[member.rank].boxes[list.begin + b];
      Candidate candidate;
      candidate.holder = {member.rank, list.begin + b};
      candidate.more = more_.size();
      if (list.split_mask == mask) {
        candidate.first = {box.offset0, box.size0};
        candidate.second = {box.offset1, box.size1};
        for (uint32_t k = 2; k < split_.count; ++k)
          more_.push_back(list_pair(ranks_.parts[member.rank], list, b, k));
      } else {
        widen(ranks_.parts[member.rank], list, b, &candidate);
      }
      take(candidate);
    }
  }

  // A rule that leaves a rank nothing lists no box of it.
  void gather_ruled(const RankMember& member) {
    const Box box = ruled_box(member);
    if (box_is_empty(box)) return;
    Candidate candidate;
    candidate.holder = {member.rank, ranks_.of(member.rank).tensor_item(member.entry)};
    candidate.more = more_.size();
    for (uint32_t k = 0; k < split_.count; ++k) {
      const size_t d = split_.dims[k];
      set_pair(k, {box.offsets[d], box.sizes[d]}, &candidate);
    }
    take(candidate);
  }

  void take(const Candidate& candidate) {
    if (policy_.keep_empty || !is_empty(candidate)) {
      candidates_.push_back(candidate);
    } else {
      more_.resize(candidate.more);
      dropped_ = true;
    }
  }

  // Boxes that are not kept cut no dimension of the tensor.
  void narrow(std::span<const int64_t> shape, TensorRecord* record) {
    uint64_t mask = 0;
    for (const Candidate& candidate : candidates_) {
      for (uint32_t k = 0; k < split_.count; ++k)
        mask |= uint64_t{pair_of(candidate, k, more_).size != split_.extents[k]} << split_.dims[k];
    }
    if (mask == record->split_mask) return;
    record->split_mask = mask;
    const SplitDims wide = std::exchange(split_, split_dims(shape, mask));
    const std::vector<ExtentPair> more = std::exchange(more_, {});
    for (Candidate& candidate : candidates_) {
      const Candidate from = std::exchange(candidate, {{}, {}, more_.size(), candidate.holder});
      uint32_t next = 0;
      for (uint32_t k = 0; k < wide.count; ++k) {
        if ((mask >> wide.dims[k] & 1) != 0) set_pair(next++, pair_of(from, k, more), &candidate);
      }
    }
  }

  static ExtentPair pair_of(const Candidate& candidate, uint32_t k,
                            std::span<const ExtentPair> more) {
    if (k < 2) return k == 0 ? candidate.first : candidate.second;
    return more[candidate.more + k - 2];
  }

  void set_pair(uint32_t k, const ExtentPair& pair, Candidate* candidate) {
    if (k == 0) {
      candidate->first = pair;
    } else if (k == 1) {
      candidate->second = pair;
    } else {
      more_.push_back(pair);
    }
  }

  // In line: of a function of its own the compiler believes that it does nothing, and drops the
  // calls.
  [[gnu::always_inline]] void prefetch(const RankMember& member) const {
    if (form_of(member) != kBoxes) return;
    const BoxList& list = list_of(member);
    if (list.count == 0) return;
    const ChunkRecord* box = sources_[member.rank].boxes + list.begin;
    __builtin_prefetch(box);
    __builtin_prefetch(&box->size1);  // where the record goes on in the next line
  }

  // Of a member that is not split in the dimensions of the tensor.
  void widen(const PartView& part, const BoxList& list, uint32_t box, Candidate* candidate) {
    for (uint32_t k = 0; k < split_.count; ++k) {
      const uint64_t bit = uint64_t{1} << split_.dims[k];
      const auto own = static_cast<uint32_t>(std::popcount(list.split_mask & (bit - 1)));
      set_pair(k,
               (list.split_mask & bit) != 0 ? list_pair(part, list, box, own)
                                            : ExtentPair{0, split_.extents[k]},
               candidate);
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

  // By offsets or by sizes, dimension by dimension.
  template <int64_t ExtentPair::* Value>
  std::strong_ordering compare(const Candidate& a, const Candidate& b) const {
    if (auto order = a.first.*Value <=> b.first.*Value; order != 0) return order;
    if (auto order = a.second.*Value <=> b.second.*Value; order != 0) return order;
    for (uint64_t k = 0; k < more_per_chunk(split_.count); ++k) {
      if (auto order = more_[a.more + k].*Value <=> more_[b.more + k].*Value; order != 0)
        return order;
    }
    return std::strong_ordering::equal;
  }
  auto compare_offsets(const Candidate& a, const Candidate& b) const {
    return compare<&ExtentPair::offset>(a, b);
  }
  auto compare_sizes(const Candidate& a, const Candidate& b) const {
    return compare<&ExtentPair::size>(a, b);
  }

  // Row-major by offsets, then by sizes where they count, then by holder.
  bool before(const Candidate& a, const Candidate& b) const {
    if (auto order = compare_offsets(a, b); order != 0) return order < 0;
    if (policy_.key_has_sizes) {
      if (auto order = compare_sizes(a, b); order != 0) return order < 0;
    }
    return std::tie(a.holder.rank, a.holder.item) < std::tie(b.holder.rank, b.holder.item);
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

  // Of a tensor that nobody cuts, where all have one box or all of it: one box. False, and nothing
  // done, where that is not so.
  bool emit_replicas(std::span<const RankMember> members) {
    if (split_.unsplit_elements == 0) return false;
    for (const RankMember& member : members) {
      const uint32_t form = form_of(member);
      if (form == kBoxes ? list_of(member).count != 1 : form != kWhole) return false;
    }
    begin_chunk(Candidate());
    for (const RankMember& member : members) {
      const bool listed = form_of(member) == kBoxes;
      out_.holders.push_back({member.rank, listed
                                               ? list_of(member).begin
                                               : ranks_.of(member.rank).tensor_item(member.entry)});
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

  // Opens a stored item whose holders follow.
  void begin_chunk(const Candidate& candidate) {
    Catalog& catalog = out_.catalog;
    ChunkRecord record;
    record.tensor = static_cast<uint32_t>(catalog.tensors.size());
    const auto pair_at = [&](uint32_t k) { return pair_of(candidate, k, more_); };
    pack_pairs(split_.count, pair_at, &record, &catalog.more);
    catalog.boxes.push_back(record);
    out_.holder_begins.push_back(out_.holders.size());
  }

  // Stands apart from the loop over the candidates.
  Status lists_twice(std::string_view name, const ItemHolder& holder) const {
    const std::string box = box_text(ranks_.of(holder.rank).box_of(holder.item));
    return invalid_argument(
               fmt::format("tensor '{}': rank {} lists box {} twice, so it overlaps itself",
                           escape_text(name), holder.rank, box))
        .with_detail("tensor", name)
        .with_detail("rank", std::to_string(holder.rank))
        .with_detail("box", box);
  }

  Status sizes_differ(std::string_view name, const ItemHolder& a, const ItemHolder& b) const {
    const std::string first = box_text(ranks_.of(a.rank).box_of(a.item));
    const std::string second = box_text(ranks_.of(b.rank).box_of(b.item));
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
      const uint64_t bytes =
          ranks_.descriptions[member.description].catalog.objects[member.entry].size_bytes;
      if (bytes != 0) return bytes;
    }
    return 0;
  }

  void add_object(const CatalogEntry& entry) {
    Catalog& catalog = out_.catalog;
    const Catalog& source = ranks_.of(entry.rank).description.catalog;
    ObjectRecord record = source.objects[entry.entry];
    ObjectSource object{entry};
    record.rank = owner_of(record.kind, entry);
    if (entry.group == kOwnEntry) {
      record.size_bytes = ranks_.of(entry.rank).object_bytes(entry.entry);
    } else {
      const std::span<const Member> members = entries_.objects.of(entry.group);
      object.map = rules_.map_of(members);
      if (policy_.described) record.size_bytes = known_size(members);
    }
    record.name = catalog.texts.append(source.texts.at(record.name));
    record.path = catalog.texts.append(source.texts.at(record.path));
    const std::string_view type = source.texts.at(record.content_type);
    const bool same_type =
        !catalog.objects.empty() && catalog.texts.at(catalog.objects.back().content_type) == type;
    record.content_type =
        same_type ? catalog.objects.back().content_type : catalog.texts.append(type);
    catalog.objects.push_back(record);
    out_.objects.push_back(object);
  }

  const RankPlans& ranks_;
  const MergedEntries& entries_;
  const MergePolicy& policy_;
  const bool by_rule_;
  Merged out_;
  RankMembers members_;
  ShardRules rules_;
  std::vector<Source> sources_;  // of each rank
  SplitDims split_;
  bool uneven_ = false;  // as Deduplicated::uneven, of the tensor at hand
  std::vector<Candidate> candidates_;
  bool dropped_ = false;  // a box without elements is not among them
  std::vector<Candidate> sorted_;
  std::vector<Key> keys_;
  std::vector<uint32_t> permutation_;  // that sorted the last group that was not in order
  std::vector<ExtentPair> more_;
};

}  // namespace

Result<Merged> deduplicate(const RankPlans& ranks, const MergedEntries& entries,
                           const MergePolicy& policy) {
  return Deduplication(ranks, entries, policy).run();
}

}  // namespace shardwright::plan::internal
