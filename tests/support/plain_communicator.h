// SPDX-License-Identifier: Apache-2.0
//
// A communicator with nothing but all_gather and all_to_all of another: the interface's own
// operations take the place of all others. Used as the other is.
#pragma once

#include <utility>

#include "core/collective/communicator.h"

namespace shardwright::test {

class PlainCommunicator : public collective::Communicator {
 public:
  explicit PlainCommunicator(collective::CommunicatorPtr inner) : inner_(std::move(inner)) {}
  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return "plain"; }
  uint64_t capabilities() const override { return inner_->capabilities(); }
  Result<collective::WorkPtr> all_gather(const collective::CommunicatorCall& call,
                                         std::span<const std::byte> in,
                                         std::span<std::byte> out) override {
    return inner_->all_gather(call, in, out);
  }
  Result<collective::WorkPtr> all_to_all(const collective::CommunicatorCall& call,
                                         std::span<const std::byte> in,
                                         std::span<std::byte> out) override {
    return inner_->all_to_all(call, in, out);
  }
  void abort(const Status& cause) noexcept override { inner_->abort(cause); }

 private:
  collective::CommunicatorPtr inner_;  // co-owned with whoever made it
};

}  // namespace shardwright::test
