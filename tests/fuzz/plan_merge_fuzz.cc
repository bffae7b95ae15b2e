// SPDX-License-Identifier: Apache-2.0
//
// Merging of local plans of several hostile ranks under every preset and owner rule. The plans are
// described entry by entry from the input and then perhaps damaged, or they are the input itself,
// cut into buffers. What is merged must be valid, must keep every box once, and must be the same
// when it is merged again from other addresses; what is refused has a message.
//
//   input = owner + 4 x preset, cover + 3 x verify_replicas, mode, ranks, plans
//   mode  : bit 0 = plans are buffers, bit 1 = the world size is not known, bit 2 = damaged
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/rank_plans.h"
#include "core/plan/save/merge_plans.h"
#include "core/plan/save/merge_policy.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/kept.h"
#include "tests/fuzz/described_ranks.h"

namespace {

using namespace shardwright::plan;
using shardwright::Box;
using shardwright::EntryKind;
using shardwright::Result;
using shardwright::StatusCode;
using shardwright::fuzz::ByteSource;
using shardwright::plan::test::kept_items;

constexpr int32_t kMostRanks = 6;

void check(bool holds) {
  if (!holds) std::abort();
}

struct Input {
  MergeRules rules;
  std::vector<Bytes> plans;
};

Input read_input(ByteSource source) {
  Input input;
  const uint8_t who = source.byte();
  input.rules.owner = static_cast<OwnerRule>(who % 4);
  input.rules.preset = static_cast<Preset>(who / 4 % 3);
  const uint8_t how = source.byte();
  input.rules.cover = static_cast<CoverRule>(how % 3);
  input.rules.verify_replicas = static_cast<VerifyReplicas>(how / 3 % 3);
  const uint8_t mode = source.byte();
  const int32_t ranks = 1 + source.below(kMostRanks);
  if ((mode & 1) != 0) {
    for (int32_t r = 0; r < ranks; ++r)
      input.plans.push_back(shardwright::fuzz::with_plan_frame(source.block()));
    return input;
  }
  input.plans = shardwright::fuzz::described_ranks(&source, ranks, (mode & 2) == 0);
  if ((mode & 4) == 0) return input;
  for (Bytes& plan : input.plans) shardwright::fuzz::damage(&source, &plan);
  return input;
}

Result<PlanParts> merge(const std::vector<Bytes>& plans, const MergeRules& rules) {
  const std::vector<std::span<const std::byte>> views(plans.begin(), plans.end());
  return merge_plans(views, rules);
}

// From buffers that begin one byte behind an aligned address.
Result<PlanParts> merge_shifted(const std::vector<Bytes>& plans, const MergeRules& rules) {
  std::vector<Bytes> shifted = plans;
  std::vector<std::span<const std::byte>> views;
  for (Bytes& plan : shifted) {
    plan.insert(plan.begin(), std::byte{0});
    views.push_back(std::span<const std::byte>(plan).subspan(1));
  }
  return merge_plans(views, rules);
}

// Name of an entry, which is a rank's own when it is rank_local.
using Name = std::pair<std::string, int32_t>;
// Of a box: its offsets, then its sizes where they tell boxes apart. Of an object: nothing.
using Key = std::pair<Name, std::vector<int64_t>>;
struct Held {
  uint64_t times = 0;
  bool has_elements = false;  // of a box; boxes that begin alike may be one
  bool operator==(const Held&) const = default;
};
using Ranks = std::map<int32_t, Held>;
using Items = std::map<Key, Ranks>;

Name name_of(std::string_view name, EntryKind kind, int32_t rank) {
  return {std::string(name), kind == EntryKind::kRankLocal ? rank : -1};
}

Key key_of(Name name, const Box& box, const MergePolicy& policy) {
  std::vector<int64_t> numbers(box.offsets.begin(), box.offsets.end());
  if (policy.key_has_sizes) numbers.insert(numbers.end(), box.sizes.begin(), box.sizes.end());
  return {std::move(name), std::move(numbers)};
}

// A local plan and what its rank keeps of it.
struct Kept {
  LocalPlan plan;
  std::span<const uint32_t> numbers;
  int32_t rank = 0;
};

// Calls visit(rank, item, number): number kNotKept stands for what others write.
template <typename Visit>
void for_each_number(const Kept& kept, const Visit& visit) {
  const EntryNumbers numbers(kept.plan.description);
  const PartView part = view_of(kept.plan.part);
  const RankView rank{kept.plan.description, numbers, part, static_cast<uint32_t>(kept.rank)};
  bool fits = false;
  const std::map<uint32_t, uint32_t> own = kept_items(rank, kept.numbers, &fits);
  check(fits);
  for_each_item(rank, [&](uint32_t item) {
    const auto found = own.find(item);
    visit(rank, item, found == own.end() ? kNotKept : found->second);
  });
}

// The tensor of an item, or none for an object.
std::optional<uint32_t> tensor_of(const RankView& rank, uint32_t item) {
  if (item < rank.part.boxes.size()) return rank.part.boxes[item].tensor;
  if (item < rank.tensor_item(0)) return std::nullopt;
  return item - rank.tensor_item(0);
}

// What ranks list, and what they keep of it.
void collect(const Kept& kept, const MergePolicy& policy, Items* listed, Items* left) {
  for_each_number(kept, [&](const RankView& rank, uint32_t item, uint32_t number) {
    const Catalog& catalog = rank.description.catalog;
    const std::optional<uint32_t> t = tensor_of(rank, item);
    if (!t.has_value()) {
      const size_t i = item - rank.part.boxes.size();
      const Key key = {name_of(catalog.object_name(i), catalog.objects[i].kind, kept.rank), {}};
      ++(*listed)[key][kept.rank].times;
      if (number != kNotKept) ++(*left)[key][kept.rank].times;
      return;
    }
    const Box box = rank.box_of(item);
    // A rule that leaves the rank nothing lists no box of it.
    const bool keep_empty = policy.keep_empty && !rank.description.is_ruled(*t);
    if (!keep_empty && box_is_empty(box)) return check(number == kNotKept);
    const Name name = name_of(catalog.tensor_name(*t), catalog.tensors[*t].kind, kept.rank);
    for (Items* items : {listed, left}) {
      if (items == left && number == kNotKept) continue;
      Held& held = (*items)[key_of(name, box, policy)][kept.rank];
      ++held.times;
      held.has_elements |= !box_is_empty(box);
    }
  });
}

// An empty box stands for no box that has elements.
int32_t lowest_rank(const Ranks& holders) {
  const auto full = std::ranges::find_if(
      holders, [](const Ranks::value_type& holder) { return holder.second.has_elements; });
  return full == holders.end() ? holders.begin()->first : full->first;
}

void check_kept_once(const Items& listed, const Items& kept, const MergePolicy& policy) {
  check(listed.size() == kept.size());
  for (const auto& [key, holders] : listed) {
    const auto found = kept.find(key);
    check(found != kept.end());
    const Ranks& writers = found->second;
    if (policy.choice == MergePolicy::Choice::kAll) {
      check(writers == holders);
      continue;
    }
    check(writers.size() == 1);
    const auto& [writer, written] = *writers.begin();
    const auto held = holders.find(writer);
    check(held != holders.end() &&
          written.times == (policy.twice_on_rank ? held->second.times : 1));
    const bool some_have = holders.at(lowest_rank(holders)).has_elements;
    check(written.has_elements == some_have);
    if (policy.choice == MergePolicy::Choice::kLowestRank) check(writer == lowest_rank(holders));
  }
}

// Where the merged plan has each entry.
std::map<Name, size_t> tensors_by_name(const Catalog& catalog) {
  std::map<Name, size_t> tensors;
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    const TensorRecord& record = catalog.tensors[t];
    check(tensors.emplace(name_of(catalog.tensor_name(t), record.kind, record.rank), t).second);
  }
  return tensors;
}

