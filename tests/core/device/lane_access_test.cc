// SPDX-License-Identifier: Apache-2.0
//
// Windows of memory that faults under the host's hands, copied by the lanes of its device: any
// strides and any bytes of them, several callers at once, and a device that fails.
#include "core/device/lane_access.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/strided_copy.h"
#include "tests/support/apart_device.h"
#include "tests/support/expect_failure.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"
#include "tests/support/wrapped_device.h"

namespace shardwright::device {
namespace {

using Bytes = std::vector<std::byte>;

// Memory of a device that begins as these bytes.
class Lent {
 public:
  Lent(std::shared_ptr<LaneDevice> device, const Bytes& bytes)
      : device_(std::move(device)), memory_(device_->allocate(bytes.size()).value()) {
    std::ranges::copy(bytes, test::behind(memory_.data()));
  }
  ~Lent() { device_->release(memory_); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  std::byte* data() const { return memory_.data(); }
  Bytes now() const {
    const auto found = test::behind(std::span<const std::byte>(memory_));
    return {found.begin(), found.end()};
  }

 private:
  const std::shared_ptr<LaneDevice> device_;
  const std::span<std::byte> memory_;
};

// Dimensions in any order, with gaps between them; some of one element.
StridedWindow random_window(test::RandomSource& random, int64_t* elements) {
  StridedWindow window;
  window.element_bytes = uint64_t{1} << random.between(0, 3);
  const auto rank = static_cast<size_t>(random.between(0, 4));
  std::vector<size_t> order(rank);
  window.shape = Dims(rank, 1);
  window.strides = Dims(rank, 1);
  for (size_t dim = 0; dim < rank; ++dim) {
    order[dim] = dim;
    window.shape[dim] = random.between(1, 7);
  }
  if (random.chance(50)) random.shuffle(&order);
  int64_t step = random.chance(70) ? 1 : random.between(1, 3);
  for (size_t each = rank; each-- > 0;) {
    const size_t dim = order[each];
    window.strides[dim] = step;
    step = step * window.shape[dim] + (random.chance(50) ? 0 : random.between(1, 4));
  }
  *elements = step;
  return window;
}

TEST(LaneAccess, CopiesAnyBytesOfAnyWindow) {
  test::RandomSource random;
  const auto device = test::make_apart_device(/*inline_lanes=*/false);
  const auto access = make_lane_access(device);
  const int rounds = test::kSanitized ? 200 : 2000;
  for (int round = 0; round < rounds; ++round) {
    int64_t elements = 0;
    StridedWindow here = random_window(random, &elements);
    Bytes memory = random.bytes(static_cast<size_t>(elements) * here.element_bytes);
    const Lent lent(device, memory);
    StridedWindow there = here;
    here.data = memory.data();
    there.data = lent.data();
    const auto all = static_cast<int64_t>(window_bytes(here));
    const auto begin = static_cast<uint64_t>(random.between(0, all));
    const auto count = static_cast<size_t>(random.between(0, all - static_cast<int64_t>(begin)));
    Bytes expected(count);
    Bytes found(count);
    gather(here, begin, expected);
    ASSERT_TRUE(access->gather(there, begin, found).ok());
    ASSERT_EQ(found, expected);
    const Bytes other = random.bytes(count);
    scatter(other, here, begin);
    ASSERT_TRUE(access->scatter(other, there, begin).ok());
    ASSERT_EQ(lent.now(), memory);
  }
}

// More than travels at a time, by more callers than travel at once: each has columns of its own.
TEST(LaneAccess, SeveralCallersFillOneTensor) {
  constexpr int64_t kRows = 700'001;
  constexpr int64_t kCallers = 7;
  const auto device = test::make_apart_device(false);
  const auto access = make_lane_access(device);
  Bytes memory(kRows * kCallers * 2, std::byte{9});
  const Lent lent(device, memory);
  std::atomic<int> failed{0};
  std::vector<std::thread> callers;
  for (int64_t caller = 0; caller < kCallers; ++caller) {
    const auto column = [caller](std::byte* data) {
      return StridedWindow{data + caller * 2, 2, Dims{kRows, 1}, Dims{kCallers, 1}};
    };
    Bytes mine(kRows * 2);
    for (size_t each = 0; each < mine.size(); ++each)
      mine[each] = static_cast<std::byte>(each * 7 + static_cast<size_t>(caller));
    scatter(mine, column(memory.data()), 0);
    callers.emplace_back([&, column, mine = std::move(mine)] {
      if (!access->scatter(mine, column(lent.data()), 0).ok()) ++failed;
    });
  }
  for (std::thread& each : callers) each.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(lent.now(), memory);
  Bytes whole(memory.size());
  const StridedWindow run{lent.data(), 1, Dims{static_cast<int64_t>(memory.size())}, Dims{1}};
  ASSERT_TRUE(access->gather(run, 0, whole).ok());
  EXPECT_EQ(whole, memory);
}

// One of its calls fails, the one with that number.
class FailingDevice final : public test::WrappedDevice {
 public:
  FailingDevice(std::shared_ptr<LaneDevice> inner, int64_t failing)
      : WrappedDevice(std::move(inner)), left_(failing) {}

  Result<LanePtr> make_lane(int32_t priority) override {
    if (Status outcome = count(); !outcome.ok()) return outcome;
    return WrappedDevice::make_lane(priority);
  }
  Result<std::span<std::byte>> allocate(uint64_t bytes) override {
    if (Status outcome = count(); !outcome.ok()) return outcome;
    return WrappedDevice::allocate(bytes);
  }
  Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) override {
    if (Status outcome = count(); !outcome.ok()) return outcome;
    return WrappedDevice::allocate_pinned(bytes);
  }
  // On the lane, as a device finds out.
  Status copy(Lane& lane, CopyKind kind, std::span<const std::byte> source,
              std::span<std::byte> target) override {
    SHW_RETURN_IF_ERROR(lane.submit([outcome = count()] { return outcome; }));
    return WrappedDevice::copy(lane, kind, source, target);
  }
  Status copy_elements(Lane& lane, const ElementCopy& copy) override {
    if (Status outcome = count(); !outcome.ok()) return outcome;
    return WrappedDevice::copy_elements(lane, copy);
  }
  bool has_failed() const { return left_ < 0; }

 private:
  Status count() { return left_-- == 0 ? unavailable("a wire is loose") : Status(); }

  std::atomic<int64_t> left_;
};

TEST(LaneAccess, EachFailureOfADeviceIsToldAndTheNextCallGoesOn) {
  const auto device = test::make_apart_device(false);
  const Lent lent(device, Bytes(64));
  const StridedWindow column{lent.data(), 1, Dims{8, 1}, Dims{8, 1}};
  const Bytes other(8, std::byte{3});
  int64_t failures = 0;
  for (bool is_missed = false; !is_missed; ++failures) {
    const auto failing = std::make_shared<FailingDevice>(device, failures);
    const auto access = make_lane_access(failing);
    Bytes found(8);
    Status outcome = access->scatter(other, column, 0);
    if (outcome.ok()) outcome = access->gather(column, 0, found);
    is_missed = !failing->has_failed();
    if (is_missed) break;
    EXPECT_FAILURE(outcome, StatusCode::kUnavailable, "device 'apart'", "a wire is loose");
    ASSERT_TRUE(access->scatter(other, column, 0).ok());
    ASSERT_TRUE(access->gather(column, 0, found).ok());
    EXPECT_EQ(found, other);
  }
  EXPECT_GE(failures, 6);  // a lane, memory on both sides, and copies
}

}  // namespace
}  // namespace shardwright::device
