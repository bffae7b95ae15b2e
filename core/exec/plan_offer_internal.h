// SPDX-License-Identifier: Apache-2.0
//
// What ranks tell each other until each has its write list: offers to the coordinator, answers from
// it. An offer is a share of 16 bytes, when the rank remembers a plan for what it describes. Else
// it is the rank's key with the digest of its description and what it adds to it; descriptions
// follow when they are asked for, one per distinct digest. Values and bytes; pure functions.
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
// part: a plan buffer, empty for a rank that adds nothing.
Bytes encode_offer(const Digest128& key, const Digest128& description,
                   std::span<const std::byte> part);
Bytes encode_description_offer(std::span<const std::byte> description);
Bytes encode_empty_offer();  // while others send their descriptions

// A plan buffer that a rank sent.
struct OfferedPlan {
  size_t rank = 0;
  std::span<const std::byte> bytes;
};

// The offers of all ranks.
struct Offers {
  size_t share_count = 0;
  plan::Share sum;  // of the shares
  // Of ranks that sent a key, in rank order.
  std::vector<Digest128> keys;
  std::vector<Digest128> digests;
  std::vector<OfferedPlan> parts;         // of the ranks that have one
  std::vector<OfferedPlan> descriptions;  // of the ranks that sent one
};
// INVALID_ARGUMENT naming the rank whose offer is none of these. The result borrows.
Result<Offers> read_offers(std::span<const Bytes> offers);

struct Answer {
  enum class Kind : uint8_t {
    kSendOffer = 1,        // shares do not do: all ranks offer again without what they remember
    kPlan = 2,             // what the rank writes of a new plan, and what to remember of it
    kAsBefore = 3,         // the list that the rank remembers, under a new generation
    kSendDescription = 4,  // the rank is the first with its description
    kWait = 5              // other ranks send their descriptions
  };
  Kind kind = Kind::kSendOffer;
  std::string generation;  // of a plan, as all else
  Digest128 plan_digest{};
  Digest128 local_digest{};  // of the local plan that this answers
  Digest128 world{};
  plan::ReplicaSets sets;
  uint64_t bit_count = 0;      // as plan::KeptItems has them
  std::vector<uint64_t> kept;  // bits
  std::vector<uint32_t> order;
};
Bytes encode_answer(const Answer& answer);
// Sets are checked against the numbers of entries of the rank's state; bits have zeros behind the
// last, and an order has each number once. DATA_LOSS.
Result<Answer> decode_answer(std::span<const std::byte> bytes, size_t tensors, size_t objects);
// Whether the answer asks for a further offer. Of the answers of one meeting all do, or none.
bool asks_for_offer(std::span<const std::byte> answer);

}  // namespace shardwright::exec::internal
