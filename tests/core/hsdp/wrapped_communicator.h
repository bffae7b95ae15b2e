// SPDX-License-Identifier: Apache-2.0
//
// WrappedCommunicator: a communicator that does what another one does, after a test was asked.
// Thread-compatible like the inner one.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/collective/communicator.h"

namespace shardwright::test {

class WrappedCommunicator final : public collective::Communicator {
 public:
  // May change the call. A failure is that of the operation, and ends the inner communicator as a
  // transport does that has failed.
  using Before =
      std::function<Status(collective::OperationKind kind, collective::CommunicatorCall* call)>;

  WrappedCommunicator(collective::CommunicatorPtr inner, Before before)
      : inner_(std::move(inner)), before_(std::move(before)) {}

  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return inner_->name(); }
  uint64_t capabilities() const override { return inner_->capabilities() & ~hidden_; }
  // Capabilities that this one does not show.
  void hide(uint64_t capabilities) { hidden_ = capabilities; }

  Result<collective::WorkPtr> all_gather(const collective::CommunicatorCall& call,
                                         std::span<const std::byte> in,
                                         std::span<std::byte> out) override {
    return ask(collective::OperationKind::kAllGather, call,
               [&](const auto& changed) { return inner_->all_gather(changed, in, out); });
  }
  Result<collective::WorkPtr> all_to_all(const collective::CommunicatorCall& call,
                                         std::span<const std::byte> in,
                                         std::span<std::byte> out) override {
    return ask(collective::OperationKind::kAllToAll, call,
               [&](const auto& changed) { return inner_->all_to_all(changed, in, out); });
  }
  Result<collective::WorkPtr> reduce_scatter(const collective::CommunicatorCall& call,
                                             std::span<const std::byte> in,
                                             std::span<std::byte> out) override {
    return ask(collective::OperationKind::kReduceScatter, call,
               [&](const auto& changed) { return inner_->reduce_scatter(changed, in, out); });
  }
  Result<collective::WorkPtr> all_reduce(const collective::CommunicatorCall& call,
                                         std::span<std::byte> data) override {
    return ask(collective::OperationKind::kAllReduce, call,
               [&](const auto& changed) { return inner_->all_reduce(changed, data); });
  }
  void abort(const Status& cause) noexcept override { inner_->abort(cause); }

 private:
  template <typename Issue>
  Result<collective::WorkPtr> ask(collective::OperationKind kind,
                                  const collective::CommunicatorCall& call, Issue&& issue) {
    collective::CommunicatorCall changed = call;
    const Status asked = before_(kind, &changed);
    if (asked.ok()) return issue(changed);
    inner_->abort(asked);
    return asked;
  }

  collective::CommunicatorPtr inner_;
  Before before_;
  uint64_t hidden_ = 0;
};

}  // namespace shardwright::test
