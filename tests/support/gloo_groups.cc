// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gloo_groups.h"

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "core/collective/c10d/c10d_communicator.h"
#include "core/collective/c10d/process_groups_internal.h"
#include "core/collective/c10d/side_group_internal.h"

namespace shardwright::test {
namespace {

using GroupHandle = c10::intrusive_ptr<c10d::ProcessGroup>;

std::atomic<int> group_count = 0;

std::string new_name() {
  return fmt::format("groups of a test {}", group_count++);
}

// A rank alone, of which others are made. Kept: each has threads.
const std::string& registered_gloo() {
  static const std::string& name = *new std::string([] {
    // As a host does that uses Gloo: its threads write to connections that were closed.
    std::signal(SIGPIPE, SIG_IGN);
    const auto store = c10::make_intrusive<c10d::HashStore>();
    auto& group = *new GroupHandle(c10::make_intrusive<c10d::ProcessGroup>(store, 0, 1));
    group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO,
                      c10::make_intrusive<c10d::ProcessGroupGloo>(
                          store, 0, 1, c10d::ProcessGroupGloo::Options::create_default()));
    std::string made = new_name();
    c10d::register_process_group(made, group);
    return made;
  }());
  return name;
}

// What make(request) gives each rank, on a thread of its own as they meet there.
template <typename Made, typename Make>
std::vector<Made> made_by_all(const GlooGroups& groups, const Make& make) {
  std::vector<Made> made(static_cast<size_t>(groups.size()));
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < groups.size(); ++rank) {
    threads.emplace_back([&groups, rank, &made, &make] {
      auto one = make(groups.request(rank));
      ASSERT_TRUE(one.ok()) << one.status().to_string();
      made[static_cast<size_t>(rank)] = std::move(*one);
    });
  }
  threads.clear();
  return made;
}

class CountingBackend final : public c10d::Backend {
 public:
  explicit CountingBackend(int* aborts) : Backend(0, 1), aborts_(*aborts) {}
  void abort() override { ++aborts_; }

 private:
  int& aborts_;
};

class StoreThatIsGone final : public c10d::HashStore {
 public:
  std::vector<uint8_t> compareSet(const std::string&, const std::vector<uint8_t>&,
                                  const std::vector<uint8_t>&) override {
    throw std::runtime_error("the store is gone");
  }
};

}  // namespace

struct GlooGroups::Groups {
  c10::intrusive_ptr<c10d::Store> store;
  std::vector<GroupHandle> all;
};

GlooGroups::GlooGroups(int32_t size) : groups_(std::make_unique<Groups>()) {
  groups_->store = c10::make_intrusive<c10d::HashStore>();
  for (int32_t rank = 0; rank < size; ++rank) {
    groups_->all.push_back(c10::make_intrusive<c10d::ProcessGroup>(groups_->store, rank, size));
    names_.push_back(new_name());
    c10d::register_process_group(names_.back(), groups_->all.back());
  }
}

GlooGroups::~GlooGroups() {
  for (const std::string& name : names_) c10d::unregister_process_group(name);
}

collective::GroupRequest GlooGroups::request(int32_t rank) const {
  collective::GroupRequest request;
  request.name = names_[static_cast<size_t>(rank)];
  request.gloo = registered_gloo();
  request.poll_ms = 5;
  request.keep = false;
  return request;
}

std::vector<std::unique_ptr<collective::Collective>> GlooGroups::collectives() const {
  return made_by_all<std::unique_ptr<collective::Collective>>(*this,
                                                              collective::make_c10d_collective);
}

std::vector<collective::CommunicatorPtr> GlooGroups::communicators() const {
  return made_by_all<collective::CommunicatorPtr>(*this, collective::make_c10d_communicator);
}

Status GlooGroups::failure_beside_idle_ranks() const {
  const auto made = made_by_all<std::shared_ptr<collective::internal::SideGroup>>(
      *this, collective::internal::side_group_for);
  for (const auto& group : made) {
    group->begin_call();
    if (group->rank() != 0) group->end_call();
  }
  made[0]->give_up({.cause = aborted("a connection broke"), .call = 1, .transport_failed = true});
  const auto end = made[0]->wait_for_end();
  return end ? end->cause : Status();
}

std::vector<std::string> GlooGroups::keys_left() const {
  std::vector<std::string> keys = groups_->store->listKeys();
  std::erase_if(keys, [](const std::string& key) { return !key.starts_with("shardwright/"); });
  return keys;
}

std::string register_group_without_store() {
  std::string name = new_name();
  auto& group = *new GroupHandle(c10::make_intrusive<c10d::ProcessGroup>(0, 1));
  c10d::register_process_group(name, group);
  return name;
}

std::string register_group_without_backend() {
  std::string name = new_name();
  auto& group = *new GroupHandle(
      c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), 0, 1));
  c10d::register_process_group(name, group);
  return name;
}

int aborts_when_given_up(BackendOf backend, bool store_is_there) {
  int aborts = 0;
  collective::internal::GroupParts parts;
  parts.store = c10::make_intrusive<c10d::HashStore>();
  if (!store_is_there) parts.store = c10::make_intrusive<StoreThatIsGone>();
  parts.id = "given up";
  parts.backend = c10::make_intrusive<CountingBackend>(&aborts);
  parts.device =
      backend == BackendOf::kDevice ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  parts.poll = std::chrono::milliseconds(1);
  auto group = collective::internal::SideGroup::make(std::move(parts));
  collective::internal::GroupEnd end;
  end.cause = aborted("a rank has failed");
  group->give_up(std::move(end));
  (void)group->wait_for_end();
  group.reset();  // its thread has ended
  return aborts;
}

}  // namespace shardwright::test
