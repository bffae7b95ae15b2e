// SPDX-License-Identifier: Apache-2.0
//
// What ranks offer and what the coordinator answers, as any bytes. What is read is written to the
// same bytes; numbers of sets stay below the counts of the state; spans stay inside the offers.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/exec/plan_offer_internal.h"
#include "tests/fuzz/byte_source.h"

namespace {

using namespace shardwright::exec::internal;
using shardwright::fuzz::ByteSource;

constexpr size_t kMostRanks = 5;

void check(bool holds) {
  if (!holds) __builtin_trap();
}

bool inside(std::span<const std::byte> part, const std::vector<Bytes>& offers) {
  for (const Bytes& offer : offers) {
    if (part.data() >= offer.data() && part.data() + part.size() <= offer.data() + offer.size())
      return true;
  }
  return part.empty();
}

void check_offers(ByteSource* source) {
  std::vector<Bytes> offers(source->below(kMostRanks) + 1);
  for (Bytes& offer : offers) {
    const auto bytes = source->block();
    offer.assign(bytes.begin(), bytes.end());
  }
  const auto read = read_offers(offers);
  if (!read.ok()) {
    check(read.status().code() == shardwright::StatusCode::kInvalidArgument);
    check(!read.status().detail("rank").empty());
    return;
  }
  check(read->share_count <= offers.size() && read->keys.size() <= offers.size());
  check(read->digests.size() == read->keys.size());
  for (const auto* list : {&read->parts, &read->descriptions}) {
    for (const OfferedPlan& plan : *list)
      check(plan.rank < offers.size() && inside(plan.bytes, offers));
  }
}

void check_answer(ByteSource* source) {
  const auto tensors = source->below<size_t>(0x10000);
  const auto objects = source->below<size_t>(0x10000);
  const std::span<const std::byte> bytes = source->block();
  const auto answer = decode_answer(bytes, tensors, objects);
  if (!answer.ok()) return;
  const Bytes written = encode_answer(*answer);
  check(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()));
  for (const auto& set : answer->sets) {
    check(set.position < set.size);
    for (const uint32_t tensor : set.tensors) check(tensor < tensors);
    for (const uint32_t object : set.objects) check(object < objects);
  }
  const bool plan = answer->kind == Answer::Kind::kPlan || answer->kind == Answer::Kind::kAsBefore;
  check(asks_for_offer(bytes) != plan);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteSource source({reinterpret_cast<const std::byte*>(data), size});
  if (source.byte() % 2 == 0) {
    check_offers(&source);
  } else {
    check_answer(&source);
  }
  return 0;
}
