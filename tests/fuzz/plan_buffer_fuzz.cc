// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a plan buffer. They are decoded as they are, and again with prefix and identifier
// repaired, so that mutations reach the verifier and the meaning behind it. Findings and decoding
// agree; what decodes must encode and decode to the same bytes; its JSON can be written.
#include "core/plan/wire/wire.h"
#include "tests/core/plan/wire/plan_kind.h"
#include "tests/fuzz/byte_source.h"

namespace {

using shardwright::Result;
using shardwright::plan::Bytes;
using shardwright::plan::PlanKind;

template <typename Plan>
void check_round_trip(const Result<Plan>& plan, Result<Plan> (*decode)(std::span<const std::byte>),
                      bool sound) {
  if (plan.ok() != sound) __builtin_trap();
  if (!plan.ok()) return;
  const Result<Bytes> encoded = encode(*plan);
  if (!encoded.ok()) __builtin_trap();
  const Result<Plan> again = decode(*encoded);
  if (!again.ok()) __builtin_trap();
  const Result<Bytes> encoded_again = encode(*again);
  if (!encoded_again.ok() || *encoded_again != *encoded) __builtin_trap();
}

// The view that reads in place says the same as the decoder that copies, but for the place of the
// rank: as the only one it is refused unless it is the only one, or does not know.
void check_opens(std::span<const std::byte> bytes, bool sound) {
  using namespace shardwright::plan;
  const Result<LocalPlan> plan = decode<LocalPlan>(bytes);
  const bool alone = plan.ok() && (plan->part.world_size == 0 ||
                                   (plan->part.rank == 0 && plan->part.world_size == 1));
  if (open_local_saves(std::span(&bytes, 1)).ok() != (sound && alone)) __builtin_trap();
  if (!plan.ok() || alone) return;
  LocalPlan moved = *plan;
  moved.part.rank = 0;
  moved.part.world_size = 1;
  const Result<Bytes> encoded = encode(moved);
  if (!encoded.ok()) __builtin_trap();
  const std::span<const std::byte> view = *encoded;
  if (!open_local_saves(std::span(&view, 1)).ok()) __builtin_trap();
}

void check(std::span<const std::byte> bytes) {
  using namespace shardwright::plan;
  const bool sound = validate_plan(bytes).empty();
  const Result<PlanKind> kind = test::plan_kind(bytes);
  if (sound != plan_json(bytes, 10).ok()) __builtin_trap();
  if (!kind.ok()) return;
  switch (*kind) {
    case PlanKind::kLocalSave:
      check_opens(bytes, sound);
      return check_round_trip(decode<LocalPlan>(bytes), decode<LocalPlan>, sound);
    case PlanKind::kWriteList:
      return check_round_trip(decode<WriteList>(bytes), decode<WriteList>, sound);
    case PlanKind::kLoad:
      return check_round_trip(decode<LoadPlan>(bytes), decode<LoadPlan>, sound);
    case PlanKind::kWriteResult:
      return check_round_trip(decode<WriteResult>(bytes), decode<WriteResult>, sound);
    case PlanKind::kMergedSave:
      if (decode<GlobalSavePlan>(bytes).ok() != sound) __builtin_trap();
      return;
    case PlanKind::kDescription:
      return check_round_trip(decode<Description>(bytes), decode<Description>, sound);
    case PlanKind::kWantList:
      return check_round_trip(decode<WantList>(bytes), decode<WantList>, sound);
    case PlanKind::kExchange:
      return check_round_trip(decode<ExchangePlan>(bytes), decode<ExchangePlan>, sound);
    case PlanKind::kLocalPart:
      return check_round_trip(decode<LocalPart>(bytes), decode<LocalPart>, sound);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  check(bytes);
  check(shardwright::fuzz::with_plan_frame(bytes));
  return 0;
}
