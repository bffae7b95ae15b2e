// SPDX-License-Identifier: Apache-2.0
//
// Views of descriptions and parts. Explicit local plans of one table and equal objects share a
// description in which all tensors are boxes.
#include "core/plan/rank_plans.h"

#include <algorithm>
#include <array>

#include "core/plan/box_list_internal.h"
#include "core/plan/digest.h"

namespace shardwright::plan {
namespace {

// Number of the tensors that are boxes before each one.
std::vector<uint32_t> number_lists(std::span<const uint32_t> forms) {
  std::vector<uint32_t> numbers;
  numbers.reserve(forms.size());
  uint32_t next = 0;
  for (const uint32_t form : forms) {
    numbers.push_back(next);
    if (form == kBoxes) ++next;
  }
  return numbers;
}

std::vector<uint32_t> number_own(std::span<const ObjectRecord> objects) {
  std::vector<uint32_t> numbers;
  numbers.reserve(objects.size());
  uint32_t next = 0;
  for (const ObjectRecord& object : objects) {
    numbers.push_back(next);
    if (object.kind == EntryKind::kRankLocal) ++next;
  }
  return numbers;
}

// Objects of two plans of one table, whose texts are the same.
bool same_objects(std::span<const ObjectRecord> a, std::span<const ObjectRecord> b) {
  return std::ranges::equal(a, b, [](const ObjectRecord& first, const ObjectRecord& second) {
    const bool own = first.kind == EntryKind::kRankLocal;
    return first.name == second.name && first.path == second.path &&
           first.content_type == second.content_type && first.kind == second.kind &&
           (own || first.size_bytes == second.size_bytes);
  });
}

// Explicit plans rank by rank.
class ExplicitPlans {
 public:
  explicit ExplicitPlans(const LocalViews& locals)
      : locals_(locals), first_of_table_(locals.table_count, kNone) {}

