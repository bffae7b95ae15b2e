// SPDX-License-Identifier: Apache-2.0
//
// Moves between full tensors and unit memory, against loops over single elements.
#include "core/hsdp/packer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/cast.h"
#include "tests/support/random_source.h"

namespace shardwright::hsdp {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::byte kDirt{0xA5};

size_t element_bytes(DType dtype) {
  return static_cast<size_t>(dtype_bits(dtype)) / 8;
}

std::vector<ParameterSpec> random_specs(test::RandomSource& random, int32_t world,
                                        LayoutMode mode) {
  std::vector<ParameterSpec> specs(static_cast<size_t>(random.between(1, 5)));
  for (size_t p = 0; p < specs.size(); ++p) {
    ParameterSpec& spec = specs[p];
    spec.fqn = "p" + std::to_string(p);
    const int64_t rank = random.between(1, 4);
    spec.shard_dim = static_cast<int32_t>(
        mode == LayoutMode::kRow && random.chance(50) ? random.between(0, rank - 1) : 0);
    spec.replicate = random.chance(15);
    Dims shape(static_cast<size_t>(rank), 1);
    for (int64_t& extent : shape) extent = random.between(random.chance(5) ? 0 : 1, 9);
    if (spec.shard_dim > 0) shape[static_cast<size_t>(spec.shard_dim)] *= world;
    spec.shape = shape;
  }
  return specs;
}

UnitLayout layout_of(std::vector<ParameterSpec> specs, int32_t world,
                     LayoutMode mode = LayoutMode::kRow) {
  auto layout = UnitLayout::create(std::move(specs), world, mode);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return std::move(layout).value();
}

UnitLayout random_layout(test::RandomSource& random) {
  const auto world = static_cast<int32_t>(random.between(1, 6));
  const auto mode = static_cast<LayoutMode>(random.between(0, 1));
  return layout_of(random_specs(random, world, mode), world, mode);
}

// Calls `visit(element of the full tensor, element of what the rank holds)` for each in a box.
template <typename Visit>
void visit_box(const Dims& shape, const Box& box, const Visit& visit) {
  const int64_t count = box_element_count(box);
  for (int64_t local = 0; local < count; ++local) {
    int64_t rest = local;
    int64_t full = 0;
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      full += (box.offsets[d] + rest % box.sizes[d]) * stride;
      rest /= box.sizes[d];
      stride *= shape[d];
    }
    visit(static_cast<size_t>(full), static_cast<size_t>(local));
  }
}

// The oracle: the unit memory of all ranks that holds these tensors, padding zero.
Bytes gathered_by_oracle(const UnitLayout& layout, size_t size, const std::vector<Bytes>& tensors) {
  Bytes gathered(static_cast<size_t>(layout.gathered_elements()) * size);
  for (size_t p = 0; p < layout.size(); ++p) {
    if (layout.slot(p).is_replicated) continue;
    for (int32_t rank = 0; rank < layout.world(); ++rank) {
      const auto begin =
          static_cast<size_t>(layout.shard_elements() * rank + layout.local_offset(p, rank));
      visit_box(layout.specs()[p].shape, layout.box(p, rank), [&](size_t full, size_t local) {
        std::memcpy(gathered.data() + (begin + local) * size, tensors[p].data() + full * size,
                    size);
      });
    }
  }
  return gathered;
}

Bytes replicated_by_oracle(const UnitLayout& layout, size_t size,
                           const std::vector<Bytes>& tensors) {
  Bytes memory(static_cast<size_t>(layout.replicated_elements()) * size);
  for (size_t p = 0; p < layout.size(); ++p) {
    if (!layout.slot(p).is_replicated) continue;
    std::ranges::copy(tensors[p],
                      memory.begin() + layout.slot(p).offset_in_shard * static_cast<int64_t>(size));
  }
  return memory;
}

std::vector<Bytes> random_tensors(test::RandomSource& random, const UnitLayout& layout,
                                  size_t size) {
  std::vector<Bytes> tensors;
  for (size_t p = 0; p < layout.size(); ++p)
    tensors.push_back(random.bytes(static_cast<size_t>(layout.slot(p).elements()) * size));
  return tensors;
}

// Numbers that every float holds, so that casts lose nothing.
Bytes small_numbers(test::RandomSource& random, DType dtype, size_t count) {
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(random.between(-8, 8));
  Bytes bytes(count * element_bytes(dtype));
  EXPECT_TRUE(cast_elements(DType::kFloat64, std::as_bytes(std::span(values)), dtype, bytes).ok());
  return bytes;
}

