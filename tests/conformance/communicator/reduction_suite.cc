// SPDX-License-Identifier: Apache-2.0
//
// What every communicator promises of sums, averages and extrema.
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/conformance/communicator/communicator_suite.h"

namespace shardwright::collective {
namespace {

constexpr size_t kCounts[] = {0, 1, 33, 3'001};

// What ranks have for `to`, summed.
std::vector<double> sums_for(size_t world, size_t to, size_t count) {
  std::vector<double> sums(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t from = 0; from < world; ++from) sums[i] += value_of(from, to, i);
  }
  return sums;
}

Bytes parts_for_all(DType dtype, size_t world, size_t from, size_t count) {
  Bytes all;
  for (size_t to = 0; to < world; ++to) {
    const Bytes part = part_of(dtype, from, to, count);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Sums of these depend on their order.
float awkward_value(size_t rank, size_t index) {
  constexpr float kValues[] = {1e8F, 1.25F, -1e8F, 3e-4F, 7.0F, -0.1F};
  return kValues[(rank * 5 + index) % std::size(kValues)] * static_cast<float>(index + 1);
}

template <typename T>
std::vector<T> values_in(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_P(CommunicatorConformance, SumsThePartsOfEachRank) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    uint64_t sequence = 1;
    for (const DType dtype : kDTypes) {
      for (const size_t count : kCounts) {
        const CommunicatorCall call = call_of(sequence++, count, dtype);
        const Bytes in = parts_for_all(dtype, world(), rank, count);
        Bytes out(part_bytes(call));
        const Status status = ended(member.reduce_scatter(call, in, out));
        ASSERT_TRUE(status.ok()) << status.to_string();
        EXPECT_EQ(out, elements_of(dtype, sums_for(world(), rank, count)));
      }
    }
  });
}

TEST_P(CommunicatorConformance, SumsTheSameForAll) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    uint64_t sequence = 1;
    for (const DType dtype : kDTypes) {
      for (const size_t count : {size_t{0}, size_t{1}, world() - 1, world(), size_t{3'001}}) {
        const CommunicatorCall call = call_of(sequence++, count, dtype);
        Bytes data = part_of(dtype, rank, 0, count);
        const Status status = ended(member.all_reduce(call, data));
        ASSERT_TRUE(status.ok()) << status.to_string();
        EXPECT_EQ(data, elements_of(dtype, sums_for(world(), 0, count)));
      }
    }
  });
}

TEST_P(CommunicatorConformance, AddsInRankOrderWhereItSaysSo) {
  if (!member(0).can(kOrderedSum)) GTEST_SKIP() << "this communicator adds in any order";
  constexpr size_t kCount = 9001;
  std::vector<float> expected(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    expected[i] = awkward_value(0, i);
    for (size_t rank = 1; rank < world(); ++rank) expected[i] += awkward_value(rank, i);
  }
  on_all_ranks([&](size_t rank, Communicator& member) {
    std::vector<float> own(kCount);
    for (size_t i = 0; i < kCount; ++i) own[i] = awkward_value(rank, i);
    Bytes data = bytes_of(own);
    Bytes in;
    for (size_t to = 0; to < world(); ++to) in.insert(in.end(), data.begin(), data.end());
    Bytes out(data.size());
    ASSERT_TRUE(ended(member.reduce_scatter(call_of(1, kCount), in, out)).ok());
    EXPECT_EQ(out, bytes_of(expected));
    ASSERT_TRUE(ended(member.all_reduce(call_of(2, kCount), data)).ok());
    EXPECT_EQ(data, bytes_of(expected));
  });
}

// The sum first, then one multiplication by 1 / world.
TEST_P(CommunicatorConformance, Averages) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    CommunicatorCall call = call_of(1, 101);
    call.reduction = Reduction::kAverage;
    const auto factor = static_cast<float>(1.0 / static_cast<double>(world()));
    std::vector<float> expected;
    for (const double sum : sums_for(world(), 0, call.count))
      expected.push_back(static_cast<float>(sum) * factor);
    Bytes data = part_of(call.dtype, rank, 0, call.count);
    const Status status = ended(member.all_reduce(call, data));
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(values_in<float>(data), expected);
  });
}

TEST_P(CommunicatorConformance, SumsWhatEachRankScales) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    CommunicatorCall call = call_of(1, 101, DType::kBfloat16);
    call.reduction = Reduction::kScaledSum;
    call.scale = 0.25;
    std::vector<double> expected = sums_for(world(), rank, call.count);
    for (double& sum : expected) sum *= call.scale;
    const Bytes in = parts_for_all(call.dtype, world(), rank, call.count);
    const Bytes before = in;
    Bytes out(part_bytes(call));
    const Status status = ended(member.reduce_scatter(call, in, out));
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(out, elements_of(call.dtype, expected));
    EXPECT_EQ(in, before);
  });
}

TEST_P(CommunicatorConformance, FindsTheGreatestAndTheLeast) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    const auto own = static_cast<double>(rank);
    const auto last = static_cast<double>(world() - 1);
    uint64_t sequence = 1;
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32}) {
      CommunicatorCall call = call_of(sequence++, 3, dtype);
      call.reduction = Reduction::kMax;
      Bytes data = elements_of(dtype, {own, 1 - own, 5});
      ASSERT_TRUE(ended(member.all_reduce(call, data)).ok());
      EXPECT_EQ(data, elements_of(dtype, {last, 1, 5}));
      call.sequence = sequence++;
      call.reduction = Reduction::kMin;
      data = elements_of(dtype, {own, 1 - own, 5});
      ASSERT_TRUE(ended(member.all_reduce(call, data)).ok());
      EXPECT_EQ(data, elements_of(dtype, {0, 1 - last, 5}));
    }
  });
}

TEST_P(CommunicatorConformance, WhatIsNoNumberIsGreatestAndLeast) {
  on_all_ranks([&](size_t rank, Communicator& member) {
    uint64_t sequence = 1;
    for (const Reduction reduction : {Reduction::kMax, Reduction::kMin}) {
      for (size_t odd = 0; odd < world(); ++odd) {
        CommunicatorCall call = call_of(sequence++, 1);
        call.reduction = reduction;
        Bytes data = bytes_of<float>({rank == odd ? std::nanf("") : static_cast<float>(rank)});
        ASSERT_TRUE(ended(member.all_reduce(call, data)).ok());
        EXPECT_TRUE(std::isnan(values_in<float>(data)[0]));
      }
    }
  });
}

TEST_P(CommunicatorConformance, RefusesReductionsThatAreNotThere) {
  struct Refused {
    DType dtype;
    Reduction reduction;
  };
  for (const Refused& each :
       {Refused{DType::kBool, Reduction::kSum}, Refused{DType::kInt64, Reduction::kAverage},
        Refused{DType::kComplex64, Reduction::kMax}}) {
    members_ = GetParam().make();
    on_all_ranks([&](size_t, Communicator& member) {
      CommunicatorCall call = call_of(1, 4, each.dtype);
      call.reduction = each.reduction;
      Bytes data(part_bytes(call));
      const Status status = ended(member.all_reduce(call, data));
      EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status.to_string();
    });
  }
}

}  // namespace shardwright::collective
