// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads: a mesh of replicas and shards, with communicators along both axes and one
// context of each rank. A rank that ends lets go of its communicators, so that others that wait for
// it fail instead of hanging.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/collective/communicator.h"
#include "core/hsdp/hsdp.h"

namespace shardwright::test {

// What becomes of a communicator before a rank gets it; by default nothing.
using CommunicatorWrap = std::function<collective::CommunicatorPtr(
    collective::CommunicatorPtr inner, int32_t global_rank, int32_t axis)>;

struct MeshShape {
  int32_t replicate = 1;
  int32_t shard = 1;
  int32_t secondary = 0;         // neighbours that keep parts; 0 none
  bool separate_reduce = false;  // reductions along the shard axis have their own communicator
  CommunicatorWrap wrap{};

  int32_t world() const { return replicate * shard; }
};

// The communicators of all ranks, to be taken by one thread each. Axis 0 replicates, 1 shards.
class RankMeshes {
 public:
  explicit RankMeshes(const MeshShape& shape);
  std::shared_ptr<hsdp::HsdpMesh> take(int32_t rank) {
    return std::move(meshes_[static_cast<size_t>(rank)]);
  }
  // Gives a mesh the communicators of another one, as after a failure.
  static void replace(const hsdp::HsdpMesh& from, hsdp::HsdpMesh* to, const MeshShape& shape);

 private:
  void connect(const MeshShape& shape, int32_t axis, const std::vector<int32_t>& ranks);
  void connect_secondary(const MeshShape& shape, const std::vector<int32_t>& ranks);

  std::vector<std::shared_ptr<hsdp::HsdpMesh>> meshes_;
};

// Options of a context over such a mesh.
hsdp::HsdpOptions options_of(const MeshShape& shape);

// body(rank) on one thread each; their outcomes in rank order.
std::vector<Status> run_ranks(int32_t world, const std::function<Status(int32_t)>& body);
// Fails the test for each rank that failed.
void expect_all_ok(const std::vector<Status>& outcomes);

}  // namespace shardwright::test
