// SPDX-License-Identifier: Apache-2.0
//
// Symbolic plans of hostile descriptions and parts of several ranks. They are described entry by
// entry from the input and then perhaps damaged on their way, or they are the input itself, cut into
// buffers. The plan is that of the explicit local plans that the descriptions stand for; where it is
// refused, those are refused too.
//
//   input = rules, mode, ranks, descriptions
//   rules : owner and preset 0 to 5, + 8 x verify_replicas
//   mode  : bit 0 = buffers, each with a description and a part; bit 1 = damaged; bit 2 = parts keep
//           the rank, the world size and the digest that they came with
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "core/plan/describe/explicit_plan.h"
#include "core/plan/describe/gather_descriptions.h"
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
      {{OwnerRule::kBalanced, Preset::kStandard},
       {OwnerRule::kLowestRank, Preset::kStandard},
       {OwnerRule::kExact, Preset::kMegatron},
       {OwnerRule::kBalanced, Preset::kDefault},
       {OwnerRule::kLowestRank, Preset::kMegatron},
       {OwnerRule::kExact, Preset::kStandard}}};
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
  std::vector<LocalSymbolicPlan> locals() {
    std::vector<LocalSymbolicPlan> locals = (mode_ & 1) != 0 ? decoded() : described();
    if ((mode_ & 2) != 0 && !damage(&locals)) return {};
    return locals;
  }

  Result<RankDescriptions> gather(const std::vector<LocalSymbolicPlan>& locals) const {
    std::vector<Digest128> digests;
    for (const LocalSymbolicPlan& local : locals) {
      SHW_ASSIGN_OR_RETURN(digests.emplace_back(), symbolic_digest(local.description));
    }
    std::vector<SymbolicDescription> descriptions;
    for (const int32_t rank : representative_ranks(digests))
      descriptions.push_back(locals[static_cast<size_t>(rank)].description);
    std::vector<SymbolicPart> parts;
    for (size_t r = 0; r < locals.size(); ++r) {
      parts.push_back(locals[r].part);
      if ((mode_ & 4) != 0) continue;
      parts.back().rank = static_cast<int32_t>(r);
      parts.back().world_size = static_cast<int32_t>(locals.size());
      parts.back().description_digest = digests[r];
    }
    return make_rank_descriptions(digests, std::move(descriptions), std::move(parts));
  }

 private:
  std::vector<LocalSymbolicPlan> described() {
    return shardwright::fuzz::described_job(&source_, ranks_, rules_);
  }

  // Ranks without a buffer of their own have that of another one.
  std::vector<LocalSymbolicPlan> decoded() {
    std::vector<LocalSymbolicPlan> given;
    while (!source_.ended() && given.size() < static_cast<size_t>(ranks_)) {
      const Bytes buffer = shardwright::fuzz::with_plan_frame(source_.block());
      Result<LocalSymbolicPlan> local = decode_symbolic_local(buffer);
      if (!local.ok()) return {};
      given.push_back(*std::move(local));
    }
    if (given.empty()) return {};
    std::vector<LocalSymbolicPlan> locals;
    for (size_t r = 0; r < static_cast<size_t>(ranks_); ++r)
      locals.push_back(given[r % given.size()]);
    return locals;
  }

  bool damage(std::vector<LocalSymbolicPlan>* locals) {
    for (LocalSymbolicPlan& local : *locals) {
      Result<Bytes> description = encode(local.description);
      Result<Bytes> part = encode(local.part);
      check(description.ok() && part.ok());
      shardwright::fuzz::damage(&source_, &*description);
      shardwright::fuzz::damage(&source_, &*part);
      Result<SymbolicDescription> left = decode_symbolic_save(*description);
      Result<SymbolicPart> rest = decode_symbolic_part(*part);
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

Result<GlobalSavePlan> explicit_plan(const RankDescriptions& ranks, const SaveRules& rules) {
  std::vector<LocalSavePlan> locals;
  for (int32_t r = 0; r < ranks.rank_count(); ++r) {
    Result<LocalSavePlan> local = expand_local_plan(ranks, r);
    if (!local.ok()) return std::move(local).status();
    locals.push_back(*std::move(local));
  }
  return make_global_plan(locals, rules);
}

std::vector<WriteItem> items_of(const RankPlans& ranks, const GlobalSavePlan& plan, uint32_t rank) {
  return write_items(ranks.of(rank), plan.writes.kept.bits(rank), plan.writes.kept.order(rank));
}

// Each rank makes the items of its list that the plan counts, and all lists together are the catalog.
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

void check_equal(const GlobalSavePlan& plan, const GlobalSavePlan& expected) {
  check(plan.plan_digest == expected.plan_digest);
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
  const std::vector<LocalSymbolicPlan> locals = exchange.locals();
  if (locals.empty()) return 0;
  const Result<RankDescriptions> ranks = exchange.gather(locals);
  if (!ranks.ok()) {
    check_reason(ranks.status());
    return 0;
  }
  const RankPlans plans = rank_plans_of(*ranks);
  const Result<GlobalSavePlan> plan = make_global_plan(plans, rules);
  if (!plan.ok()) check_reason(plan.status());
  const Result<GlobalSavePlan> expected = explicit_plan(*ranks, rules);
  check(plan.ok() == expected.ok());
  if (!plan.ok()) return 0;
  check_equal(*plan, *expected);
  check_lists(plans, *plan);
  check(replica_sets(plans).ok());
  return 0;
}
