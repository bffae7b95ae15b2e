// SPDX-License-Identifier: Apache-2.0
#include "tests/core/hsdp/rank_threads.h"

#include <thread>

#include <gtest/gtest.h>

#include "core/base/without_exceptions.h"

namespace shardwright::test {
namespace {

constexpr int32_t kReplicateAxis = 0;
constexpr int32_t kShardAxis = 1;

}  // namespace

RankMeshes::RankMeshes(const MeshShape& shape) {
  for (int32_t rank = 0; rank < shape.world(); ++rank) {
    Mesh mesh{{shape.replicate, shape.shard}, {"replicate", "shard"}, {}};
    meshes_.push_back(hsdp::HsdpMesh::create(std::move(mesh), rank).value());
  }
  for (int32_t column = 0; column < shape.shard; ++column) {
    std::vector<int32_t> ranks;
    for (int32_t row = 0; row < shape.replicate; ++row) ranks.push_back(row * shape.shard + column);
    connect(shape, kReplicateAxis, ranks);
  }
  for (int32_t row = 0; row < shape.replicate; ++row) {
    std::vector<int32_t> ranks;
    for (int32_t column = 0; column < shape.shard; ++column)
      ranks.push_back(row * shape.shard + column);
    connect(shape, kShardAxis, ranks);
    if (shape.secondary > 0) connect_secondary(shape, ranks);
  }
}

void RankMeshes::connect(const MeshShape& shape, int32_t axis, const std::vector<int32_t>& ranks) {
  if (ranks.size() == 1) return;
  std::vector<hsdp::CommunicatorLane> lanes = {hsdp::CommunicatorLane::kGather};
  if (axis == kShardAxis && shape.separate_reduce) lanes.push_back(hsdp::CommunicatorLane::kReduce);
  for (const hsdp::CommunicatorLane lane : lanes) {
    auto group = collective::make_thread_communicators(static_cast<int32_t>(ranks.size()));
    for (size_t each = 0; each < ranks.size(); ++each) {
      if (shape.wrap) group[each] = shape.wrap(std::move(group[each]), ranks[each], axis);
      const Status set = meshes_[static_cast<size_t>(ranks[each])]->set_communicator(
          axis, lane, std::move(group[each]));
      EXPECT_TRUE(set.ok()) << set.to_string();
    }
  }
}

void RankMeshes::connect_secondary(const MeshShape& shape, const std::vector<int32_t>& ranks) {
  const size_t size = static_cast<size_t>(shape.secondary);
  for (size_t first = 0; first < ranks.size(); first += size) {
    auto group = collective::make_thread_communicators(shape.secondary);
    for (size_t each = 0; each < size; ++each) {
      const Status set =
          meshes_[static_cast<size_t>(ranks[first + each])]->set_secondary_communicator(
              kShardAxis, std::move(group[each]));
      EXPECT_TRUE(set.ok()) << set.to_string();
    }
  }
}

void RankMeshes::replace(const hsdp::HsdpMesh& from, hsdp::HsdpMesh* to, const MeshShape& shape) {
  const auto give = [&](int32_t axis, hsdp::CommunicatorLane lane) {
    if (collective::CommunicatorPtr each = from.communicator(axis, lane); each != nullptr) {
      const Status set = to->set_communicator(axis, lane, std::move(each));
      EXPECT_TRUE(set.ok()) << set.to_string();
    }
  };
  give(kReplicateAxis, hsdp::CommunicatorLane::kGather);
  give(kShardAxis, hsdp::CommunicatorLane::kGather);
  if (shape.separate_reduce) give(kShardAxis, hsdp::CommunicatorLane::kReduce);
  if (shape.secondary == 0) return;
  const Status set = to->set_secondary_communicator(
      kShardAxis, from.secondary_communicator(kShardAxis, shape.secondary));
  EXPECT_TRUE(set.ok()) << set.to_string();
}

hsdp::HsdpOptions options_of(const MeshShape& shape) {
  hsdp::HsdpOptions options;
  options.shard_axis = kShardAxis;
  options.replicate_axis = shape.replicate > 1 ? kReplicateAxis : -1;
  return options;
}

std::vector<Status> run_ranks(int32_t world, const std::function<Status(int32_t)>& body) {
  std::vector<Status> outcomes(static_cast<size_t>(world));
  {
    std::vector<std::jthread> threads;
    for (int32_t rank = 0; rank < world; ++rank)
      threads.emplace_back([&, rank] {
        outcomes[static_cast<size_t>(rank)] =
            without_exceptions("a rank of a test", [&] { return body(rank); });
      });
  }
  return outcomes;
}

void expect_all_ok(const std::vector<Status>& outcomes) {
  for (size_t rank = 0; rank < outcomes.size(); ++rank)
    EXPECT_TRUE(outcomes[rank].ok()) << "rank " << rank << ": " << outcomes[rank].to_string();
}

}  // namespace shardwright::test
