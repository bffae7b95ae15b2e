// SPDX-License-Identifier: Apache-2.0
//
// The communicator over NCCL before the conformance suite, where there is a GPU: one rank, as NCCL
// puts one on each. The suite has memory of the host, so each operation goes through memory of the
// device and back.
#include <utility>

#include "core/base/cuda/cuda_calls.h"
#include "core/collective/issue.h"
#include "core/collective/nccl/nccl_communicator.h"
#include "tests/conformance/communicator/communicator_suite.h"

namespace shardwright::collective {
namespace {

std::string missing_gpu() {
  const Status there = cuda::check_device(0);
  return there.ok() ? std::string() : "there is no GPU: " + std::string(there.message());
}

// Bytes of the host in memory of the device.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::span<const std::byte> host) : size_(host.size()) {
    if (size_ == 0) return;
    EXPECT_EQ(cudaMalloc(&memory_, size_), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, host.data(), size_, cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceBytes() {
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);  // none is fine
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory_), size_}; }
  void copy_to(std::span<std::byte> host) const {
    if (size_ == 0) return;
    EXPECT_EQ(cudaMemcpy(host.data(), memory_, size_, cudaMemcpyDeviceToHost), cudaSuccess);
  }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
};

class StagedWork final : public Work {
 public:
  StagedWork(std::span<const std::byte> in, std::span<std::byte> out)
      : in_(in), out_(out), host_(out) {}
  template <typename Issue>
  Status issue(const Issue& issue) {
    SHW_ASSIGN_OR_RETURN(inner_, issue(in_.bytes(), out_.bytes()));
    return {};
  }
  Result<bool> wait(int64_t timeout_ns) override { return ended(inner_->wait(timeout_ns)); }
  Result<bool> test() override { return ended(inner_->test()); }

 private:
  Result<bool> ended(Result<bool> outcome) {
    if (outcome.ok() && *outcome && !std::exchange(is_back_, true)) out_.copy_to(host_);
    return outcome;
  }

  const DeviceBytes in_;
  const DeviceBytes out_;
  const std::span<std::byte> host_;
  bool is_back_ = false;
  WorkPtr inner_;  // goes first
};

class StagedCommunicator final : public Communicator {
 public:
  explicit StagedCommunicator(CommunicatorPtr inner) : inner_(std::move(inner)) {}
  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return inner_->name(); }
  uint64_t capabilities() const override { return inner_->capabilities(); }
  Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return stage(in, out, [&](auto from, auto to) { return inner_->all_gather(call, from, to); });
  }
  Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return stage(in, out, [&](auto from, auto to) { return inner_->all_to_all(call, from, to); });
  }
  Result<WorkPtr> reduce_scatter(const CommunicatorCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out) override {
    return stage(in, out,
                 [&](auto from, auto to) { return inner_->reduce_scatter(call, from, to); });
  }
  Result<WorkPtr> all_reduce(const CommunicatorCall& call, std::span<std::byte> data) override {
    return stage({}, data, [&](auto, auto to) { return inner_->all_reduce(call, to); });
  }
  Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                            int32_t root) override {
    return stage({}, data, [&](auto, auto to) { return inner_->broadcast(call, to, root); });
  }
  Result<WorkPtr> barrier(const CommunicatorCall& call) override { return inner_->barrier(call); }
  void abort(const Status& cause) noexcept override { inner_->abort(cause); }

 private:
  template <typename Issue>
  Result<WorkPtr> stage(std::span<const std::byte> in, std::span<std::byte> out,
                        const Issue& issue) {
    return issue_or_abort(*this, "staging a collective", [&]() -> Result<WorkPtr> {
      auto work = std::make_unique<StagedWork>(in, out);
      SHW_RETURN_IF_ERROR(work->issue(issue));
      return WorkPtr(std::move(work));
    });
  }

  const CommunicatorPtr inner_;
};

Communicators one_rank() {
  NcclRequest request;
  request.library = SHW_NCCL_LIBRARY;
  request.id = read_nccl_id(make_nccl_id(request.library).value()).value();
  return {std::make_shared<StagedCommunicator>(make_nccl_communicator(request).value())};
}

INSTANTIATE_TEST_SUITE_P(Nccl, CommunicatorConformance,
                         testing::Values(CommunicatorMaker{"nccl_1", 1, one_rank, missing_gpu}),
                         [](const auto& each) { return each.param.name; });

TEST(NcclCommunicator, IsRefusedBeforeAnybodyIsWaitedFor) {
  NcclRequest request;
  request.rank = 2;
  request.size = 2;
  EXPECT_EQ(make_nccl_communicator(request).status().code(), StatusCode::kInvalidArgument);
  if (missing_gpu().empty()) GTEST_SKIP() << "there is a GPU";
  request.rank = 0;
  const Status refused = make_nccl_communicator(request).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_FALSE(refused.retryable());
  EXPECT_NE(refused.message().find("NVIDIA driver"), std::string_view::npos) << refused.to_string();
}

}  // namespace
}  // namespace shardwright::collective