Bytes cast_bytes(DType from, const Bytes& source, DType to) {
  Bytes target(source.size() / element_bytes(from) * element_bytes(to));
  EXPECT_TRUE(cast_elements(from, source, to, target).ok());
  return target;
}

TEST(Packer, CutsUnpacksAndViewsAsTheOracleDoes) {
  test::RandomSource random;
  for (int i = 0; i < 400; ++i) {
    const UnitLayout layout = random_layout(random);
    const DType dtype =
        random.pick(std::vector<DType>{DType::kFloat32, DType::kBfloat16, DType::kComplex128});
    const Packer packer(layout, dtype);
    const std::vector<Bytes> tensors = random_tensors(random, layout, element_bytes(dtype));
    Bytes gathered(packer.gathered_bytes(), kDirt);
    Bytes replicated(packer.replicated_bytes(), kDirt);
    for (int32_t rank = 0; rank < layout.world(); ++rank) {
      const auto shard = std::span(gathered).subspan(
          packer.shard_bytes() * static_cast<size_t>(rank), packer.shard_bytes());
      for (size_t p = 0; p < layout.size(); ++p) {
        const bool is_replicated = layout.slot(p).is_replicated;
        ASSERT_TRUE(packer.cut(p, rank, tensors[p], is_replicated ? replicated : shard).ok());
      }
      ASSERT_TRUE(layout.mode() == LayoutMode::kRow || packer.zero_padding(rank, shard).ok());
    }
    ASSERT_EQ(gathered, gathered_by_oracle(layout, element_bytes(dtype), tensors));
    ASSERT_EQ(replicated, replicated_by_oracle(layout, element_bytes(dtype), tensors));
    for (size_t p = 0; p < layout.size(); ++p) {
      const std::span<std::byte> memory = layout.slot(p).is_replicated ? replicated : gathered;
      Bytes full(packer.full_bytes(p), kDirt);
      ASSERT_TRUE(packer.unpack(p, memory, full).ok());
      ASSERT_EQ(full, tensors[p]);
      const std::span<std::byte> view = packer.full(p, memory);
      if (layout.slot(p).is_replicated || layout.mode() == LayoutMode::kRagged) {
        ASSERT_TRUE(std::ranges::equal(view, tensors[p]));
      } else {
        ASSERT_TRUE(view.empty());
      }
    }
  }
}

TEST(Packer, PacksGradientsWithCastAsTheOracleDoes) {
  test::RandomSource random;
  const std::vector<DType> dtypes = {DType::kFloat32, DType::kBfloat16, DType::kFloat16,
                                     DType::kFloat64};
  for (int i = 0; i < 400; ++i) {
    const UnitLayout layout = random_layout(random);
    const DType from = random.pick(dtypes);
    const DType to = random.pick(dtypes);
    const Packer packer(layout, to);
    Bytes gathered(packer.gathered_bytes(), kDirt);
    Bytes replicated(packer.replicated_bytes(), kDirt);
    std::vector<Bytes> expected;
    for (size_t p = 0; p < layout.size(); ++p) {
      const std::span<std::byte> memory = layout.slot(p).is_replicated ? replicated : gathered;
      const auto count = static_cast<size_t>(layout.slot(p).elements());
      if (random.chance(20)) {
        ASSERT_TRUE(packer.pack_nothing(p, memory).ok());
        expected.emplace_back(count * element_bytes(to));
        continue;
      }
      const Bytes gradient = small_numbers(random, from, count);
      const Status packed = packer.pack(p, {from, gradient}, memory);
      ASSERT_TRUE(packed.ok()) << packed.to_string();
      expected.push_back(cast_bytes(from, gradient, to));
    }
    ASSERT_TRUE(layout.mode() == LayoutMode::kRow || packer.zero_padding(gathered).ok());
    ASSERT_EQ(gathered, gathered_by_oracle(layout, element_bytes(to), expected));
    ASSERT_EQ(replicated, replicated_by_oracle(layout, element_bytes(to), expected));
  }
}