// Every kept box has a number of its own in the merged plan, which has nothing else.
void check_numbers(const Catalog& merged, const std::vector<Kept>& kept) {
  const std::map<Name, size_t> tensors = tensors_by_name(merged);
  std::set<uint64_t> used;
  for (const Kept& each : kept) {
    for_each_number(each, [&](const RankView& rank, uint32_t item, uint32_t number) {
      const std::optional<uint32_t> t = tensor_of(rank, item);
      if (!t.has_value()) return check(number == kNotKept || number == 0);
      if (number == kNotKept) return;
      const Catalog& own = rank.description.catalog;
      const auto found =
          tensors.find(name_of(own.tensor_name(*t), own.tensors[*t].kind, each.rank));
      check(found != tensors.end());
      const TensorRecord& tensor = merged.tensors[found->second];
      check(number < tensor.chunk_count);
      const uint64_t chunk = tensor.chunk_begin + number;
      check(used.insert(chunk).second);
      check(merged.chunk_box(chunk) == rank.box_of(item));
      check(merged.place_of(chunk) == rank.rank);
    });
  }
  check(used.size() == merged.chunk_count());
}

// Boxes that have elements are apart, and with the full rule they are all there is. Where every
// replica is a chunk of its own, this holds of the distinct ones.
void check_cover(const Catalog& merged, const MergeRules& rules) {
  constexpr size_t kMostBoxes = 64;  // all pairs are looked at
  for (size_t t = 0; t < merged.tensors.size(); ++t) {
    const TensorRecord& tensor = merged.tensors[t];
    if (tensor.chunk_count > kMostBoxes) continue;
    std::vector<Box> boxes;
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
      Box box = merged.chunk_box(c);
      if (box_is_empty(box)) continue;
      if (rules.owner == OwnerRule::kAll && std::ranges::find(boxes, box) != boxes.end()) continue;
      for (const Box& other : boxes) check(box_is_empty(intersect(box, other)));
      boxes.push_back(std::move(box));
    }
    if (rules.cover != CoverRule::kFull) continue;
    int64_t elements = 0;  // of boxes that are apart: no more than the tensor has
    for (const Box& box : boxes) elements += box_element_count(box);
    check(elements == shardwright::element_count_of(merged.shape(t)));
  }
}

