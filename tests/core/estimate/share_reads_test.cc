// SPDX-License-Identifier: Apache-2.0
//
// What ranks read for each other: figures of jobs that can be counted by hand, and for others those
// of the routes that a load makes of the same blocks.
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "core/estimate/estimate_internal.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/exchange_routes.h"
#include "tests/core/plan/world.h"

namespace shardwright::estimate {
namespace {

using job_description::read_job_description;
using plan::CatalogIndex;
using plan::ExchangePlan;
using plan::Route;
using plan::StoredBlock;
using plan::WantList;

JobDescription read(const std::string& text) {
  Result<JobDescription> job = read_job_description(text);
  EXPECT_TRUE(job.ok()) << job.status().to_string();
  return job.ok() ? *std::move(job) : JobDescription();
}

uint64_t sum_of(const RankColumn& column) {
  return std::accumulate(column.begin(), column.end(), uint64_t{0});
}

EstimateOptions exchanging(uint32_t ranks_per_node) {
  EstimateOptions options;
  options.ranks_per_node = ranks_per_node;
  options.exchange = NodeExchange::kAlways;
  return options;
}

// Tensors of `source` as ranks of one axis want them.
JobDescription on_ranks(const JobDescription& source, int ranks, std::string_view placement) {
  const JobDescription target = read(fmt::format(
      R"json({{"schema": 1, "meshes": {{"m": {{"axes": {{"a": {}}}}}}},
        "rules": [{{"match": "*", "placements": {{"a": "{}"}}}}]}})json",
      ranks, placement));
  return *lay_out(source, target);
}

constexpr uint64_t kAll = uint64_t{8} << 22;

// 8 rows of 4 MiB, each in four digest blocks.
JobDescription rows_of_8() {
  return read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 4}}},
    "tensors": [{"name": "w", "dtype": "int8", "shape": [8, 4194304],
                 "placements": {"a": "Shard(0)"}}],
    "objects": [{"name": "o", "bytes": 100}]})json");
}

Estimate load_of(const JobDescription& wanted, const EstimateOptions& options) {
  const auto estimate = estimate_load(**stored_checkpoint(rows_of_8(), {}), wanted, options);
  EXPECT_TRUE(estimate.ok()) << estimate.status().to_string();
  return *estimate;
}

TEST(ExchangeEstimate, ReadsOnceForAllNodesWhatSeveralWant) {
  const JobDescription replicas = on_ranks(rows_of_8(), 4, "Replicate");
  const Estimate pairs = load_of(replicas, exchanging(2));
  // A quarter of the tensor each, as much from the other node for the two of its own, and half of
  // it from the neighbour. The object: read by rank 0, sent to rank 2.
  constexpr uint64_t kQuarter = kAll / 4;
  EXPECT_EQ(pairs.moved_bytes, (RankColumn{kQuarter + 100, kQuarter, kQuarter, kQuarter}));
  EXPECT_EQ(pairs.received_bytes, (RankColumn{kQuarter, kQuarter, kQuarter + 100, kQuarter}));
  EXPECT_EQ(pairs.sent_bytes, (RankColumn{kQuarter + 100, kQuarter, kQuarter, kQuarter}));
  EXPECT_EQ(pairs.shared_bytes, (RankColumn{kAll / 2, kAll / 2 + 100, kAll / 2, kAll / 2 + 100}));
  EXPECT_EQ(pairs.staging_bytes[1], 2 * kQuarter) << "what is read and what is received";
  const Estimate single = load_of(replicas, exchanging(1));
  EXPECT_EQ(sum_of(single.moved_bytes), kAll + 100);
  EXPECT_EQ(single.received_bytes,
            (RankColumn{3 * kQuarter, 3 * kQuarter + 100, 3 * kQuarter + 100, 3 * kQuarter + 100}));
  EXPECT_EQ(sum_of(single.sent_bytes), sum_of(single.received_bytes));
  EXPECT_EQ(sum_of(single.shared_bytes), 0U);
}

TEST(ExchangeEstimate, IsThatWithoutOneWhereThereIsOneNodeOrNothingIsWantedTwice) {
  const JobDescription replicas = on_ranks(rows_of_8(), 4, "Replicate");
  EstimateOptions off = exchanging(4);
  off.exchange = NodeExchange::kOff;
  const Estimate one_node = load_of(replicas, exchanging(4));
  EXPECT_EQ(one_node.moved_bytes, load_of(replicas, off).moved_bytes);
  EXPECT_EQ(one_node.shared_bytes, load_of(replicas, off).shared_bytes);
  EXPECT_EQ(one_node.received_bytes, RankColumn(4, 0));
  EXPECT_EQ(load_of(replicas, off).sent_bytes, RankColumn(4, 0));
  const Estimate rows = load_of(on_ranks(rows_of_8(), 4, "Shard(0)"), exchanging(2));
  EXPECT_EQ(rows.received_bytes, (RankColumn{0, 0, 100, 0})) << "the object alone";
}