  RankPlans run() {
    made_.parts.reserve(locals_.views.size());
    made_.description_of_rank.reserve(locals_.views.size());
    for (const LocalView& view : locals_.views) add(view);
    return std::move(made_);
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  void add(const LocalView& view) {
    const uint32_t number = description_of(view);
    PartView part;
    part.lists = lists_[view.table];
    part.boxes = view.catalog.boxes;
    part.more = view.catalog.more;
    part.object_sizes = own_sizes(view.catalog.objects);
    part.tensor_digests = view.tensor_digests;
    part.object_digests = view.object_digests;
    part.listing = view.listing;
    made_.parts.push_back(part);
    made_.description_of_rank.push_back(number);
  }

  // Descriptions of one table are chained.
  uint32_t description_of(const LocalView& view) {
    uint32_t last = kNone;
    for (uint32_t d = first_of_table_[view.table]; d != kNone; d = next_[d]) {
      if (same_objects(made_.descriptions[d].entries.objects, view.catalog.objects)) return d;
      last = d;
    }
    const auto number = static_cast<uint32_t>(made_.descriptions.size());
    (last == kNone ? first_of_table_[view.table] : next_[last]) = number;
    next_.push_back(kNone);
    DescriptionView description;
    description.entries = view.catalog;
    description.entries.boxes = {};
    description.entries.more = {};
    description.forms = own(std::vector<uint32_t>(view.catalog.tensors.size(), uint32_t{kBoxes}));
    description.list_numbers = number_lists(description.forms);
    description.own_numbers = number_own(description.entries.objects);
    made_.descriptions.push_back(std::move(description));
    made_.first_ranks.push_back(static_cast<uint32_t>(made_.description_of_rank.size()));
    if (last == kNone) add_lists(view);
    return number;
  }

  void add_lists(const LocalView& view) {
    std::vector<BoxList> lists;
    lists.reserve(view.catalog.tensors.size());
    for (const TensorRecord& tensor : view.catalog.tensors) {
      lists.push_back({tensor.split_mask, tensor.more_begin,
                       static_cast<uint32_t>(tensor.box_begin),
                       static_cast<uint32_t>(tensor.chunk_count)});
    }
    if (lists_.size() <= view.table) lists_.resize(locals_.table_count);
    lists_[view.table] = own(std::move(lists));
  }

  // Of rank_local objects.
  std::span<const uint64_t> own_sizes(std::span<const ObjectRecord> objects) {
    std::vector<uint64_t> sizes;
    for (const ObjectRecord& object : objects) {
      if (object.kind == EntryKind::kRankLocal) sizes.push_back(object.size_bytes);
    }
    return own(std::move(sizes));
  }

  template <typename Value>
  std::span<const Value> own(std::vector<Value> values) {
    if (values.empty()) return {};
    auto kept = std::make_shared<const std::vector<Value>>(std::move(values));
    const std::span<const Value> span = *kept;
    made_.owned.push_back(std::move(kept));
    return span;
  }

  const LocalViews& locals_;
  RankPlans made_;
  std::vector<uint32_t> first_of_table_;
  std::vector<uint32_t> next_;                   // description of the same table, or kNone
  std::vector<std::span<const BoxList>> lists_;  // of each table
};

}  // namespace

std::span<const ShardAxis> DescriptionView::axes_of(size_t tensor) const {
  if (forms[tensor] == kWhole) return {};
  const size_t number = forms[tensor] - kFirstLayout;
  const size_t begin = number == 0 ? 0 : layout_ends[number - 1];
  return axes.subspan(begin, layout_ends[number] - begin);
}

PartView view_of(const SymbolicPart& part) {
  PartView view;
  view.lists = part.lists;
  view.boxes = part.boxes;
  view.more = part.more;
  view.object_sizes = part.object_sizes;
  view.digest_tensors = part.digest_tensors;
  view.tensor_digests = part.tensor_digests;
  return view;
}

const PartView& RankPlans::part(uint32_t rank) const {
  static const PartView kNothing;
  return parts.empty() ? kNothing : parts[rank];
}

size_t RankView::item_count() const {
  return part.boxes.size() + description.entries.objects.size() +
         (description.has_ruled ? description.forms.size() : 0);
}

uint64_t RankView::bit_count() const {
  return description.forms.size() + description.entries.objects.size() + part.boxes.size();
}

Box RankView::box_of(uint32_t item) const {
  if (item < part.boxes.size()) {
    const uint32_t tensor = part.boxes[item].tensor;
    const BoxList& boxes = list(tensor);
    return internal::list_box(part, boxes, item - boxes.begin, description.entries.shape(tensor));
  }
  const uint32_t tensor = item - tensor_item(0);
  return box_of_axes(description.axes_of(tensor), description.entries.shape(tensor),
                     static_cast<int32_t>(rank));
}

std::vector<Box> RankView::boxes_of(uint32_t tensor) const {
  std::vector<Box> boxes;
  if (description.is_ruled(tensor)) {
    boxes.push_back(box_of(tensor_item(tensor)));
  } else if (description.forms[tensor] == kBoxes) {
    const BoxList& held = list(tensor);
    for (uint32_t b = 0; b < held.count; ++b) boxes.push_back(box_of(held.begin + b));
  }
  return boxes;
}

uint64_t RankView::object_bytes(uint32_t object) const {
  const ObjectRecord& record = description.entries.objects[object];
  if (record.kind != EntryKind::kRankLocal) return record.size_bytes;
  return part.object_sizes[description.own_numbers[object]];
}

RankPlans rank_plans_of(const LocalViews& locals) {
  return ExplicitPlans(locals).run();
}

DescriptionView view_of(const SymbolicDescription& description) {
  DescriptionView view;
  view.entries = view_of(description.catalog);
  view.forms = description.forms;
  view.axes = description.axes;
  view.layout_ends = description.layout_ends;
  view.tensor_digests = description.tensor_digests;
  view.object_digests = description.object_digests;
  view.list_numbers = number_lists(description.forms);
  view.own_numbers = number_own(description.catalog.objects);
  view.has_ruled = std::ranges::any_of(
      description.forms, [](uint32_t form) { return form != kBoxes && form != kNothing; });
  return view;
}

RankPlans rank_plans_of(const RankDescriptions& ranks) {
  RankPlans made;
  made.description_of_rank = ranks.description_of_rank;
  for (const SymbolicDescription& description : ranks.descriptions)
    made.descriptions.push_back(view_of(description));
  // A description is numbered by its first rank.
  for (uint32_t r = 0; r < ranks.description_of_rank.size(); ++r) {
    if (ranks.description_of_rank[r] == made.first_ranks.size()) made.first_ranks.push_back(r);
  }
  if (ranks.parts.empty()) return made;
  made.parts.resize(ranks.description_of_rank.size());
  for (const SymbolicPart& part : ranks.parts)
    made.parts[static_cast<size_t>(part.rank)] = view_of(part);
  return made;
}

Digest128 local_digest(const Digest128& description, const PartView& part, RankPosition position) {
  std::vector<std::byte> bytes;
  const auto append = [&bytes](const auto& values) {
    const auto more = std::as_bytes(std::span(values));
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(description);
  append(std::array{position.rank, position.world_size});
  append(part.lists);
  append(part.boxes);
  append(part.more);
  append(part.object_sizes);
  return content_digest(bytes);
}

Digest128 local_digest_of(const RankDescriptions& ranks, int32_t rank) {
  const uint32_t description = ranks.description_of_rank[static_cast<size_t>(rank)];
  const SymbolicPart* part = ranks.part_of(rank);
  return local_digest(ranks.digests[description], part == nullptr ? PartView() : view_of(*part),
                      {rank, ranks.rank_count()});
}

}  // namespace shardwright::plan
