// SPDX-License-Identifier: Apache-2.0
//
// One pass over the entries.
#include "core/plan/describe/describe_entries.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/plan/describe/builder.h"
#include "core/plan/describe/entry_kind.h"
#include "core/plan/describe/entry_reader_internal.h"

namespace shardwright::plan {
namespace {

using internal::EntryReader;
using internal::ReadEntry;

constexpr std::string_view kContentType = "application/octet-stream";

DescriptionBuilder::Tensor tensor_of(const ReadEntry& entry) {
  return {entry.name, entry.path, entry.dtype, entry.kind, entry.shape, entry.digest};
}

DescriptionBuilder::Object object_of(const ReadEntry& entry) {
  return {entry.name,
          entry.path,
          kContentType,
          entry.kind,
          entry.object_bytes,
          entry.digest,
          kMaxDescribedObjectBytes};
}

// How the host lists its entries.
class ListingBuilder {
 public:
  void add(const ReadEntry& entry) {
    if (entry.is_object()) {
      object_begins_.push_back(tensors_);
    } else {
      ++tensors_;
      objects_between_ = objects_between_ || !object_begins_.empty();
    }
    (entry.is_object() ? object_attributes_ : tensor_attributes_).push_back(entry.attribute);
  }

  Listing take() {
    Listing listing;
    if (objects_between_) listing.object_begins = std::move(object_begins_);
    const auto has_bytes = [](std::string_view text) { return !text.empty(); };
    if (std::ranges::none_of(tensor_attributes_, has_bytes) &&
        std::ranges::none_of(object_attributes_, has_bytes))
      return listing;
    for (const auto* column : {&tensor_attributes_, &object_attributes_}) {
      for (const std::string_view text : *column) {
        listing.attributes.insert(listing.attributes.end(), text.begin(), text.end());
        listing.attribute_ends.push_back(listing.attributes.size());
      }
    }
    return listing;
  }

 private:
  uint32_t tensors_ = 0;
  std::vector<uint32_t> object_begins_;
  bool objects_between_ = false;  // a tensor came after an object
  std::vector<std::string_view> tensor_attributes_;
  std::vector<std::string_view> object_attributes_;
};

// The boxes in the order in which the host lists them, when that is not their own.
Result<std::vector<uint32_t>> read_order(const uint64_t* order, uint64_t boxes) {
  std::vector<uint32_t> read;
  if (order == nullptr) return read;
  std::vector<bool> listed(boxes, false);
  read.reserve(boxes);
  for (uint64_t i = 0; i < boxes; ++i) {
    if (order[i] >= boxes || listed[order[i]]) {
      return invalid_argument(fmt::format("order[{}] is {}, which is twice there or no box of {}",
                                          i, order[i], boxes))
          .with_detail("parameter", "order");
    }
    listed[order[i]] = true;
    read.push_back(static_cast<uint32_t>(order[i]));
  }
  if (std::ranges::is_sorted(read)) read.clear();
  return read;
}

// One rank's boxes as they stand.
class BoxDescriber {
 public:
  BoxDescriber(const EntryArrays& entries, DescriptionBuilder* builder)
      : in_(entries), builder_(*builder) {}

  Result<LocalPlan> run() {
    EntryReader reader(in_);
    SHW_RETURN_IF_ERROR(reader.for_each([this](const ReadEntry& entry) { return add(entry); }));
    SHW_ASSIGN_OR_RETURN(LocalPlan plan, builder_.finish());
    plan.part.listing = listing_.take();
    if (std::ranges::find(secondary_, 1) != secondary_.end())
      plan.part.listing.secondary = std::move(secondary_);
    SHW_ASSIGN_OR_RETURN(plan.part.listing.order, read_order(in_.order, boxes_));
    return plan;
  }

 private:
  Status add(const ReadEntry& entry) {
    listing_.add(entry);
    boxes_ += entry.is_object() ? 1 : entry.boxes.size();
    if (entry.is_object()) return builder_.add_object(object_of(entry));
    pieces_.clear();
    for (uint64_t b = 0; b < entry.boxes.size(); ++b) {
      const uint64_t box = entry.first_box + b;
      const uint64_t piece = in_.numbers == nullptr ? b : in_.numbers[box];
      if (piece >= kObjectPiece) {
        return invalid_argument(
            fmt::format("number {} of box {} is not below {}", piece, box, kObjectPiece));
      }
      pieces_.push_back(static_cast<uint32_t>(piece));
      if (in_.secondary != nullptr) secondary_.push_back(in_.secondary[box] != 0 ? 1 : 0);
    }
    return builder_.add_listed(tensor_of(entry), entry.boxes, pieces_);
  }

