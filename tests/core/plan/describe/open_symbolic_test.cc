// SPDX-License-Identifier: Apache-2.0
//
// The symbolic local plans of all ranks, read from their buffers.
#include "core/plan/describe/open_symbolic.h"

#include <cstring>

#include "tests/core/plan/describe/symbolic_jobs.h"

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

LocalSymbolicPlan local_of(int32_t rank, std::string_view name = "w") {
  std::vector<JobEntry> entries = entries_of(rank);
  entries[0].name = name;
  Result<LocalSymbolicPlan> plan = describe(entries, {rank, 3});
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
  Result<RankDescriptions> open() const { return open_symbolic_locals(views_); }

 private:
  size_t shift_;
  std::vector<std::vector<std::byte>> rooms_;
  std::vector<std::span<const std::byte>> views_;
};

TEST(OpenSymbolic, EqualDescriptionsAreOneWhereverTheBuffersLie) {
  for (const size_t shift : {0, 1, 4}) {
    Buffers buffers(shift);
    for (int32_t r = 0; r < 3; ++r) buffers.add(encode(local_of(r)));
    const Result<RankDescriptions> ranks = buffers.open();
    ASSERT_TRUE(ranks.ok()) << ranks.status().to_string();
    EXPECT_EQ(ranks->descriptions.size(), 1U);
    EXPECT_EQ(ranks->description_of_rank, (std::vector<uint32_t>{0, 0, 0}));
    ASSERT_EQ(ranks->parts.size(), 3U);
    for (int32_t r = 0; r < 3; ++r) {
      EXPECT_EQ(ranks->part_of(r)->object_sizes,
                std::vector<uint64_t>{5 + static_cast<uint64_t>(r)});
    }
  }
}

TEST(OpenSymbolic, DescriptionsThatDifferAreKeptApart) {
  Buffers buffers;
  for (int32_t r = 0; r < 3; ++r) buffers.add(encode(local_of(r, r == 1 ? "v" : "w")));
  const Result<RankDescriptions> ranks = buffers.open();
  ASSERT_TRUE(ranks.ok()) << ranks.status().to_string();
  EXPECT_EQ(ranks->description_of_rank, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(ranks->of(1).catalog.tensor_name(0), "v");
}

// What is said when rank 1 of three sends these bytes.
Status failure_of(const Result<plan::Bytes>& second) {
  Buffers buffers;
  buffers.add(encode(local_of(0)));
  buffers.add(second);
  buffers.add(encode(local_of(2)));
  return buffers.open().status();
}

TEST(OpenSymbolic, FailuresNameTheRank) {
  EXPECT_FAILURE(failure_of(encode(*expand_local_plan(local_of(1)))), StatusCode::kInvalidArgument,
                 "rank 1", "holds no symbolic local plan");
  EXPECT_FAILURE(failure_of(encode(local_of(2))), StatusCode::kInvalidArgument, "rank 1",
                 "plans are wanted in rank order");
  LocalSymbolicPlan mixed = local_of(1);
  mixed.part.description_digest = local_of(1, "v").part.description_digest;
  EXPECT_FAILURE(failure_of(encode(mixed)), StatusCode::kInvalidArgument, "rank 1",
                 "its part belongs to another description");
  EXPECT_FAILURE(failure_of(plan::Bytes(3)), StatusCode::kInvalidArgument, "rank 1");
}

}  // namespace
}  // namespace shardwright::plan::test
