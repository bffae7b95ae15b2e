// SPDX-License-Identifier: Apache-2.0
//
// Every cut lies between rows, tensors keep their order, and parts are the least where that can be
// searched.
#include "core/hsdp/ragged_split_internal.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_source.h"

namespace shardwright::hsdp::internal {
namespace {

bool is_cut_between_rows(const RaggedTensor& tensor, int64_t offset, int64_t part) {
  for (int64_t cut = part; cut < offset + tensor.elements; cut += part) {
    if (cut > offset && (cut - offset) % tensor.row_elements != 0) return false;
  }
  return true;
}

void expect_sound(const std::vector<RaggedTensor>& tensors, int64_t parts,
                  const RaggedSplit& split) {
  ASSERT_EQ(split.offsets.size(), tensors.size());
  int64_t end = 0;
  for (size_t t = 0; t < tensors.size(); ++t) {
    ASSERT_GE(split.offsets[t], end);
    ASSERT_TRUE(is_cut_between_rows(tensors[t], split.offsets[t], split.part_elements)) << t;
    end = split.offsets[t] + tensors[t].elements;
  }
  ASSERT_LE(end, parts * split.part_elements);
}

// Whether all tensors from `first` on have a place behind `begin`.
bool have_places(const std::vector<RaggedTensor>& tensors, size_t first, int64_t begin,
                 int64_t part, int64_t parts) {
  if (first == tensors.size()) return true;
  const RaggedTensor& tensor = tensors[first];
  for (int64_t at = begin; at + tensor.elements <= part * parts; ++at) {
    if (is_cut_between_rows(tensor, at, part) &&
        have_places(tensors, first + 1, at + tensor.elements, part, parts))
      return true;
  }
  return false;
}

int64_t least_part(const std::vector<RaggedTensor>& tensors, int64_t parts) {
  for (int64_t part = 1;; ++part) {
    if (have_places(tensors, 0, 0, part, parts)) return part;
  }
}

std::vector<RaggedTensor> random_tensors(test::RandomSource& random, size_t count,
                                         int64_t most_elements, int64_t most_rows) {
  std::vector<RaggedTensor> tensors(count);
  for (RaggedTensor& tensor : tensors) {
    tensor.row_elements = random.between(1, most_elements);
    tensor.elements = tensor.row_elements * random.between(1, most_rows);
  }
  return tensors;
}

TEST(RaggedSplit, PartsAreTheLeastOfSmallOnes) {
  test::RandomSource random;
  for (int i = 0; i < 300; ++i) {
    const auto tensors = random_tensors(random, static_cast<size_t>(random.between(1, 3)), 5, 6);
    const int64_t parts = random.between(1, 5);
    const auto split = split_ragged(tensors, parts);
    ASSERT_TRUE(split.has_value());
    expect_sound(tensors, parts, *split);
    ASSERT_EQ(split->part_elements, least_part(tensors, parts));
  }
}

TEST(RaggedSplit, IsSoundForLargeOnes) {
  test::RandomSource random;
  for (int i = 0; i < 300; ++i) {
    const auto tensors =
        random_tensors(random, static_cast<size_t>(random.between(1, 20)), 20000, 5000);
    const int64_t parts = random.between(1, 64);
    const auto split = split_ragged(tensors, parts);
    ASSERT_TRUE(split.has_value());
    expect_sound(tensors, parts, *split);
  }
}

// A layer of a language model: attention and two sizes of rows; biases between.
TEST(RaggedSplit, WastesLittleOfALayer) {
  const std::vector<RaggedTensor> tensors = {
      {4096, 4096 * 4096}, {1, 4096},           {4096, 4096 * 4096},   {4096, 4096 * 4096},
      {1, 4096},           {4096, 4096 * 4096}, {4096, 4096 * 11008},  {4096, 4096 * 11008},
      {1, 11008},          {1, 4096},           {11008, 11008 * 4096},
  };
  int64_t total = 0;
  for (const RaggedTensor& tensor : tensors) total += tensor.elements;
  struct Bound {
    int64_t parts;
    double waste;
  };
  // Of many parts each is whole rows of 4096 and of 11008: 176128 elements and multiples.
  for (const Bound& bound :
       {Bound{2, 0.0001}, Bound{8, 0.007}, Bound{64, 0.01}, Bound{256, 0.12}}) {
    const auto split = split_ragged(tensors, bound.parts);
    ASSERT_TRUE(split.has_value());
    expect_sound(tensors, bound.parts, *split);
    const int64_t padding = bound.parts * split->part_elements - total;
    EXPECT_LT(static_cast<double>(padding), bound.waste * static_cast<double>(total))
        << bound.parts;
  }
}

TEST(RaggedSplit, NothingNeedsNoPart) {
  const auto split = split_ragged({}, 4);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->part_elements, 0);
}

TEST(RaggedSplit, ManyPartsOfOneRow) {
  const std::vector<RaggedTensor> tensors = {{7, 21}};
  const auto split = split_ragged(tensors, 1000);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->part_elements, 7);
}

TEST(RaggedSplit, RefusesWhatDoesNotFit63Bits) {
  const std::vector<RaggedTensor> tensors = {{1, std::numeric_limits<int64_t>::max() / 2}};
  EXPECT_FALSE(split_ragged(tensors, 4).has_value());
}

}  // namespace
}  // namespace shardwright::hsdp::internal
