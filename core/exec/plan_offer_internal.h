// SPDX-License-Identifier: Apache-2.0
//
// What ranks tell each other until each has its write list: offers to the coordinator, answers from
// it. An offer is a share of 16 bytes, when the rank remembers a plan for what it describes, or its
// key and its local plan. Values and bytes; pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/exec/plan_cache.h"
#include "core/plan/wire/wire.h"

namespace shardwright::exec::internal {

using plan::Bytes;

Bytes encode_offer(const plan::Share& share);
Bytes encode_offer(const Digest128& key, std::span<const std::byte> local_plan);

// The offers of all ranks.
struct Offers {
  size_t share_count = 0;
  plan::Share sum;  // of the shares
  // Of ranks that sent a local plan, in rank order.
  std::vector<Digest128> keys;
  std::vector<std::span<const std::byte>> local_plans;
};
// INVALID_ARGUMENT naming the rank whose offer is neither. The result borrows.
Result<Offers> read_offers(std::span<const Bytes> offers);

struct Answer {
  enum class Kind : uint8_t {
    kSendLocalPlan = 1,  // shares do not do: all ranks offer their local plans
    kWriteList = 2,      // a new plan, and what to remember of it
    kAsBefore = 3        // the list that the rank remembers, under a new generation
  };
  Kind kind = Kind::kSendLocalPlan;
  std::string generation;  // kAsBefore
  Digest128 world{};       // kWriteList, as the rest
  plan::ReplicaSets sets;
  Bytes list;  // plan buffer
};
Bytes encode_answer(const Answer& answer);
// Sets are checked against the numbers of entries of the rank's state. DATA_LOSS.
Result<Answer> decode_answer(std::span<const std::byte> bytes, size_t tensors, size_t objects);
// Whether the answer asks for the local plan.
bool asks_for_local_plan(std::span<const std::byte> answer);

}  // namespace shardwright::exec::internal
