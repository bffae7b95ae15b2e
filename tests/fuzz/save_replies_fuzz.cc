// SPDX-License-Identifier: Apache-2.0
//
// What ranks request and what the coordinator replies, as any bytes. What is read is written to the
// same bytes; numbers of sets stay below the counts of the state; spans stay inside the requests.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/exec/plan_request_internal.h"
#include "tests/fuzz/byte_source.h"

namespace {

using namespace shardwright::exec::internal;
using shardwright::fuzz::ByteSource;

constexpr size_t kMostRanks = 5;

void check(bool holds) {
  if (!holds) __builtin_trap();
}

bool inside(std::span<const std::byte> part, const std::vector<Bytes>& requests) {
  for (const Bytes& request : requests) {
    if (part.data() >= request.data() &&
        part.data() + part.size() <= request.data() + request.size())
      return true;
  }
  return part.empty();
}

void check_requests(ByteSource* source) {
  std::vector<Bytes> requests(source->below(kMostRanks) + 1);
  for (Bytes& request : requests) {
    const auto bytes = source->block();
    request.assign(bytes.begin(), bytes.end());
  }
  const auto read = read_requests(requests);
  if (!read.ok()) {
    check(read.status().code() == shardwright::StatusCode::kInvalidArgument);
    check(!read.status().detail("rank").empty());
    return;
  }
  check(read->checksum_count <= requests.size() && read->keys.size() <= requests.size());
  check(read->digests.size() == read->keys.size());
  for (const auto* list : {&read->parts, &read->descriptions}) {
    for (const SentPlan& plan : *list)
      check(plan.rank < requests.size() && inside(plan.bytes, requests));
  }
}

void check_reply(ByteSource* source) {
  const auto tensors = source->below<size_t>(0x10000);
  const auto objects = source->below<size_t>(0x10000);
  const std::span<const std::byte> bytes = source->block();
  const auto reply = decode_reply(bytes, tensors, objects);
  if (!reply.ok()) return;
  const Bytes written = encode_reply(*reply);
  check(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()));
  for (const auto& set : reply->sets) {
    check(set.position < set.size);
    for (const uint32_t tensor : set.tensors) check(tensor < tensors);
    for (const uint32_t object : set.objects) check(object < objects);
  }
  const bool plan =
      reply->kind == PlanReply::Kind::kPlan || reply->kind == PlanReply::Kind::kAsBefore;
  check(asks_again(bytes) != plan);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteSource source({reinterpret_cast<const std::byte*>(data), size});
  if (source.byte() % 2 == 0) {
    check_requests(&source);
  } else {
    check_reply(&source);
  }
  return 0;
}
