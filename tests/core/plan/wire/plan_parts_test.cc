// SPDX-License-Identifier: Apache-2.0
//
// Memory that a merge leaves in: lent, outgrown, too small.
#include "core/plan/wire/plan_parts.h"

#include <algorithm>
#include <array>

#include <flatbuffers/flatbuffer_builder.h>

#include "core/plan/wire/large_allocator_internal.h"
#include "tests/core/plan/wire/plan_samples.h"

namespace shardwright::plan::test {
namespace {

TEST(PlanParts, AMergedPlanAndThenNumbers) {
  const std::vector<std::byte> expected = sample_merged_described();
  const Result<GlobalSavePlan> plan = decode<GlobalSavePlan>(expected);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  Result<PlanParts> parts = PlanParts::create(*plan, 5);
  ASSERT_TRUE(parts.ok()) << parts.status().to_string();
  EXPECT_TRUE(std::ranges::equal(parts->part(0), expected));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(parts->part(0).data()) % 64, 0U);
  const std::vector<uint32_t> first = {1, 2, 3};
  for (const std::vector<uint32_t>& numbers : {first, {}, {4, 5}}) {
    const Result<std::span<uint32_t>> part = parts->append(numbers.size());
    ASSERT_TRUE(part.ok()) << part.status().to_string();
    std::ranges::copy(numbers, part->begin());
  }
  ASSERT_EQ(parts->size(), 4U);
  EXPECT_TRUE(std::ranges::equal(parts->numbers(1), first));
  EXPECT_TRUE(parts->numbers(2).empty());
  EXPECT_EQ(parts->numbers(3)[1], 5U);
  // The merged plan took less than its bound, so that a few numbers more fit.
  const uint64_t room = merged_save_wire_bytes(*plan) - expected.size();
  EXPECT_FAILURE(parts->append(room / 4 + 1).status(), StatusCode::kInternal, "outgrow");
  EXPECT_EQ(parts->size(), 4U);
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
