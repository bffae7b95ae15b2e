// SPDX-License-Identifier: Apache-2.0
//
// Boxes of all ranks to distinct chunks with holders, as save/deduplicate.cc finds them in catalogs.
#include "core/plan/symbolic/listed_tensor_internal.h"

#include <algorithm>
#include <numeric>

#include "core/plan/save/conflicts_internal.h"

namespace shardwright::plan::internal {
namespace {

class BoxLister {
 public:
  BoxLister(const RankDescriptions& ranks, const PartIndex& parts,
            std::span<const GroupMember> members)
      : ranks_(ranks), parts_(parts), members_(members) {
    const Catalog& catalog = ranks.descriptions[members[0].description].catalog;
    name_ = catalog.tensor_name(members[0].entry);
    shape_ = catalog.shape(members[0].entry);
  }

  Result<ListedTensor> run() {
    gather();
    std::vector<uint32_t> order(holders_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, [this](uint32_t a, uint32_t b) {
      if (auto by_box = compare_extents(box(a), box(b)); by_box != 0) return by_box < 0;
      if (holders_[a].rank != holders_[b].rank) return holders_[a].rank < holders_[b].rank;
      return holders_[a].piece < holders_[b].piece;
    });
    ListedTensor out;
    out.dimension_count = shape_.size();
    for (size_t i = 0; i < order.size(); ++i) {
      const bool is_new = i == 0 || compare_extents(box(order[i - 1]), box(order[i])) != 0;
      if (is_new) {
        out.holder_begins.push_back(static_cast<uint32_t>(out.holders.size()));
        out.boxes.insert(out.boxes.end(), box(order[i]).begin(), box(order[i]).end());
      } else if (holders_[order[i - 1]].rank == holders_[order[i]].rank) {
        return listed_twice(name_, static_cast<int32_t>(holders_[order[i]].rank),
                            box_of(box(order[i])));
      }
      out.holders.push_back(holders_[order[i]]);
    }
    out.holder_begins.push_back(static_cast<uint32_t>(out.holders.size()));
    out.owners.assign(out.holder_begins.begin(), out.holder_begins.end() - 1);
    return out;
  }

 private:
  std::span<const ExtentPair> box(size_t i) const {
    return {extents_.data() + i * shape_.size(), shape_.size()};
  }

  void gather() {
    std::vector<const GroupMember*> member_of(ranks_.descriptions.size(), nullptr);
    for (const GroupMember& member : members_) member_of[member.description] = &member;
    for (int32_t r = 0; r < ranks_.rank_count(); ++r) {
      const GroupMember* member = member_of[ranks_.description_of_rank[static_cast<size_t>(r)]];
      if (member != nullptr) gather_rank(r, *member);
    }
  }

  void gather_rank(int32_t rank, const GroupMember& member) {
    const SymbolicDescription& description = ranks_.descriptions[member.description];
    const uint32_t form = description.forms[member.entry];
    if (form == kNothing) return;
    Holder holder{static_cast<uint32_t>(rank), member.entry, 0};
    if (form == kBoxes) {
      const PartBoxesView::Boxes boxes = parts_.boxes(rank, member.entry);
      for (size_t b = 0; b < boxes.count; ++b) {
        holder.piece = static_cast<uint32_t>(b);
        add(boxes[b], holder);
      }
      return;
    }
    const Box box = box_of_axes(description.axes_of(member.entry), shape_, rank);
    std::vector<ExtentPair> pairs;
    pairs.reserve(shape_.size());
    for (size_t d = 0; d < shape_.size(); ++d) pairs.push_back({box.offsets[d], box.sizes[d]});
    add(pairs, holder);
  }

  void add(std::span<const ExtentPair> box, const Holder& holder) {
    if (elements_of(box) == 0) return;
    extents_.insert(extents_.end(), box.begin(), box.end());
    holders_.push_back(holder);
  }

  const RankDescriptions& ranks_;
  const PartIndex& parts_;
  std::span<const GroupMember> members_;
  std::string_view name_;
  std::span<const int64_t> shape_;
  std::vector<ExtentPair> extents_;
  std::vector<Holder> holders_;
};

}  // namespace

Result<ListedTensor> list_tensor(const RankDescriptions& ranks, const PartIndex& parts,
                                 std::span<const GroupMember> members) {
  return BoxLister(ranks, parts, members).run();
}

void ListedTensor::index_owners() {
  by_owner.resize(chunk_count());
  std::iota(by_owner.begin(), by_owner.end(), 0U);
  std::ranges::stable_sort(by_owner, {}, [this](uint32_t chunk) { return owner(chunk).rank; });
}

std::span<const uint32_t> ListedTensor::written_by(uint32_t rank) const {
  const auto found = std::ranges::equal_range(by_owner, rank, {},
                                              [this](uint32_t chunk) { return owner(chunk).rank; });
  return {found.begin(), found.end()};
}

}  // namespace shardwright::plan::internal