// An object goes over a tree: rank 0 sends it to four, rank 1 to the others.
TEST(ExchangeEstimate, SendsObjectsOverTheTreeOfTheLoad) {
  const JobDescription job = read(R"json({"schema": 1, "ranks": 7,
    "tensors": [{"name": "w", "dtype": "int8", "shape": [4]}],
    "objects": [{"name": "o", "bytes": 1000}, {"name": "own", "bytes": 8, "kind": "rank_local"}]})json");
  const auto load = estimate_load(**stored_checkpoint(job, {}), job, exchanging(1));
  ASSERT_TRUE(load.ok()) << load.status().to_string();
  EXPECT_EQ(sum_of(load->moved_bytes), 4 + 1000 + 7 * 8U);
  EXPECT_EQ(sum_of(load->received_bytes), 6 * (4 + 1000U));
  EXPECT_EQ(load->sent_bytes[0] / 1000, 4U);
  EXPECT_EQ(load->sent_bytes[1] / 1000, 2U);
  EXPECT_LT(load->sent_bytes[2], 1000U);
}

// Columns of half a block: two nodes need each block, and all of it is wanted by one or the other.
TEST(ExchangeEstimate, DoesNotCountAsOverReadWhatAnotherNodeWants) {
  const JobDescription source = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 2}}},
    "tensors": [{"name": "w", "dtype": "int8", "shape": [8, 1048576],
                 "placements": {"a": "Shard(0)"}}]})json");
  const auto load = *estimate_load(**stored_checkpoint(source, {}), on_ranks(source, 2, "Shard(1)"),
                                   exchanging(1));
  EXPECT_EQ(load.moved_bytes, RankColumn(2, uint64_t{4} << 20));
  EXPECT_EQ(load.received_bytes, RankColumn(2, uint64_t{4} << 20));
  EXPECT_EQ(load.over_bytes, RankColumn(2, 0));
}

// The blocks that ranks want, chunks laid one behind the other.
class BlockLists {
 public:
  BlockLists(const StoredCheckpoint& stored, const JobDescription& wanted)
      : catalog_(stored.catalog), index_(stored.catalog), wanted_(wanted) {
    uint64_t end = 0;
    for (uint64_t chunk = 0; chunk < catalog_.chunk_count(); ++chunk) {
      begins_.push_back(end);
      end += catalog_.chunk_bytes(chunk);
    }
  }

  std::vector<WantList> of_all(int32_t ranks_per_node) const {
    std::vector<WantList> wants;
    for (int32_t rank = 0; rank < wanted_.rank_count; ++rank) {
      const std::set<StoredBlock> blocks = of(rank);
      wants.push_back({rank,
                       wanted_.rank_count,
                       rank / ranks_per_node * ranks_per_node,
                       {},
                       0,
                       {blocks.begin(), blocks.end()}});
    }
    return wants;
  }

 private:
  std::set<StoredBlock> of(int32_t rank) const {
    std::set<StoredBlock> blocks;
    for (const JobTensor& tensor : wanted_.tensors) {
      const auto number = static_cast<size_t>(index_.find_tensor(tensor.name, -1));
      const std::vector<Box> held = *held_boxes(wanted_, tensor, rank);
      for (const Box& box : held) {
        for (const uint64_t chunk : index_.chunks_meeting(number, box))
          add(tensor.dtype, chunk, box, &blocks);
      }
    }
    return blocks;
  }

  void add(DType dtype, uint64_t chunk, const Box& box, std::set<StoredBlock>* blocks) const {
    const Box whole = catalog_.chunk_box(chunk);
    std::vector<internal::BlockRange> ranges;
    internal::fetch_of(dtype, whole, intersect(whole, box), kDigestBlockBytes, &ranges);
    for (const internal::BlockRange& range : ranges) {
      for (uint64_t b = range.begin; b < range.end; ++b) {
        const uint64_t begin = b * kDigestBlockBytes;
        const uint64_t length = std::min(kDigestBlockBytes, catalog_.chunk_bytes(chunk) - begin);
        blocks->insert({begins_[chunk] + begin, length});
      }
    }
  }

  const plan::Catalog& catalog_;
  const CatalogIndex index_;
  const JobDescription& wanted_;
  std::vector<uint64_t> begins_;  // of each chunk
};

struct Moved {
  uint64_t read = 0;
  uint64_t received = 0;
  uint64_t sent = 0;
  uint64_t shared = 0;
};