void check_merged(const Input& input, const PlanParts& parts) {
  const MergePolicy policy = merge_policy(input.rules.preset, input.rules.owner);
  check(parts.size() == 1 + input.plans.size());
  Items listed;
  Items left;
  std::vector<Kept> kept;
  for (size_t r = 0; r < input.plans.size(); ++r) {
    Result<LocalPlan> local = decode<LocalPlan>(input.plans[r]);
    check(local.ok());
    kept.push_back({*std::move(local), parts.numbers(1 + r), static_cast<int32_t>(r)});
    collect(kept.back(), policy, &listed, &left);
  }
  check_kept_once(listed, left, policy);
  check(validate_plan(parts.part(0)).empty());
  const Result<GlobalSavePlan> merged = decode<GlobalSavePlan>(parts.part(0));
  check(merged.ok());
  check_numbers(merged->catalog, kept);
  if (input.rules.cover != CoverRule::kOff) check_cover(merged->catalog, input.rules);
}

void check_equal(const PlanParts& a, const PlanParts& b) {
  check(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) check(std::ranges::equal(a.part(i), b.part(i)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Input input = read_input(ByteSource({reinterpret_cast<const std::byte*>(data), size}));
  if (input.plans.empty()) return 0;
  const Result<PlanParts> parts = merge(input.plans, input.rules);
  if (!parts.ok()) {
    check(!parts.status().message().empty() && parts.status().code() != StatusCode::kInternal);
    return 0;
  }
  check_merged(input, *parts);
  const Result<PlanParts> again = merge_shifted(input.plans, input.rules);
  check(again.ok());
  check_equal(*parts, *again);
  return 0;
}
