// SPDX-License-Identifier: Apache-2.0
//
// Over a GPU: what is seen is a copy, which goes back when it was written.
#include <map>
#include <mutex>
#include <vector>

#include "core/base/cuda/cuda_calls.h"
#include "core/device/cuda/cuda_device.h"
#include "core/device/memory_work.h"
#include "tests/core/hsdp/test_memory.h"

namespace shardwright::test {
namespace {

// Copies by the address of what they are of, for all ranks.
class Copies {
 public:
  static Copies& all() {
    static Copies copies;
    return copies;
  }
  std::span<std::byte> of(std::span<std::byte> memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::byte>& copy = copies_[memory.data()];
    copy.resize(memory.size());
    static_cast<void>(work_->download(memory, copy));  // bits that are wrong fail the test
    static_cast<void>(work_->finish());
    return copy;
  }
  void go_back(std::span<std::byte> memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    static_cast<void>(work_->upload(copies_[memory.data()], memory));
    static_cast<void>(work_->finish());
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<device::MemoryWork> work_ =
      device::make_memory_work(make_test_device(false)).value();
  std::map<std::byte*, std::vector<std::byte>> copies_;
};

}  // namespace

std::shared_ptr<device::LaneDevice> make_test_device(bool) {
  return device::make_cuda_lane_device(0).value();
}

std::string missing_device() {
  const Status there = cuda::check_device(0);
  return there.ok() ? std::string() : "there is no GPU: " + std::string(there.message());
}

std::span<std::byte> seen(std::span<std::byte> memory) {
  return Copies::all().of(memory);
}

void written(std::span<std::byte> memory) {
  Copies::all().go_back(memory);
}

}  // namespace shardwright::test