  const EntryArrays& in_;
  DescriptionBuilder& builder_;
  ListingBuilder listing_;
  uint64_t boxes_ = 0;
  std::vector<uint8_t> secondary_;
  std::vector<uint32_t> pieces_;  // of the entry at hand
};

// What is stored.
class MergedDescriber {
 public:
  MergedDescriber(const EntryArrays& entries, std::span<const KindPattern> kinds)
      : in_(entries), kinds_(kinds), builder_(&plan_.catalog, kMaxDescribedObjectBytes) {}

  Result<GlobalSavePlan> run() {
    if (in_.order != nullptr) return invalid_argument("a merged plan has no order of its own");
    EntryReader reader(in_);
    SHW_RETURN_IF_ERROR(reader.for_each([this](const ReadEntry& entry) { return add(entry); }));
    plan_.listing = listing_.take();
    return std::move(plan_);
  }

 private:
  Status add(const ReadEntry& entry) {
    if (!names_.insert(entry.name).second) return already_exists("another entry has the same name");
    listing_.add(entry);
    return entry.is_object() ? add_object(entry) : add_tensor(entry);
  }

  Result<uint32_t> rank_of(uint64_t box) const {
    const uint64_t rank = in_.numbers == nullptr ? 0 : in_.numbers[box];
    if (rank < static_cast<uint64_t>(kMaxWorldSize)) return static_cast<uint32_t>(rank);
    return invalid_argument(
        fmt::format("number {} of box {} is not below {}", rank, box, kMaxWorldSize));
  }

  Status add_tensor(const ReadEntry& entry) {
    std::vector<CatalogBuilder::Chunk> chunks;
    for (uint64_t b = 0; b < entry.boxes.size(); ++b) {
      SHW_ASSIGN_OR_RETURN(const uint32_t rank, rank_of(entry.first_box + b));
      chunks.push_back({entry.boxes[b], rank});
    }
    const bool whole = chunks.size() == 1 && chunks[0].box == whole_box(entry.shape);
    const EntryKind kind = internal::tensor_kind(kinds_, entry.name, entry.kind, whole);
    int32_t owner = -1;
    if (kind == EntryKind::kRankLocal) {
      if (chunks.empty()) return invalid_argument("a rank_local entry without a box has no rank");
      owner = static_cast<int32_t>(chunks[0].place);
    }
    return builder_.add_tensor({entry.name, entry.path, entry.dtype, kind, owner, entry.shape},
                               chunks);
  }

  Status add_object(const ReadEntry& entry) {
    ObjectRecord record;
    SHW_ASSIGN_OR_RETURN(record.place, rank_of(entry.first_box));
    record.kind = internal::object_kind(kinds_, entry.name, entry.kind);
    if (record.kind == EntryKind::kRankLocal) record.rank = static_cast<int32_t>(record.place);
    record.size_bytes = entry.object_bytes;
    return builder_.add_object(record, entry.name, entry.path, kContentType);
  }

  const EntryArrays& in_;
  std::span<const KindPattern> kinds_;
  GlobalSavePlan plan_;
  CatalogBuilder builder_;
  ListingBuilder listing_;
  std::unordered_set<std::string_view> names_;
};

Result<DescriptionBuilder> builder_of(const DescribeRules& rules) {
  return DescriptionBuilder::create(rules.kinds, std::string(rules.agreement),
                                    {rules.rank, rules.world_size});
}

}  // namespace

Result<LocalPlan> describe_local(const EntryArrays& entries, const DescribeRules& rules) {
  SHW_ASSIGN_OR_RETURN(DescriptionBuilder builder, builder_of(rules));
  return BoxDescriber(entries, &builder).run();
}

Result<LocalPlan> describe_local(const EntryArrays& entries, std::span<const Layout* const> layouts,
                                 const DescribeRules& rules) {
  if (entries.numbers != nullptr || entries.order != nullptr || entries.secondary != nullptr ||
      !entries.attributes.offsets.empty()) {
    return invalid_argument(
        "what is described by layouts has no numbers, no order, nothing secondary and no "
        "attributes");
  }
  SHW_ASSIGN_OR_RETURN(DescriptionBuilder builder, builder_of(rules));
  size_t i = 0;
  EntryReader reader(entries);
  SHW_RETURN_IF_ERROR(reader.for_each([&](const ReadEntry& entry) -> Status {
    const Layout* layout = layouts.empty() ? nullptr : layouts[i];
    ++i;
    if (entry.is_object()) {
      if (layout != nullptr) return invalid_argument("a byte object has no layout");
      return builder.add_object(object_of(entry));
    }
    if (layout == nullptr) return builder.add_boxes(tensor_of(entry), entry.boxes);
    if (!entries.box_ranges.empty() && !entry.boxes.empty())
      return invalid_argument("an entry has a layout and boxes");
    return builder.add_sharded(tensor_of(entry), *layout);
  }));
  return builder.finish();
}

Result<GlobalSavePlan> describe_merged(const EntryArrays& entries,
                                       std::span<const KindPattern> kinds) {
  return MergedDescriber(entries, kinds).run();
}

}  // namespace shardwright::plan
