// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/staged_communicator_internal.h"

#include <utility>

#include "core/base/without_exceptions.h"

namespace shardwright::hsdp::internal {
namespace {

using collective::CommunicatorCall;
using collective::CommunicatorPtr;
using collective::WorkPtr;

// Of one operation; co-owned by the transport until it has let go.
struct StagedMemory {
  std::shared_ptr<const void> outer;  // what the caller wants kept
  Buffer in;
  Buffer out;
};

// Copies between the two memories.
struct Stage {
  StagedThrough through = StagedThrough::kHost;
  std::shared_ptr<device::MemoryWork> work;  // co-owned with the context

  // Waits, so that the memory behind may be read, or used again.
  Status go(std::span<const std::byte> from, std::span<std::byte> to) const {
    SHW_RETURN_IF_ERROR(through == StagedThrough::kHost ? work->download(from, to)
                                                        : work->upload(from, to));
    return work->finish();
  }
  Status come_back(std::span<const std::byte> from, std::span<std::byte> to) const {
    SHW_RETURN_IF_ERROR(through == StagedThrough::kHost ? work->upload(from, to)
                                                        : work->download(from, to));
    return work->finish();
  }
};

class StagedWork final : public collective::Work {
 public:
  StagedWork(WorkPtr inner, Stage stage, std::shared_ptr<StagedMemory> memory,
             std::span<std::byte> target)
      : inner_(std::move(inner)),
        stage_(std::move(stage)),
        memory_(std::move(memory)),
        target_(target) {}

  Result<bool> wait(int64_t timeout_ns) override { return arrive(inner_->wait(timeout_ns)); }
  Result<bool> test() override { return arrive(inner_->test()); }

 private:
  Result<bool> arrive(Result<bool> ended) {
    if (!ended.ok() || !*ended) return ended;
    if (memory_ != nullptr) {
      outcome_ = stage_.come_back(memory_->out.bytes(), target_);
      memory_.reset();
    }
    if (!outcome_.ok()) return outcome_;
    return true;
  }

  WorkPtr inner_;
  const Stage stage_;
  std::shared_ptr<StagedMemory> memory_;  // null: the result has come
  const std::span<std::byte> target_;
  Status outcome_;
};

class StagedCommunicator final : public collective::Communicator {
 public:
  StagedCommunicator(CommunicatorPtr inner, Stage stage, std::shared_ptr<UnitMemory> room)
      : inner_(std::move(inner)), stage_(std::move(stage)), room_(std::move(room)) {}

  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return inner_->name(); }
  uint64_t capabilities() const override { return inner_->capabilities(); }
  void abort(const Status& cause) noexcept override { inner_->abort(cause); }

  Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return issue(call, in, out, [&](const auto& staged, auto from, auto to) {
      return inner_->all_gather(staged, from, to);
    });
  }
  Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return issue(call, in, out, [&](const auto& staged, auto from, auto to) {
      return inner_->all_to_all(staged, from, to);
    });
  }
  Result<WorkPtr> reduce_scatter(const CommunicatorCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out) override {
    return issue(call, in, out, [&](const auto& staged, auto from, auto to) {
      return inner_->reduce_scatter(staged, from, to);
    });
  }
  Result<WorkPtr> all_reduce(const CommunicatorCall& call, std::span<std::byte> data) override {
    return issue_in_place(
        call, data, [&](const auto& staged, auto all) { return inner_->all_reduce(staged, all); });
  }
  Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                            int32_t root) override {
    return issue_in_place(call, data, [&](const auto& staged, auto all) {
      return inner_->broadcast(staged, all, root);
    });
  }
  Result<WorkPtr> barrier(const CommunicatorCall& call) override { return inner_->barrier(call); }

 private:
  template <typename Issue>
  Result<WorkPtr> issue(const CommunicatorCall& call, std::span<const std::byte> in,
                        std::span<std::byte> out, Issue&& operation) {
    return without_exceptions("staging an operation", [&]() -> Result<WorkPtr> {
      auto memory = std::make_shared<StagedMemory>();
      SHW_ASSIGN_OR_RETURN(memory->in, acquire(call, in.size()));
      SHW_ASSIGN_OR_RETURN(memory->out, acquire(call, out.size()));
      SHW_RETURN_IF_ERROR(stage_.go(in, memory->in.bytes()));
      SHW_ASSIGN_OR_RETURN(WorkPtr work, operation(with_memory(call, memory),
                                                   std::span<const std::byte>(memory->in.bytes()),
                                                   memory->out.bytes()));
      return WorkPtr(std::make_unique<StagedWork>(std::move(work), stage_, std::move(memory), out));
    });
  }
  template <typename Issue>
  Result<WorkPtr> issue_in_place(const CommunicatorCall& call, std::span<std::byte> data,
                                 Issue&& operation) {
    return without_exceptions("staging an operation", [&]() -> Result<WorkPtr> {
      auto memory = std::make_shared<StagedMemory>();
      SHW_ASSIGN_OR_RETURN(memory->out, acquire(call, data.size()));
      SHW_RETURN_IF_ERROR(stage_.go(data, memory->out.bytes()));
      SHW_ASSIGN_OR_RETURN(WorkPtr work, operation(with_memory(call, memory), memory->out.bytes()));
      return WorkPtr(
          std::make_unique<StagedWork>(std::move(work), stage_, std::move(memory), data));
    });
  }

  Result<Buffer> acquire(const CommunicatorCall& call, size_t bytes) {
    return room_->acquire(BufferKind::kLanding, call.unit, bytes);
  }
  static CommunicatorCall with_memory(const CommunicatorCall& call,
                                      const std::shared_ptr<StagedMemory>& memory) {
    CommunicatorCall staged = call;
    memory->outer = call.memory;
    staged.memory = memory;
    return staged;
  }

  const CommunicatorPtr inner_;
  const Stage stage_;
  const std::shared_ptr<UnitMemory> room_;  // co-owned with the context
};

}  // namespace

CommunicatorPtr make_staged_communicator(CommunicatorPtr inner, StagedThrough through,
                                         std::shared_ptr<device::MemoryWork> work,
                                         std::shared_ptr<UnitMemory> room) {
  return std::make_shared<StagedCommunicator>(std::move(inner), Stage{through, std::move(work)},
                                              std::move(room));
}

}  // namespace shardwright::hsdp::internal