// Rows around the size of a step: those that are cast together, and those that are cast alone.
TEST(Packer, PacksLargeTensorsAlongAnyDimension) {
  test::RandomSource random;
  for (const Dims& shape : {Dims{3, 20000}, Dims{500, 36}, Dims{2, 4, 4100}, Dims{9000, 4}}) {
    for (const int32_t dim : {0, 1}) {
      ParameterSpec spec;
      spec.fqn = "w";
      spec.shape = shape;
      spec.shard_dim = dim;
      const UnitLayout layout = layout_of({spec}, 4);
      const Packer packer(layout, DType::kBfloat16);
      const auto count = static_cast<size_t>(element_count_of(shape));
      const Bytes gradient = small_numbers(random, DType::kFloat32, count);
      const Bytes expected = cast_bytes(DType::kFloat32, gradient, DType::kBfloat16);
      Bytes gathered(packer.gathered_bytes(), kDirt);
      ASSERT_TRUE(packer.pack(0, {DType::kFloat32, gradient}, gathered).ok());
      ASSERT_EQ(gathered, gathered_by_oracle(layout, 2, {expected}));
      Bytes full(packer.full_bytes(0));
      ASSERT_TRUE(packer.unpack(0, gathered, full).ok());
      ASSERT_EQ(full, expected);
    }
  }
}

TEST(Packer, LocalPartsAreViewsOfTheShard) {
  ParameterSpec spec;
  spec.fqn = "w";
  spec.shape = {5, 2};
  const UnitLayout layout = layout_of({spec}, 4);
  const Packer packer(layout, DType::kFloat32);
  Bytes shard(packer.shard_bytes());
  EXPECT_EQ(packer.local(0, 2, std::span(shard)).data(), shard.data());
  EXPECT_EQ(packer.local(0, 2, std::span(shard)).size(), 8U);
  EXPECT_TRUE(packer.local(0, 3, std::span(shard)).empty());
}

TEST(Packer, ZeroesWhatIsLeftOut) {
  std::vector<ParameterSpec> specs(2);
  specs[0] = {"a", DType::kFloat32, {4}, 0, false, false, {}};
  specs[1] = {"b", DType::kFloat32, {2}, 0, false, false, {}};
  const UnitLayout layout = layout_of(specs, 2, LayoutMode::kRagged).keeping({false, true});
  const Packer packer(layout, DType::kInt8);
  Bytes gathered(packer.gathered_bytes(), kDirt);
  ASSERT_TRUE(packer.zero_padding(gathered).ok());
  EXPECT_EQ(std::ranges::count(gathered, std::byte{0}), 4);
  EXPECT_EQ(std::ranges::count(gathered, kDirt), 2);
}

TEST(Packer, RefusesWhatDoesNotFitNamingTheParameter) {
  std::vector<ParameterSpec> specs(2);
  specs[0] = {"layer.w", DType::kFloat32, {4, 2}, 0, false, false, {}};
  specs[1] = {"layer.b", DType::kFloat32, {2}, 0, false, false, {}};
  const UnitLayout layout = layout_of(specs, 2);
  const Packer packer(layout, DType::kFloat32);
  Bytes full(32);
  Bytes shard(packer.shard_bytes());
  Bytes gathered(packer.gathered_bytes());
  const auto names = [](const Status& status, StatusCode code, std::string_view word) {
    return status.code() == code && status.message().find(word) != std::string_view::npos;
  };
  constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
  EXPECT_TRUE(names(packer.cut(0, 0, std::span(full).first(28), shard), kInvalid, "layer.w"));
  EXPECT_TRUE(names(packer.cut(0, 0, full, gathered), kInvalid, "layer.w"));
  EXPECT_TRUE(names(packer.unpack(0, shard, full), kInvalid, "layer.w"));
  EXPECT_TRUE(names(packer.pack(0, {DType::kFloat64, full}, gathered), kInvalid, "layer.w"));
  EXPECT_TRUE(names(packer.pack(0, {DType::kComplex64, full}, gathered), StatusCode::kUnimplemented,
                    "layer.w"));
  EXPECT_TRUE(names(packer.pack_nothing(1, shard), kInvalid, "layer.b"));
  EXPECT_TRUE(names(packer.zero_padding(shard), kInvalid, "unit"));
  EXPECT_TRUE(names(packer.zero_padding(0, gathered), kInvalid, "unit"));
  const UnitLayout kept = layout.keeping({false, true});
  EXPECT_TRUE(names(Packer(kept, DType::kFloat32).cut(0, 0, full, shard), kInvalid, "left out"));
}

}  // namespace
}  // namespace shardwright::hsdp
