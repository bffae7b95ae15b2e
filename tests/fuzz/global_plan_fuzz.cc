// SPDX-License-Identifier: Apache-2.0
//
// Plans of hostile descriptions and parts of several ranks. They are described entry by entry from
// the input and then perhaps damaged on their way, or they are the input itself, cut into buffers.
// The plan is that of the same ranks described box by box; where it is refused, that is refused
// too.
//
//   input = rules, mode, ranks, descriptions
//   rules : owner and preset 0 to 5, + 8 x verify_replicas
//   mode  : bit 0 = buffers of local plans; bit 1 = damaged; bit 2 = parts keep the rank, the world
//           size and the digest that they came with
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/rank_plans.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/replica_sets.h"
#include "core/plan/save/write_items.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/explicit_plan.h"
#include "tests/fuzz/described_job.h"

namespace {

using namespace shardwright::plan;
using shardwright::Result;
using shardwright::Status;
using shardwright::StatusCode;
using shardwright::fuzz::ByteSource;

constexpr int32_t kMostRanks = 12;
constexpr char kGeneration[] = "0123456789abcdef0123456789abcdef";

void check(bool holds) {
  if (!holds) std::abort();
}

void check_reason(const Status& status) {
  check(!status.message().empty() && status.code() != StatusCode::kInternal);
}

SaveRules read_rules(uint8_t byte) {
  constexpr std::array<std::pair<OwnerRule, Preset>, 6> kRules = {
      {{OwnerRule::kBalanced, Preset::kHyperparallel},
       {OwnerRule::kLowestRank, Preset::kHyperparallel},
       {OwnerRule::kExact, Preset::kMegatron},
       {OwnerRule::kBalanced, Preset::kTorch},
       {OwnerRule::kLowestRank, Preset::kMegatron},
       {OwnerRule::kExact, Preset::kHyperparallel}}};
  SaveRules rules;
  std::tie(rules.owner, rules.preset) = kRules[byte % 8 % kRules.size()];
  rules.verify_replicas = static_cast<VerifyReplicas>(byte / 8 % 3);
  return rules;
}

// What the coordinator receives: through buffers, which may be damaged on the way.
class Exchange {
 public:
  Exchange(ByteSource source, SaveRules rules) : source_(source), rules_(std::move(rules)) {
    mode_ = source_.byte();
    ranks_ = 1 + source_.below(kMostRanks);
  }

  // Empty when the input describes nothing that can be decoded.
  std::vector<LocalPlan> locals() {
    std::vector<LocalPlan> locals = (mode_ & 1) != 0 ? decoded() : described();
    if ((mode_ & 2) != 0 && !damage(&locals)) return {};
    return locals;
  }

  Result<RankPlans> gather(const std::vector<LocalPlan>& locals) const {
    std::vector<shardwright::Digest128> digests;
    for (const LocalPlan& local : locals) {
      SHW_ASSIGN_OR_RETURN(digests.emplace_back(), description_digest(local.description));
    }
    std::vector<Description> descriptions;
    for (const int32_t rank : representative_ranks(digests))
      descriptions.push_back(locals[static_cast<size_t>(rank)].description);
    std::vector<LocalPart> parts;
    for (size_t r = 0; r < locals.size(); ++r) {
      parts.push_back(locals[r].part);
      if ((mode_ & 4) != 0) continue;
      parts.back().rank = static_cast<int32_t>(r);
      parts.back().world_size = static_cast<int32_t>(locals.size());
      parts.back().description_digest = digests[r];
    }
    return make_rank_plans(digests, std::move(descriptions), std::move(parts));
  }

 private:
  std::vector<LocalPlan> described() {
    return shardwright::fuzz::described_job(&source_, ranks_, rules_);
  }

  // Ranks without a buffer of their own have that of another one.
  std::vector<LocalPlan> decoded() {
    std::vector<LocalPlan> given;
    while (!source_.ended() && given.size() < static_cast<size_t>(ranks_)) {
      const Bytes buffer = shardwright::fuzz::with_plan_frame(source_.block());
      Result<LocalPlan> local = decode<LocalPlan>(buffer);
      if (!local.ok()) return {};
      given.push_back(*std::move(local));
    }
    if (given.empty()) return {};
    std::vector<LocalPlan> locals;
    for (size_t r = 0; r < static_cast<size_t>(ranks_); ++r)
      locals.push_back(given[r % given.size()]);
    return locals;
  }

  bool damage(std::vector<LocalPlan>* locals) {
    for (LocalPlan& local : *locals) {
      Result<Bytes> description = encode(local.description);
      Result<Bytes> part = encode(local.part);
      check(description.ok() && part.ok());
      shardwright::fuzz::damage(&source_, &*description);
      shardwright::fuzz::damage(&source_, &*part);
      Result<Description> left = decode<Description>(*description);
      Result<LocalPart> rest = decode<LocalPart>(*part);
      if (!left.ok() || !rest.ok()) return false;
      local = {*std::move(left), *std::move(rest)};
    }
    return true;
  }

