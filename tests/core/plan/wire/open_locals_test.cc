// SPDX-License-Identifier: Apache-2.0
//
// The local plans of all ranks, read from their buffers.
#include "core/plan/wire/wire.h"

#include <cstring>

#include "core/base/limits.h"
#include "tests/core/plan/describe/layout_jobs.h"
#include "tests/support/run_length.h"

namespace shardwright::plan::test {
namespace {

// Three ranks that cut w alike; the loader of each has a size of its own.
std::vector<JobEntry> entries_of(int32_t rank) {
  const auto layout = layout_of({{3}, {}, {}}, {shard(0)});
  JobEntry loader;
  loader.name = "loader";
  loader.form = JobEntry::Form::kObject;
  loader.kind = EntryKind::kRankLocal;
  loader.object_bytes = 5 + static_cast<uint64_t>(rank);
  return {sharded("w", {6, 4}, layout), loader};
}

LocalPlan local_of(int32_t rank, std::string_view name = "w") {
  std::vector<JobEntry> entries = entries_of(rank);
  entries[0].name = name;
  Result<LocalPlan> plan = describe(entries, {rank, 3});
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return *std::move(plan);
}

// Buffers that begin `shift` bytes behind an aligned address.
class Buffers {
 public:
  explicit Buffers(size_t shift = 0) : shift_(shift) {}
  void add(const Result<plan::Bytes>& bytes) {
    ASSERT_TRUE(bytes.ok()) << bytes.status().to_string();
    std::vector<std::byte>& room = rooms_.emplace_back(bytes->size() + shift_);
    std::memcpy(room.data() + shift_, bytes->data(), bytes->size());
    views_.emplace_back(room.data() + shift_, bytes->size());
  }
  Result<RankPlans> open() const { return open_local_saves(views_); }

 private:
  size_t shift_;
  std::vector<std::vector<std::byte>> rooms_;
  std::vector<std::span<const std::byte>> views_;
};

TEST(OpenLocals, EqualDescriptionsAreOneWhereverTheBuffersLie) {
  for (const size_t shift : {0, 1, 4}) {
    Buffers buffers(shift);
    for (int32_t r = 0; r < 3; ++r) buffers.add(encode(local_of(r)));
    const Result<RankPlans> ranks = buffers.open();
    ASSERT_TRUE(ranks.ok()) << ranks.status().to_string();
    EXPECT_EQ(ranks->descriptions.size(), 1U);
    EXPECT_EQ(ranks->description_of_rank, (std::vector<uint32_t>{0, 0, 0}));
    ASSERT_EQ(ranks->parts.size(), 3U);
    for (int32_t r = 0; r < 3; ++r) {
      EXPECT_EQ(ranks->of(static_cast<uint32_t>(r)).object_bytes(0), 5 + static_cast<uint64_t>(r));
    }
  }
}

TEST(OpenLocals, DescriptionsThatDifferAreKeptApart) {
  Buffers buffers;
  for (int32_t r = 0; r < 3; ++r) buffers.add(encode(local_of(r, r == 1 ? "v" : "w")));
  const Result<RankPlans> ranks = buffers.open();
  ASSERT_TRUE(ranks.ok()) << ranks.status().to_string();
  EXPECT_EQ(ranks->description_of_rank, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(ranks->of(1).description.catalog.tensor_name(0), "v");
}

// Whatever bit is flipped.
TEST(OpenLocals, TakesWhatTheDecoderTakes) {
  Result<LocalPlan> plan = describe(entries_of(0), {0, 1});
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  plan::Bytes bytes = *encode(*plan);
  for (size_t bit = 0; bit < bytes.size() * 8; bit += shardwright::test::kEachBit) {
    const auto mask = static_cast<std::byte>(1U << bit % 8);
    bytes[bit / 8] ^= mask;
    const std::span<const std::byte> view = bytes;
    const Result<LocalPlan> decoded = decode<LocalPlan>(view);
    const bool placed = decoded.ok() && decoded->part.rank == 0 && decoded->part.world_size == 1;
    EXPECT_EQ(open_local_saves(std::span(&view, 1)).ok(), placed) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

// What is said when rank 1 of three sends these bytes.
Status failure_of(const Result<plan::Bytes>& second) {
  Buffers buffers;
  buffers.add(encode(local_of(0)));
  buffers.add(second);
  buffers.add(encode(local_of(2)));
  return buffers.open().status();
}

TEST(OpenLocals, FailuresNameTheRank) {
  EXPECT_FAILURE(failure_of(encode(local_of(1).description)), StatusCode::kInvalidArgument,
                 "rank 1", "holds no local save plan");
  EXPECT_FAILURE(failure_of(encode(local_of(2))), StatusCode::kInvalidArgument, "rank 1",
                 "plans are wanted in rank order");
  LocalPlan mixed = local_of(1);
  mixed.part.description_digest = local_of(1, "v").part.description_digest;
  EXPECT_FAILURE(failure_of(encode(mixed)), StatusCode::kDataLoss, "rank 1",
                 "its part belongs to another description");
  EXPECT_FAILURE(failure_of(plan::Bytes(3)), StatusCode::kInvalidArgument, "rank 1");
  LocalPlan more = local_of(1);
  more.part.object_sizes.clear();  // as if it added nothing
  more.part.more.emplace_back();
  EXPECT_FAILURE(failure_of(encode(more)), StatusCode::kInvalidArgument, "rank 1", "further pairs");
  LocalPlan placeless = local_of(1);
  placeless.part.world_size = 0;
  EXPECT_FAILURE(failure_of(encode(placeless)), StatusCode::kInvalidArgument, "rank 1",
                 "number of ranks is not known");
  placeless.part.rank = kMaxWorldSize;
  EXPECT_FAILURE(failure_of(encode(placeless)), StatusCode::kDataLoss, "rank 1",
                 "that of rank 1048576");
}

}  // namespace
}  // namespace shardwright::plan::test
