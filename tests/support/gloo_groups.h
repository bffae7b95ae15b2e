// SPDX-License-Identifier: Apache-2.0
//
// Process groups of c10d in one process, one per rank, over a store that they share, as a host of
// libtorch has them. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/collective/c10d/c10d_collective.h"
#include "core/collective/communicator.h"

namespace shardwright::test {

// The groups are registered, and have Gloo to make more of, as long as this lives.
class GlooGroups {
 public:
  explicit GlooGroups(int32_t size);
  ~GlooGroups();
  GlooGroups(const GlooGroups&) = delete;
  GlooGroups& operator=(const GlooGroups&) = delete;

  int32_t size() const { return static_cast<int32_t>(names_.size()); }
  // How a rank asks for its collective; answers of other ranks are looked for every few
  // milliseconds.
  collective::GroupRequest request(int32_t rank) const;
  // All ranks' collectives, each made on a thread of its own as they have to be.
  std::vector<std::unique_ptr<collective::Collective>> collectives() const;
  // The same of communicators.
  std::vector<collective::CommunicatorPtr> communicators() const;
  // What all are told where the transport of rank 0 fails in a call, and the others are in none.
  Status failure_beside_idle_ranks() const;
  // Bytes of all keys of the store that begin with "shardwright/".
  std::vector<std::string> keys_left() const;

 private:
  struct Groups;
  std::unique_ptr<Groups> groups_;
  std::vector<std::string> names_;
};

// A registered group without a store, and one whose only backend is not for this collective.
std::string register_group_without_store();
std::string register_group_without_backend();
// How often the backend of a side group is aborted that is given up; its device need not be there.
enum class BackendOf { kHost, kDevice };
int aborts_when_given_up(BackendOf backend, bool store_is_there);

}  // namespace shardwright::test
