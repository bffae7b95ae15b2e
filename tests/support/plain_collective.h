// SPDX-License-Identifier: Apache-2.0
//
// A transport of another, without operations that a transport may lack: the interface's own take
// their place. Tests make of it transports that do an operation in a way of their own. Used as the
// other is.
#pragma once

#include <memory>
#include <utility>

#include "core/collective/collective.h"

namespace shardwright::test {

class PlainCollective : public collective::Collective {
 public:
  explicit PlainCollective(std::unique_ptr<collective::Collective> inner)
      : inner_(std::move(inner)) {}
  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return "plain"; }
  Status barrier(const collective::Call& call) override { return inner_->barrier(call); }
  Status broadcast(const collective::Call& call, std::span<std::byte> data, int32_t root) override {
    return inner_->broadcast(call, data, root);
  }
  Status all_gather(const collective::Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    return inner_->all_gather(call, in, out);
  }
  Status all_gather_v(const collective::Call& call, std::span<const std::byte> in,
                      std::span<std::byte> out, std::span<const uint64_t> sizes) override {
    return inner_->all_gather_v(call, in, out, sizes);
  }
  Status all_reduce_i64(const collective::Call& call, std::span<int64_t> values,
                        collective::ReduceOperation operation) override {
    return inner_->all_reduce_i64(call, values, operation);
  }
  void abort(const Status& cause) noexcept override { inner_->abort(cause); }

 protected:
  collective::Collective& inner() { return *inner_; }

 private:
  std::unique_ptr<collective::Collective> inner_;
};

}  // namespace shardwright::test
