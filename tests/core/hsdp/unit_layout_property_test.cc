// SPDX-License-Identifier: Apache-2.0
//
// Ten thousand random units: what ranks hold covers each parameter once, places in a shard do not
// overlap, and what is unpacked and packed again is what it was.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/hsdp/packer.h"
#include "core/hsdp/unit_layout.h"
#include "tests/support/random_source.h"

namespace shardwright::hsdp {
namespace {

constexpr int kCases = 10000;

std::vector<ParameterSpec> random_specs(test::RandomSource& random, int32_t world,
                                        LayoutMode mode) {
  std::vector<ParameterSpec> specs(static_cast<size_t>(random.between(0, 6)));
  const DType dtype =
      random.pick(std::vector<DType>{DType::kFloat32, DType::kBfloat16, DType::kInt8});
  for (size_t p = 0; p < specs.size(); ++p) {
    ParameterSpec& spec = specs[p];
    spec.fqn = "p" + std::to_string(p);
    spec.dtype = dtype;
    spec.replicate = random.chance(10);
    const int64_t rank = random.between(1, 3);
    const bool is_first = mode == LayoutMode::kRagged || random.chance(70);
    spec.shard_dim = static_cast<int32_t>(is_first ? 0 : random.between(0, rank - 1));
    Dims shape(static_cast<size_t>(rank), 0);
    for (int64_t& extent : shape) extent = random.between(random.chance(3) ? 0 : 1, 7);
    if (spec.shard_dim > 0) shape[static_cast<size_t>(spec.shard_dim)] *= world;
    if (random.chance(50)) spec.shard_dim -= static_cast<int32_t>(rank);
    spec.shape = shape;
  }
  return specs;
}

// How often each element of a parameter is held by a rank.
std::vector<int> holders(const UnitLayout& layout, size_t parameter) {
  const Dims& shape = layout.specs()[parameter].shape;
  std::vector<int> count(static_cast<size_t>(element_count_of(shape)));
  for (int32_t rank = 0; rank < layout.world(); ++rank) {
    const Box box = layout.box(parameter, rank);
    EXPECT_TRUE(check_box(box, shape).ok());
    for (size_t element = 0; element < count.size(); ++element) {
      auto rest = static_cast<int64_t>(element);
      bool is_inside = true;
      for (size_t d = shape.size(); d-- > 0;) {
        const int64_t index = rest % shape[d] - box.offsets[d];
        is_inside = is_inside && index >= 0 && index < box.sizes[d];
        rest /= shape[d];
      }
      count[element] += is_inside ? 1 : 0;
    }
  }
  return count;
}

void expect_cover(const UnitLayout& layout) {
  for (size_t p = 0; p < layout.size(); ++p) {
    const int once = layout.slot(p).is_replicated ? layout.world() : 1;
    const std::vector<int> count = holders(layout, p);
    ASSERT_TRUE(std::ranges::all_of(count, [&](int each) { return each == once; }))
        << layout.specs()[p].fqn;
  }
}

// Elements of a shard that belong to a parameter.
void expect_places_apart(const UnitLayout& layout) {
  int64_t held = 0;
  for (int32_t rank = 0; rank < layout.world(); ++rank) {
    std::vector<bool> taken(static_cast<size_t>(layout.shard_elements()));
    for (size_t p = 0; p < layout.size(); ++p) {
      if (layout.slot(p).is_replicated) continue;
      const int64_t begin = layout.local_offset(p, rank);
      for (int64_t at = begin; at < begin + box_element_count(layout.box(p, rank)); ++at, ++held) {
        ASSERT_FALSE(taken.at(static_cast<size_t>(at)));
        taken[static_cast<size_t>(at)] = true;
      }
    }
  }
  ASSERT_EQ(held + layout.padding_elements(), layout.gathered_elements());
}

void expect_round_trip(test::RandomSource& random, const UnitLayout& layout) {
  const Packer packer(layout, layout.dtype());
  std::vector<std::byte> gathered = random.bytes(packer.gathered_bytes());
  const std::vector<std::byte> replicated = random.bytes(packer.replicated_bytes());
  ASSERT_TRUE(packer.zero_padding(gathered).ok());
  std::vector<std::byte> packed(gathered.size(), std::byte{0xA5});
  std::vector<std::byte> packed_replicated(replicated.size(), std::byte{0xA5});
  if (layout.mode() == LayoutMode::kRagged) {
    ASSERT_TRUE(packer.zero_padding(packed).ok());
  }
  for (size_t p = 0; p < layout.size(); ++p) {
    const bool is_replicated = layout.slot(p).is_replicated;
    std::vector<std::byte> full(packer.full_bytes(p));
    ASSERT_TRUE(packer.unpack(p, is_replicated ? replicated : gathered, full).ok());
    ASSERT_TRUE(
        packer.pack(p, {layout.dtype(), full}, is_replicated ? packed_replicated : packed).ok());
  }
  ASSERT_EQ(packed, gathered);
  ASSERT_EQ(packed_replicated, replicated);
}

TEST(UnitLayouts, CoverParametersAndGiveBackWhatWasPacked) {
  test::RandomSource random;
  for (int i = 0; i < kCases; ++i) {
    const auto world = static_cast<int32_t>(random.between(1, 8));
    const auto mode = static_cast<LayoutMode>(random.between(0, 1));
    const auto made = UnitLayout::create(random_specs(random, world, mode), world, mode);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    const UnitLayout& layout = *made;
    ASSERT_NO_FATAL_FAILURE(expect_cover(layout)) << i;
    ASSERT_NO_FATAL_FAILURE(expect_places_apart(layout)) << i;
    if (layout.size() == 0) continue;
    ASSERT_NO_FATAL_FAILURE(expect_round_trip(random, layout)) << i;
  }
}

}  // namespace
}  // namespace shardwright::hsdp