// As the routes say; what one node alone wants is read by the first of its ranks that does.
std::vector<Moved> moved_by(std::span<const WantList> wants) {
  const std::vector<ExchangePlan> plans = plan::route_blocks(wants);
  std::vector<Moved> made(wants.size());
  std::set<StoredBlock> read;
  for (size_t rank = 0; rank < wants.size(); ++rank) {
    Moved& own = made[rank];
    for (size_t i = 0; i < wants[rank].blocks.size(); ++i) {
      const StoredBlock& block = wants[rank].blocks[i];
      const Route& route = plans[rank].routes[i];
      const bool takes = route.is_exchanged() ? route.taker == static_cast<int32_t>(rank)
                                              : read.insert(block).second;
      if (!takes) {
        own.shared += block.length;
      } else if (route.source == Route::kStored) {
        own.read += block.length;
      } else {
        own.received += block.length;
      }
      own.sent += route.targets * block.length;
    }
  }
  return made;
}

void expect_as_routed(const JobDescription& source, const JobDescription& wanted,
                      uint32_t ranks_per_node) {
  const auto stored = *stored_checkpoint(source, {});
  const Estimate estimate = *estimate_load(*stored, wanted, exchanging(ranks_per_node));
  const std::vector<WantList> wants =
      BlockLists(*stored, wanted).of_all(static_cast<int32_t>(ranks_per_node));
  Moved all;
  std::map<int32_t, uint64_t> taken;  // by each node
  const std::vector<Moved> moved = moved_by(wants);
  for (size_t rank = 0; rank < moved.size(); ++rank) {
    all.read += moved[rank].read;
    all.received += moved[rank].received;
    all.sent += moved[rank].sent;
    all.shared += moved[rank].shared;
    taken[wants[rank].node] += moved[rank].read + moved[rank].received;
    const uint64_t own = estimate.moved_bytes[rank] + estimate.received_bytes[rank];
    EXPECT_EQ(own + estimate.shared_bytes[rank],
              moved[rank].read + moved[rank].received + moved[rank].shared)
        << "rank " << rank;
    taken[wants[rank].node] -= own;
  }
  EXPECT_EQ(sum_of(estimate.moved_bytes), all.read);
  EXPECT_EQ(sum_of(estimate.received_bytes), all.received);
  EXPECT_EQ(sum_of(estimate.sent_bytes), all.sent);
  EXPECT_EQ(sum_of(estimate.shared_bytes), all.shared);
  for (const auto& [node, difference] : taken) EXPECT_EQ(difference, 0U) << "node of " << node;
}

TEST(ExchangeEstimate, IsWhatTheRoutesOfALoadSay) {
  const JobDescription source = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 3}}},
    "tensors": [{"name": "w.{i}", "repeat": {"i": 2}, "dtype": "float32", "shape": [700, 5001],
                 "placements": {"a": "Shard(0)"}},
                {"name": "v", "dtype": "bfloat16", "shape": [9000001]}]})json");
  for (const char* placement : {"Replicate", "Shard(0)", "Shard(1)", "Flat"}) {
    for (const auto& [ranks, per_node] : {std::pair(2, 1U), {5, 2U}, {8, 4U}, {12, 1U}}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks, {} on a node", placement, ranks, per_node));
      const bool is_of_columns = std::string_view(placement) == "Shard(1)";
      const JobDescription target = read(fmt::format(
          R"json({{"schema": 1, "meshes": {{"m": {{"axes": {{"a": {}}}}}}},
            "rules": [{{"match": "v", "placements": {{"a": "{}"}}}},
                      {{"match": "*", "placements": {{"a": "{}"}}}}]}})json",
          ranks, is_of_columns ? "Shard(0)" : placement, placement));
      expect_as_routed(source, *lay_out(source, target), per_node);
    }
  }
}

// Boxes that begin and end anywhere, on any ranks.
TEST(ExchangeEstimate, IsWhatTheRoutesSayOfBoxesThatOverlap) {
  const char* given = std::getenv("SHW_SEED");
  const uint64_t seed = given == nullptr ? 20260801 : std::stoull(given);
  std::mt19937_64 random(seed);
  const JobDescription source = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"a": 3}}},
    "tensors": [{"name": "w", "dtype": "int8", "shape": [50, 1000003],
                 "placements": {"a": "Shard(0)"}}]})json");
  for (int round = 0; round < 20; ++round) {
    std::string boxes;
    for (int b = 0; b < 5; ++b) {
      const auto row = static_cast<int>(random() % 40);
      const auto column = static_cast<int>(random() % 900000);
      boxes += fmt::format("{}{{\"offsets\": [{}, {}], \"sizes\": [{}, {}], \"ranks\": [{}, {}]}}",
                           b == 0 ? "" : ", ", row, column, 1 + random() % 10,
                           1 + random() % 100000, b, 5 + random() % 3);
    }
    SCOPED_TRACE(fmt::format("SHW_SEED={} round {}: {}", seed, round, boxes));
    const JobDescription target = read(
        R"json({"schema": 1, "ranks": 8, "tensors": [{"name": "w", "dtype": "int8",
          "shape": [50, 1000003], "boxes": [)json" +
        boxes + "]}]}");
    expect_as_routed(source, *lay_out(source, target), 2);
  }
}

}  // namespace
}  // namespace shardwright::estimate
