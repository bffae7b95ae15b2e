// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/device/lane_device_suite.h"

#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/tensor/cast.h"
#include "tests/support/gate.h"
#include "tests/support/no_memory.h"

namespace shardwright::device {
namespace {

std::function<Status()> failing(const std::string& text) {
  return [text] { return data_loss(text); };
}

}  // namespace

TEST_P(LaneDeviceConformance, RunsTasksInTheOrderOfTheirLane) {
  const LanePtr lane = this->lane();
  std::vector<int> order;
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  for (const int i : expected) {
    ASSERT_TRUE(lane->submit([&order, i] {
                      order.push_back(i);
                      return Status();
                    })
                    .ok());
  }
  ASSERT_TRUE(lane->synchronize().ok());
  EXPECT_EQ(order, expected);
}

TEST_P(LaneDeviceConformance, KeepsTheFirstFailureUntilItIsAskedFor) {
  const LanePtr lane = this->lane();
  bool has_run = false;
  ASSERT_TRUE(lane->submit(failing("first")).ok());
  ASSERT_TRUE(lane->submit(failing("second")).ok());
  ASSERT_TRUE(lane->submit([&has_run] {
                    has_run = true;
                    return Status();
                  })
                  .ok());
  const Status status = lane->synchronize();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(status.to_string().find("first"), std::string::npos) << status.to_string();
  EXPECT_TRUE(has_run);
  EXPECT_TRUE(lane->synchronize().ok());
}

TEST_P(LaneDeviceConformance, ATaskThatThrowsHasFailed) {
  const LanePtr lane = this->lane();
  ASSERT_TRUE(lane->submit([]() -> Status { throw std::runtime_error("not here"); }).ok());
  EXPECT_EQ(lane->synchronize().code(), StatusCode::kInternal);
  ASSERT_TRUE(lane->submit([]() -> Status { throw std::bad_alloc(); }).ok());
  EXPECT_EQ(lane->synchronize().code(), StatusCode::kResourceExhausted);
}

TEST_P(LaneDeviceConformance, AnEventThatWasNeverRecordedHasPassed) {
  const EventPtr event = this->event();
  EXPECT_TRUE(event->has_passed());
  const Result<bool> waited = event->wait(-1);
  EXPECT_TRUE(waited.ok() && *waited);
  const LanePtr lane = this->lane();
  EXPECT_TRUE(lane->wait_for(*event).ok());
  EXPECT_TRUE(lane->synchronize().ok());
}

TEST_P(LaneDeviceConformance, AnEventPassesWhenItsLaneComesThere) {
  const LanePtr lane = this->lane();
  const EventPtr event = this->event();
  test::Gate gate;
  if (!GetParam().has_own_threads) gate.open();
  ASSERT_TRUE(lane->submit([&gate] {
                    gate.pass();
                    return Status();
                  })
                  .ok());
  ASSERT_TRUE(lane->record(*event).ok());
  if (GetParam().has_own_threads) {
    EXPECT_FALSE(event->has_passed());
    for (const int64_t timeout_ns : {int64_t{0}, int64_t{1000}}) {
      const Result<bool> waited = event->wait(timeout_ns);
      EXPECT_TRUE(waited.ok() && !*waited);
    }
  }
  gate.open();
  const Result<bool> waited = event->wait(-1);
  EXPECT_TRUE(waited.ok() && *waited);
  EXPECT_TRUE(event->has_passed());
}

TEST_P(LaneDeviceConformance, ALaneWaitsForAnEventOfAnother) {
  const LanePtr first = lane();
  const LanePtr second = lane();
  const EventPtr event = this->event();
  test::Gate gate;
  if (!GetParam().has_own_threads) gate.open();
  std::vector<int> order;
  ASSERT_TRUE(first
                  ->submit([&] {
                    gate.pass();
                    order.push_back(1);
                    return Status();
                  })
                  .ok());
  ASSERT_TRUE(first->record(*event).ok());
  ASSERT_TRUE(second->wait_for(*event).ok());
  ASSERT_TRUE(second
                  ->submit([&] {
                    order.push_back(2);
                    return Status();
                  })
                  .ok());
  gate.open();
  ASSERT_TRUE(second->synchronize().ok());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

// What is recorded in the same event later, on a lane that is ahead, frees nobody who waits.
TEST_P(LaneDeviceConformance, ALaneWaitsForTheEventAsItWasRecordedThen) {
  if (!GetParam().has_own_threads) GTEST_SKIP() << "no lane is ahead of another";
  const LanePtr late = lane();
  const LanePtr waiting = lane();
  const LanePtr ahead = lane();
  const EventPtr event = this->event();
  const EventPtr end = this->event();
  test::Gate gate;
  ASSERT_TRUE(late->submit([&gate] {
                    gate.pass();
                    return Status();
                  })
                  .ok());
  ASSERT_TRUE(late->record(*event).ok());
  ASSERT_TRUE(waiting->wait_for(*event).ok());
  ASSERT_TRUE(waiting->record(*end).ok());
  ASSERT_TRUE(ahead->record(*event).ok());
  const Result<bool> passed = event->wait(-1);
  EXPECT_TRUE(passed.ok() && *passed);
  EXPECT_FALSE(end->has_passed());
  gate.open();
  const Result<bool> ended = end->wait(-1);
  EXPECT_TRUE(ended.ok() && *ended);
}

TEST_P(LaneDeviceConformance, ALaneThatGoesHasRunEverything) {
  test::Gate gate;
  if (!GetParam().has_own_threads) gate.open();
  int runs = 0;
  const EventPtr event = this->event();
  {
    const LanePtr lane = this->lane();
    ASSERT_TRUE(lane->submit([&] {
                      gate.pass();
                      ++runs;
                      return Status();
                    })
                    .ok());
    ASSERT_TRUE(lane->submit(failing("nobody asks")).ok());
    ASSERT_TRUE(lane->record(*event).ok());
    gate.open();
  }
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(event->has_passed());
}

TEST_P(LaneDeviceConformance, GivesAlignedMemoryOfAnySize) {
  for (const uint64_t bytes :
       {uint64_t{1}, uint64_t{63}, uint64_t{4096}, (uint64_t{8} << 20) - 1, uint64_t{9} << 20}) {
    for (const bool pinned : {false, true}) {
      const Result<std::span<std::byte>> memory =
          pinned ? device_->allocate_pinned(bytes) : device_->allocate(bytes);
      ASSERT_TRUE(memory.ok()) << memory.status().to_string();
      EXPECT_EQ(memory->size(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0U);
      if (pinned) {
        memory->front() = memory->back() = std::byte{1};
        device_->release_pinned(*memory);
      } else {
        device_->release(*memory);
      }
    }
  }
  const Result<std::span<std::byte>> nothing = device_->allocate(0);
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE(nothing->empty());
  device_->release(*nothing);
}

TEST_P(LaneDeviceConformance, RefusesMemoryThatNoMachineHas) {
  const Result<std::span<std::byte>> memory = device_->allocate(uint64_t{1} << 62);
  EXPECT_EQ(memory.status().code(), StatusCode::kResourceExhausted) << memory.status().to_string();
  EXPECT_EQ(memory.status().detail("resource"), "memory");
}

TEST_P(LaneDeviceConformance, CopiesThereAndBackInTheOrderOfTheLane) {
  constexpr size_t kBytes = 100'000;
  std::vector<std::byte> there(kBytes, std::byte{17});
  std::vector<std::byte> back(kBytes);
  const std::span<std::byte> first = device_->allocate(kBytes).value();
  const std::span<std::byte> second = device_->allocate(kBytes).value();
  const LanePtr lane = this->lane();
  ASSERT_TRUE(device_->copy(*lane, CopyKind::kHostToDevice, there, first).ok());
  ASSERT_TRUE(device_->copy(*lane, CopyKind::kDeviceToDevice, first, second).ok());
  ASSERT_TRUE(device_->copy(*lane, CopyKind::kDeviceToHost, second, back).ok());
  ASSERT_TRUE(lane->synchronize().ok());
  EXPECT_EQ(back, there);
  device_->release(first);
  device_->release(second);
}

TEST_P(LaneDeviceConformance, RefusesCopiesBetweenSizes) {
  const LanePtr lane = this->lane();
  const std::span<std::byte> memory = device_->allocate(64).value();
  std::vector<std::byte> host(63);
  EXPECT_EQ(device_->copy(*lane, CopyKind::kHostToDevice, host, memory).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(lane->synchronize().ok());
  device_->release(memory);
}

// Casts, multiplies and adds behind what came before on the lane, in runs.
TEST_P(LaneDeviceConformance, ConvertsElementsInTheOrderOfTheLane) {
  const std::vector<float> given{1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(given));
  const std::span<std::byte> floats = device_->allocate(bytes.size()).value();
  const std::span<std::byte> doubles = device_->allocate(8 * given.size()).value();
  ElementCopy copy{.source = floats.data(),
                   .target = doubles.data(),
                   .rows = 2,
                   .columns = 2,
                   .source_pitch = 3,
                   .target_pitch = 3,
                   .source_dtype = DType::kFloat32,
                   .target_dtype = DType::kFloat64};
  const LanePtr lane = this->lane();
  ASSERT_TRUE(device_->copy(*lane, CopyKind::kHostToDevice, bytes, floats).ok());
  ASSERT_TRUE(device_->fill_zero(*lane, doubles).ok());
  ASSERT_TRUE(device_->copy_elements(*lane, copy).ok());
  copy.scale = 0.5;
  copy.adds = true;
  ASSERT_TRUE(device_->copy_elements(*lane, copy).ok());
  std::vector<double> found(given.size());
  const auto back = std::as_writable_bytes(std::span(found));
  ASSERT_TRUE(device_->copy(*lane, CopyKind::kDeviceToHost, doubles, back).ok());
  ASSERT_TRUE(lane->synchronize().ok());
  EXPECT_EQ(found, (std::vector<double>{1.5, 3, 0, 6, 7.5, 0}));
  device_->release(floats);
  device_->release(doubles);
}

// As the host does it, for the floats of units.
TEST_P(LaneDeviceConformance, GivesTheBitsOfTheHost) {
  constexpr size_t kElements = 3000;
  std::vector<float> given(kElements);
  for (size_t i = 0; i < kElements; ++i)
    given[i] = static_cast<float>(static_cast<int>(i) - 1500) / 7;
  const auto bytes = std::as_bytes(std::span(given));
  const std::span<std::byte> source = device_->allocate(bytes.size()).value();
  const std::span<std::byte> target = device_->allocate(bytes.size()).value();
  const LanePtr lane = this->lane();
  ASSERT_TRUE(device_->copy(*lane, CopyKind::kHostToDevice, bytes, source).ok());
  for (const DType to : {DType::kBfloat16, DType::kFloat16}) {
    std::vector<std::byte> expected(2 * kElements, std::byte{0});
    std::vector<std::byte> found(expected.size());
    ElementCopy copy{.source = bytes.data(),
                     .target = expected.data(),
                     .columns = kElements,
                     .source_dtype = DType::kFloat32,
                     .target_dtype = to,
                     .scale = 1.0 / 3,
                     .adds = true};
    for (int round = 0; round < 3; ++round) ASSERT_TRUE(copy_elements_on_host(copy).ok());
    copy.source = source.data();
    copy.target = target.data();
    ASSERT_TRUE(device_->fill_zero(*lane, target).ok());
    for (int round = 0; round < 3; ++round) ASSERT_TRUE(device_->copy_elements(*lane, copy).ok());
    ASSERT_TRUE(
        device_->copy(*lane, CopyKind::kDeviceToHost, target.first(found.size()), found).ok());
    ASSERT_TRUE(lane->synchronize().ok());
    EXPECT_EQ(found, expected) << dtype_name(to);
  }
  device_->release(source);
  device_->release(target);
}

// What is next to the middle between two of the narrow ones is told apart.
TEST_P(LaneDeviceConformance, RoundsDoublesOnce) {
  const std::vector<double> given{257.0,           257.0 + 0x1p-40,
                                  257.0 - 0x1p-40, -257.0 - 0x1p-40,
                                  2049.0,          2049.0 + 0x1p-40,
                                  65519.999999999, 65520.0,
                                  0x1p-25,         0x1.0000000001p-25,
                                  0x1p-134,        0x1.0000000001p-134,
                                  0x1.ffp127,      -1e300,
                                  1.0 / 3,         0.0};
  const auto bytes = std::as_bytes(std::span(given));
  const std::span<std::byte> source = device_->allocate(bytes.size()).value();
  const std::span<std::byte> target = device_->allocate(bytes.size()).value();
  const LanePtr lane = this->lane();
  ASSERT_TRUE(device_->copy(*lane, CopyKind::kHostToDevice, bytes, source).ok());
  for (const DType to : {DType::kBfloat16, DType::kFloat16}) {
    std::vector<std::byte> expected(2 * given.size());
    std::vector<std::byte> found(expected.size());
    std::vector<double> back(given.size());
    std::vector<double> expected_back(given.size());
    ASSERT_TRUE(cast_elements(DType::kFloat64, bytes, to, expected).ok());
    ASSERT_TRUE(cast_elements(to, expected, DType::kFloat64,
                              std::as_writable_bytes(std::span(expected_back)))
                    .ok());
    ElementCopy copy{.source = source.data(),
                     .target = target.data(),
                     .columns = given.size(),
                     .source_dtype = DType::kFloat64,
                     .target_dtype = to};
    ASSERT_TRUE(device_->copy_elements(*lane, copy).ok());
    ASSERT_TRUE(
        device_->copy(*lane, CopyKind::kDeviceToHost, target.first(found.size()), found).ok());
    std::swap(copy.source_dtype, copy.target_dtype);
    copy.source = target.data();
    copy.target = source.data();
    ASSERT_TRUE(device_->copy_elements(*lane, copy).ok());
    ASSERT_TRUE(
        device_
            ->copy(*lane, CopyKind::kDeviceToHost, source, std::as_writable_bytes(std::span(back)))
            .ok());
    ASSERT_TRUE(device_->copy(*lane, CopyKind::kHostToDevice, bytes, source).ok());
    ASSERT_TRUE(lane->synchronize().ok());
    EXPECT_EQ(found, expected) << dtype_name(to);
    EXPECT_EQ(back, expected_back) << dtype_name(to);
  }
  device_->release(source);
  device_->release(target);
}

// Runs back to back, runs with room between them, and runs that read again what others have read.
TEST_P(LaneDeviceConformance, CopiesRunsOfAnyDtype) {
  const std::vector<int64_t> given{1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(given));
  const std::span<std::byte> source = device_->allocate(bytes.size()).value();
  const std::span<std::byte> target = device_->allocate(bytes.size()).value();
  const LanePtr lane = this->lane();
  ASSERT_TRUE(device_->copy(*lane, CopyKind::kHostToDevice, bytes, source).ok());
  const std::vector<std::pair<uint64_t, std::vector<int64_t>>> cases{
      {2, {1, 2, 0, 3, 4, 0}}, {3, {1, 2, 0, 4, 5, 0}}, {1, {1, 2, 0, 2, 3, 0}}};
  for (const auto& [source_pitch, expected] : cases) {
    std::vector<int64_t> found(given.size());
    ASSERT_TRUE(device_->fill_zero(*lane, target).ok());
    ASSERT_TRUE(device_
                    ->copy_elements(*lane, {.source = source.data(),
                                            .target = target.data(),
                                            .rows = 2,
                                            .columns = 2,
                                            .source_pitch = source_pitch,
                                            .target_pitch = 3,
                                            .source_dtype = DType::kInt64,
                                            .target_dtype = DType::kInt64})
                    .ok());
    const auto back = std::as_writable_bytes(std::span(found));
    ASSERT_TRUE(device_->copy(*lane, CopyKind::kDeviceToHost, target, back).ok());
    ASSERT_TRUE(lane->synchronize().ok());
    EXPECT_EQ(found, expected) << source_pitch;
  }
  device_->release(source);
  device_->release(target);
}

TEST_P(LaneDeviceConformance, RefusesElementsThatItDoesNotConvert) {
  const LanePtr lane = this->lane();
  const std::span<std::byte> memory = device_->allocate(64).value();
  const ElementCopy copy{.source = memory.data(),
                         .target = memory.data(),
                         .columns = 4,
                         .source_dtype = DType::kInt64,
                         .target_dtype = DType::kFloat32};
  EXPECT_EQ(device_->copy_elements(*lane, copy).code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(lane->synchronize().ok());
  device_->release(memory);
}

// A task that could not be submitted does not run, and the lane goes on.
TEST_P(LaneDeviceConformance, WhatCannotBeSubmittedDoesNotRun) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  const LanePtr lane = this->lane();
  const EventPtr event = this->event();
  bool missed = true;
  for (int64_t allowed = 0; missed; ++allowed) {
    int runs = 0;
    const std::function<Status()> task = [&runs] {
      ++runs;
      return Status();
    };
    test::take_memory(allowed);
    const Status submitted = lane->submit(task);
    const Status recorded = lane->record(*event);
    missed = test::give_memory();
    EXPECT_TRUE(missed || (submitted.ok() && recorded.ok()));
    ASSERT_TRUE(lane->synchronize().ok());
    EXPECT_EQ(runs, submitted.ok() ? 1 : 0);
    for (const Status& each : {submitted, recorded}) {
      if (!each.ok()) {
        EXPECT_EQ(each.code(), StatusCode::kResourceExhausted);
      }
    }
  }
}

}  // namespace shardwright::device
