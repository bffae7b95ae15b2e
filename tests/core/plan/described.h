// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary for planning on descriptions: entries of a rank, merged plans as readable texts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/plan/describe/describe_entries.h"
#include "core/plan/entry_arrays.h"
#include "core/plan/save/merge_plans.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/kept.h"
#include "tests/core/plan/world.h"
#include "tests/support/entry_arrays_builder.h"

namespace shardwright::plan::test {

// One entry that a rank lists: a tensor with boxes, or an object.
struct Listed {
  std::string name;
  Dims shape = {};
  std::vector<Box> boxes = {};
  bool object = false;
  DType dtype = DType::kFloat32;
  EntryKind kind = EntryKind::kAuto;
  std::string attribute = {};
  uint64_t bytes = 0;      // of an object
  bool secondary = false;  // of all its boxes
};

inline Listed tensor(std::string name, Dims shape) {
  Listed listed{std::move(name), shape, {whole_box(shape)}};
  return listed;
}
inline Listed shard(std::string name, Dims shape, Dims offsets, Dims sizes) {
  Listed listed{std::move(name), std::move(shape), {box(std::move(offsets), std::move(sizes))}};
  listed.kind = EntryKind::kSharded;
  return listed;
}
inline Listed object(std::string name) {
  Listed listed{std::move(name), {}, {}};
  listed.object = true;
  return listed;
}

// The flat arrays of some entries.
class Arrays {
 public:
  explicit Arrays(const std::vector<Listed>& entries, std::vector<uint64_t> order = {}) {
    for (const Listed& each : entries) add(each);
    builder_.set_order(std::move(order));
  }

  EntryArrays arrays() const {
    EntryArrays made = builder_.arrays();
    made.digests = {};  // absent: contents are not known
    return made;
  }

 private:
  void add(const Listed& each) {
    builder_.add({.name = each.name,
                  .dtype = each.object ? 0 : static_cast<int32_t>(each.dtype),
                  .kind = static_cast<int32_t>(each.kind),
                  .shape = each.shape,
                  .attribute = each.attribute,
                  .object_bytes = each.bytes,
                  .secondary = each.secondary});
    for (const Box& box : each.boxes) builder_.add_box(box.offsets, box.sizes, each.secondary);
  }

  shardwright::test::EntryArraysBuilder builder_;
};

using Ranks = std::vector<std::vector<Listed>>;
using PlanBytes = std::vector<std::byte>;

// The plan buffer of a rank; fails the test when the entries are refused.
inline PlanBytes described(const std::vector<Listed>& entries, RankPosition position,
                           std::vector<uint64_t> order = {}) {
  const Arrays arrays(entries, std::move(order));
  DescribeRules rules;
  rules.rank = position.rank;
  rules.world_size = position.world_size;
  const Result<LocalPlan> plan = describe_local(arrays.arrays(), rules);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  if (!plan.ok()) return {};
  Result<PlanBytes> bytes = encode(*plan);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *std::move(bytes) : PlanBytes();
}

inline std::vector<PlanBytes> described(const Ranks& ranks) {
  std::vector<PlanBytes> plans;
  for (size_t r = 0; r < ranks.size(); ++r) {
    plans.push_back(
        described(ranks[r], {static_cast<int32_t>(r), static_cast<int32_t>(ranks.size())}));
  }
  return plans;
}

inline Result<PlanParts> merged(const std::vector<PlanBytes>& plans, const MergeRules& rules) {
  const std::vector<std::span<const std::byte>> views(plans.begin(), plans.end());
  return merge_plans(views, rules);
}

inline MergeRules rules_of(Preset preset, OwnerRule owner, CoverRule cover = CoverRule::kOff) {
  MergeRules rules;
  rules.preset = preset;
  rules.owner = owner;
  rules.cover = cover;
  return rules;
}

// Calls visit(rank, item, number) for each item that the rank of a plan buffer keeps, in the order
// in which it listed them.
template <typename Visit>
void for_each_kept(std::span<const std::byte> local, std::span<const uint32_t> numbers,
                   const Visit& visit) {
  const Result<LocalPlan> plan = decode<LocalPlan>(local);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  const EntryNumbers entries(plan->description);
  const PartView own = view_of(plan->part);
  const RankView rank{plan->description, entries, own, static_cast<uint32_t>(own.rank)};
  bool fits = false;
  const std::map<uint32_t, uint32_t> kept = kept_items(rank, numbers, &fits);
  EXPECT_TRUE(fits) << numbers.size();
  std::vector<uint32_t> scratch;
  for_each_listed(rank, &scratch, [&](uint32_t item) {
    const auto found = kept.find(item);
    if (found != kept.end()) visit(rank, item, found->second);
  });
}

// "a[0:4, 0:4]=0" per kept box and "step" per kept object, in the rank's order.
inline std::vector<std::string> kept_texts(std::span<const std::byte> local,
                                           std::span<const uint32_t> numbers) {
  std::vector<std::string> texts;
  for_each_kept(local, numbers, [&](const RankView& rank, uint32_t item, uint32_t number) {
    const Catalog& catalog = rank.description.catalog;
    const size_t boxes = rank.part.boxes.size();
    const size_t objects = catalog.objects.size();
    if (item >= boxes && item < boxes + objects) {
      EXPECT_EQ(number, 0U);
      texts.emplace_back(catalog.object_name(item - boxes));
      return;
    }
    const size_t t = item < boxes ? rank.part.boxes[item].tensor : item - boxes - objects;
    texts.push_back(
        fmt::format("{}{}={}", catalog.tensor_name(t), box_text(rank.box_of(item)), number));
  });
  return texts;
}

// The same without boxes and numbers: names of what each rank keeps.
inline std::vector<std::string> kept_names(std::span<const std::byte> local,
                                           std::span<const uint32_t> numbers) {
  std::vector<std::string> names = kept_texts(local, numbers);
  for (std::string& name : names) name = name.substr(0, name.find('['));
  return names;
}

inline GlobalSavePlan merged_plan(const PlanParts& parts) {
  Result<GlobalSavePlan> plan = decode<GlobalSavePlan>(parts.part(0));
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.ok() ? *std::move(plan) : GlobalSavePlan();
}

// Names of what each rank keeps.
using Kept = std::vector<std::vector<std::string>>;
inline Kept kept_by_rank(const Ranks& ranks, const MergeRules& rules) {
  const std::vector<PlanBytes> plans = described(ranks);
  const Result<PlanParts> parts = merged(plans, rules);
  EXPECT_TRUE(parts.ok()) << parts.status().to_string();
  Kept kept;
  for (size_t r = 0; parts.ok() && r < ranks.size(); ++r)
    kept.push_back(kept_names(plans[r], parts->numbers(1 + r)));
  return kept;
}

}  // namespace shardwright::plan::test
