// SPDX-License-Identifier: Apache-2.0
//
// Trains as tests/bindings/hsdp.json says over the C interface, by the loop of the C example:
// hsdp_loop_runner hsdp.json. A line per world, at the end "N passed, N failed, 0 skipped".
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "examples/hsdp_loop/c/loop.h"
#include "tests/bindings/c/values.h"

namespace {

using contract::Json;

constexpr int kShardAxisOfTwo = 1;

struct World {
  int shards = 0;
  int replicas = 0;
  std::vector<std::string> digests;  // after each step
};

void check(shw_status status, shw_error* error) {
  if (status == SHW_OK) return;
  const std::string message = shw_error_message(error, nullptr);
  shw_error_release(error);
  throw std::runtime_error(std::string(shw_status_name(status)) + ": " + message);
}

// One communicator for each rank of `size`.
std::vector<shw_communicator*> ends_of_threads(int size) {
  shw_error* error = nullptr;
  shw_communicator_group* group = nullptr;
  std::vector<shw_communicator*> ends(static_cast<size_t>(size));
  check(shw_communicator_group_create(size, &group, &error), error);
  for (int rank = 0; rank < size; ++rank)
    check(shw_communicator_group_member(group, rank, &ends[static_cast<size_t>(rank)], &error),
          error);
  shw_communicator_group_release(group);
  return ends;
}

shw_hsdp_mesh* mesh_of(const World& world, int rank) {
  shw_error* error = nullptr;
  shw_hsdp_mesh* mesh = nullptr;
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  const int64_t shape[] = {world.replicas, world.shards};
  spec.mesh_ndim = world.replicas > 1 ? 2 : 1;
  spec.mesh_shape = world.replicas > 1 ? shape : shape + 1;
  check(shw_hsdp_mesh_create(&spec, rank, &mesh, &error), error);
  return mesh;
}

void connect(const std::vector<shw_hsdp_mesh*>& meshes, int32_t axis, int first, int stride,
             int size) {
  shw_error* error = nullptr;
  const std::vector<shw_communicator*> ends = ends_of_threads(size);
  for (int each = 0; each < size; ++each) {
    check(shw_hsdp_mesh_set_communicator(meshes[static_cast<size_t>(first + each * stride)], axis,
                                         SHW_HSDP_LANE_GATHER, ends[static_cast<size_t>(each)],
                                         &error),
          error);
    shw_communicator_release(ends[static_cast<size_t>(each)]);
  }
}

// A mesh for each rank, with communicators along its axes.
std::vector<shw_hsdp_mesh*> meshes_of(const World& world) {
  std::vector<shw_hsdp_mesh*> meshes;
  for (int rank = 0; rank < world.shards * world.replicas; ++rank)
    meshes.push_back(mesh_of(world, rank));
  for (int replica = 0; replica < world.replicas; ++replica)
    connect(meshes, world.replicas > 1 ? kShardAxisOfTwo : 0, replica * world.shards, 1,
            world.shards);
  for (int shard = 0; world.replicas > 1 && shard < world.shards; ++shard)
    connect(meshes, 0, shard, world.shards, world.replicas);
  return meshes;
}

// "" when the rank had the digests; else what it had.
std::string train(const World& world, shw_hsdp_mesh* mesh, int rank) {
  shw_error* error = nullptr;
  shw_context* context = nullptr;
  loop trained{};
  const bool is_hybrid = world.replicas > 1;
  check(shw_context_create(nullptr, &context, &error), error);
  check(loop_open(&trained, context, mesh, rank, is_hybrid ? kShardAxisOfTwo : 0,
                  is_hybrid ? 0 : -1, &error),
        error);
  std::string wrong;
  for (const std::string& wanted : world.digests) {
    char digest[DIGEST_CHARS] = "";
    check(loop_step(&trained, &error), error);
    check(loop_digest(&trained, digest, &error), error);
    if (wrong.empty() && wanted != digest)
      wrong = "rank " + std::to_string(rank) + " has " + digest + " after step " +
              std::to_string(trained.next_step - 1) + ", expected " + wanted;
  }
  loop_close(&trained);
  shw_context_release(context);
  return wrong;
}

// "" when all ranks had the digests.
std::string run(const World& world) {
  const std::vector<shw_hsdp_mesh*> meshes = meshes_of(world);
  std::vector<std::string> wrong(meshes.size());
  std::vector<std::thread> ranks;
  for (size_t rank = 0; rank < meshes.size(); ++rank)
    ranks.emplace_back([&, rank] {
      try {
        wrong[rank] = train(world, meshes[rank], static_cast<int>(rank));
      } catch (const std::exception& e) {
        // The others wait for this rank until their limit; the test has failed anyway.
        std::cout << "FAILED: rank " << rank << ": " << e.what() << std::endl;
        std::_Exit(1);
      }
    });
  for (std::thread& each : ranks) each.join();
  for (shw_hsdp_mesh* each : meshes) shw_hsdp_mesh_release(each);
  for (const std::string& each : wrong)
    if (!each.empty()) return each;
  return world.digests.empty() ? "it has no digests" : "";
}

int run_file(const char* path) {
  std::ifstream file(path);
  const Json loop = Json::parse(file);
  int passed = 0, failed = 0;
  for (const Json& each : loop.at("worlds")) {
    const World world{each.at("shards").get<int>(), each.at("replicas").get<int>(),
                      each.at("digests").get<std::vector<std::string>>()};
    const std::string wrong = run(world);
    std::cout << (wrong.empty() ? "passed: " : "FAILED: ") << world.replicas << " x "
              << world.shards << (wrong.empty() ? "" : ": " + wrong) << "\n";
    ++(wrong.empty() ? passed : failed);
  }
  std::cout << passed << " passed, " << failed << " failed, 0 skipped\n";
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: hsdp_loop_runner hsdp.json\n";
    return 2;
  }
  try {
    return run_file(argv[1]);
  } catch (const std::exception& e) {
    std::cerr << argv[1] << ": " << e.what() << "\n";
    return 1;
  }
}
