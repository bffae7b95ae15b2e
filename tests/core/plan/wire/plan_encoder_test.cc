// SPDX-License-Identifier: Apache-2.0
//
// Memory that plans are encoded in: lent, outgrown, too small.
#include "core/plan/wire/plan_encoder.h"

#include <algorithm>
#include <array>

#include <flatbuffers/flatbuffer_builder.h>

#include "core/plan/wire/large_allocator_internal.h"
#include "tests/core/plan/wire/plan_samples.h"

namespace shardwright::plan::test {
namespace {

GlobalSavePlan sample_merged() {
  Result<GlobalSavePlan> plan = decode_merged_save(sample_merged_part(0));
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return *std::move(plan);
}

TEST(PlanParts, TheFirstPlanIsEncodedWhereItStays) {
  const GlobalSavePlan plan = sample_merged();
  const std::vector<std::byte> expected = encoded(plan);
  PlanParts parts(merged_save_wire_bytes(plan) + 100);
  ASSERT_TRUE(parts.append_first(plan).ok());
  ASSERT_TRUE(parts.append(expected).ok());
  EXPECT_TRUE(std::ranges::equal(parts.part(0), expected));
  EXPECT_TRUE(std::ranges::equal(parts.part(1), expected));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(parts.part(0).data()) % 64, 0U);
  EXPECT_FAILURE(parts.append_first(plan), StatusCode::kInternal, "first");
  EXPECT_EQ(parts.size(), 2U);
}

TEST(PlanParts, PlansThatDoNotFitAreRefused) {
  const GlobalSavePlan plan = sample_merged();
  for (const size_t capacity : {size_t{0}, size_t{64}, encoded(plan).size() - 1}) {
    PlanParts parts(capacity);
    EXPECT_FAILURE(parts.append_first(plan), StatusCode::kInternal, "outgrow");
    EXPECT_EQ(parts.size(), 0U);
  }
}

TEST(LentMemory, ABuilderThatOutgrowsItGoesOnInItsOwn) {
  alignas(16) std::array<std::byte, 128> memory{};
  internal::LentMemory lent(memory);
  flatbuffers::FlatBufferBuilder builder(memory.size(), &lent);
  const std::vector<uint8_t> few = {1, 2, 3};
  builder.CreateVector(few);
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetCurrentBufferPointer());
  EXPECT_TRUE(begin >= memory.data() && begin < memory.data() + memory.size());
  std::vector<uint64_t> many(1000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = i;
  builder.Finish(builder.CreateVector(many));
  begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  EXPECT_FALSE(begin >= memory.data() && begin < memory.data() + memory.size());
  const auto* back =
      flatbuffers::GetRoot<flatbuffers::Vector<uint64_t>>(builder.GetBufferPointer());
  EXPECT_TRUE(std::ranges::equal(*back, many));
  flatbuffers::FlatBufferBuilder larger(4 * memory.size(), &lent);
  larger.Finish(larger.CreateVector(few));
  EXPECT_GT(larger.GetSize(), 0U);
}

}  // namespace
}  // namespace shardwright::plan::test