  ByteSource source_;
  SaveRules rules_;
  uint8_t mode_ = 0;
  int32_t ranks_ = 1;
};

// How the rank lists what it has, less the boxes that hold nothing: some owners are chosen by it.
Listing listing_of_boxes(const RankView& rank) {
  constexpr uint32_t kGone = 0xFFFFFFFF;
  const ListingView& from = rank.part.listing;
  Listing listing;
  listing.object_begins.assign(from.object_begins.begin(), from.object_begins.end());
  const uint32_t objects = rank.object_item(0);
  const uint32_t tensors = rank.tensor_item(0);
  std::vector<uint32_t> left;  // of each item: its number among those that are left
  uint32_t next = 0;
  for_each_item(rank, [&](uint32_t item) {
    const bool is_object = item >= objects && item < tensors;
    const bool gone = !is_object && box_is_empty(rank.box_of(item));
    left.push_back(gone ? kGone : next++);
    if (!is_object && !gone && !from.secondary.empty())
      listing.secondary.push_back(item < objects ? from.secondary[item] : 0);
  });
  for (const uint32_t item : from.order) {
    if (left[item] != kGone) listing.order.push_back(left[item]);
  }
  return listing;
}

// The plan of the ranks described box by box.
Result<GlobalSavePlan> plan_of_boxes(const RankPlans& ranks, const SaveRules& rules) {
  SHW_ASSIGN_OR_RETURN(RankPlans listed, shardwright::plan::test::listed_ranks(ranks));
  listed.parts.resize(ranks.rank_count());
  std::vector<Listing> listings;
  for (uint32_t r = 0; r < ranks.rank_count(); ++r)
    listings.push_back(listing_of_boxes(ranks.of(r)));
  for (size_t r = 0; r < listings.size(); ++r) listed.parts[r].listing = view_of(listings[r]);
  return make_global_plan(listed, rules);
}

std::vector<WriteItem> items_of(const RankPlans& ranks, const GlobalSavePlan& plan, uint32_t rank) {
  return write_items(ranks.of(rank), plan.writes.kept.bits(rank), plan.writes.kept.order(rank));
}

// Each rank makes the items of its list that the plan counts, and all lists together are the
// catalog.
void check_lists(const RankPlans& ranks, const GlobalSavePlan& plan) {
  uint64_t items = 0;
  uint64_t bytes = 0;
  for (uint32_t r = 0; r < ranks.rank_count(); ++r) {
    const std::vector<WriteItem> list = items_of(ranks, plan, r);
    check(list.size() == plan.writes.item_counts[r]);
    check(payload_bytes(list) == plan.writes.bytes[r]);
    items += list.size();
    bytes += payload_bytes(list);
  }
  check(items == plan.catalog.chunk_count() + plan.catalog.objects.size());
  check(bytes == plan.catalog.payload_bytes());
}

bool lists_empty_boxes(const RankPlans& ranks) {
  for (uint32_t r = 0; r < ranks.rank_count(); ++r) {
    const RankView rank = ranks.of(r);
    for (uint32_t b = 0; b < rank.part.boxes.size(); ++b) {
      if (box_is_empty(rank.box_of(b))) return true;
    }
  }
  return false;
}

void check_same_chunks(const Catalog& found, const Catalog& expected) {
  check(found.tensors.size() == expected.tensors.size());
  check(found.chunk_count() == expected.chunk_count());
  for (size_t t = 0; t < found.tensors.size(); ++t) {
    check(found.tensor_name(t) == expected.tensor_name(t));
    check(found.tensors[t].rank == expected.tensors[t].rank);
    check(found.tensors[t].chunk_begin == expected.tensors[t].chunk_begin);
  }
  for (uint64_t c = 0; c < found.chunk_count(); ++c) {
    check(found.chunk_box(c) == expected.chunk_box(c));
    check(found.place_of(c) == expected.place_of(c));
  }
  check(found.objects.size() == expected.objects.size());
  for (size_t i = 0; i < found.objects.size(); ++i) {
    check(found.object_name(i) == expected.object_name(i));
    check(found.objects[i].rank == expected.objects[i].rank);
    check(found.objects[i].place == expected.objects[i].place);
  }
}

// Empty boxes may split dimensions of a tensor that no chunk of it splits, and change nothing else.
void check_equal(const RankPlans& ranks, const GlobalSavePlan& plan,
                 const GlobalSavePlan& expected) {
  check(plan.plan_digest == expected.plan_digest || lists_empty_boxes(ranks));
  check_same_chunks(plan.catalog, expected.catalog);
  check(plan.writes.bytes == expected.writes.bytes);
  check(plan.writes.item_counts == expected.writes.item_counts);
  GlobalSavePlan named = plan;
  named.generation = kGeneration;
  const Result<Bytes> bytes = encode(named);
  check(bytes.ok() && validate_plan(*bytes).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteSource source({reinterpret_cast<const std::byte*>(data), size});
  const SaveRules rules = read_rules(source.byte());
  Exchange exchange(source, rules);
  const std::vector<LocalPlan> locals = exchange.locals();
  if (locals.empty()) return 0;
  const Result<RankPlans> ranks = exchange.gather(locals);
  if (!ranks.ok()) {
    check_reason(ranks.status());
    return 0;
  }
  const Result<GlobalSavePlan> plan = make_global_plan(*ranks, rules);
  if (!plan.ok()) check_reason(plan.status());
  const Result<GlobalSavePlan> expected = plan_of_boxes(*ranks, rules);
  check(plan.ok() == expected.ok());
  if (!plan.ok()) return 0;
  check_equal(*ranks, *plan, *expected);
  check_lists(*ranks, *plan);
  check(replica_sets(*ranks).ok());
  return 0;
}
