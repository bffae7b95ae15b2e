// SPDX-License-Identifier: Apache-2.0
//
// What ranks tell each other until each has its write list: requests to the coordinator, replies
// from it. A request is a checksum of 16 bytes, when the rank remembers a plan for what it
// describes. Else it is the rank's key with the digest of its description and what it adds to it;
// descriptions follow when they are asked for, one per distinct digest. Values and bytes; pure
// functions.
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

Bytes encode_request(const plan::Checksum& checksum);
// part: a plan buffer, empty for a rank that adds nothing.
Bytes encode_request(const Digest128& key, const Digest128& description,
                     std::span<const std::byte> part);
Bytes encode_description_request(std::span<const std::byte> description);
Bytes encode_empty_request();  // while others send their descriptions

// A plan buffer that a rank sent.
struct SentPlan {
  size_t rank = 0;
  std::span<const std::byte> bytes;
};

// The requests of all ranks.
struct PlanRequests {
  size_t checksum_count = 0;
  plan::Checksum sum;  // of the checksums
  // Of ranks that sent a key, in rank order.
  std::vector<Digest128> keys;
  std::vector<Digest128> digests;
  std::vector<SentPlan> parts;         // of the ranks that have one
  std::vector<SentPlan> descriptions;  // of the ranks that sent one
};
// INVALID_ARGUMENT naming the rank whose request is none of these. The result borrows.
Result<PlanRequests> read_requests(std::span<const Bytes> requests);

struct PlanReply {
  enum class Kind : uint8_t {
    kSendRequest = 1,      // checksums do not do: all ranks say again, without what they remember
    kPlan = 2,             // what the rank writes of a new plan, and what to remember of it
    kAsBefore = 3,         // the list that the rank remembers, under a new generation
    kSendDescription = 4,  // the rank is the first with its description
    kWait = 5              // other ranks send their descriptions
  };
  Kind kind = Kind::kSendRequest;
  std::string generation;  // of a plan, as all else
  Digest128 plan_digest{};
  Digest128 local_digest{};  // of the local plan that this is about
  Digest128 world{};
  plan::ReplicaSets sets;
  uint64_t bit_count = 0;      // as plan::KeptItems has them
  std::vector<uint64_t> kept;  // bits
  std::vector<uint32_t> order;
};
Bytes encode_reply(const PlanReply& reply);
// Sets are checked against the numbers of entries of the rank's state; bits have zeros behind the
// last, and an order has each number once. DATA_LOSS.
Result<PlanReply> decode_reply(std::span<const std::byte> bytes, size_t tensors, size_t objects);
// Whether the reply asks for a further request. Of the replies of one exchange all do, or none.
bool asks_again(std::span<const std::byte> reply);

}  // namespace shardwright::exec::internal
