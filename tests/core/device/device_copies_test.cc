// SPDX-License-Identifier: Apache-2.0
//
// What every device does alike, for host memory, for a device that the host cannot reach, and for
// memory that comes with an access: strided windows against their packed bytes.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/host/host_device.h"
#include "core/device/lane_access.h"
#include "core/device/reached_device.h"
#include "core/integrity/digest.h"
#include "tests/support/apart_device.h"
#include "tests/support/guarded_device.h"

namespace shardwright::device {
namespace {

using test::GuardedDevice;

constexpr int64_t kRows = 37;
constexpr int64_t kColumns = 29;
constexpr int64_t kElements = kRows * kColumns;

enum class Place { kHost, kGuarded, kReached };

// A column-major float matrix on a device, and its elements in row-major order.
struct Matrix {
  std::vector<float> memory = std::vector<float>(kElements);
  GuardedDevice guarded{1 << 20};
  std::unique_ptr<Device> host = make_host_device();
  std::shared_ptr<LaneDevice> apart = test::make_apart_device(/*inline_lanes=*/false);
  std::shared_ptr<WindowAccess> access = make_lane_access(apart);
  std::unique_ptr<Device> reached = make_reached_device();
  std::span<std::byte> lent;  // of apart
  DeviceWindow window;
  std::vector<float> packed = std::vector<float>(kElements);

  explicit Matrix(Place place) {
    std::iota(memory.begin(), memory.end(), 1.0F);
    for (int64_t i = 0; i < kElements; ++i)
      packed[static_cast<size_t>(i)] =
          memory[static_cast<size_t>(i % kColumns * kRows + i / kColumns)];
    TensorView view;
    view.data = reinterpret_cast<std::byte*>(memory.data());
    view.dtype = DType::kFloat32;
    view.shape = Dims{kRows, kColumns};
    view.strides = Dims{1, kRows};
    if (place == Place::kGuarded) view = guarded.moved(view);
    if (place == Place::kReached) view.data = lend();
    window = {device_at(place), *window_of(view, Dims{0, 0}, view.shape), view.device_id,
              view.stream, place == Place::kReached ? access.get() : nullptr};
  }
  ~Matrix() { apart->release(lent); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  Device* device_at(Place place) {
    if (place == Place::kHost) return host.get();
    return place == Place::kReached ? reached.get() : static_cast<Device*>(&guarded);
  }
  std::byte* lend() {
    lent = apart->allocate(kElements * sizeof(float)).value();
    std::memcpy(test::behind(lent.data()), memory.data(), lent.size());
    return lent.data();
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(packed)); }
  std::vector<std::byte> now() {
    std::vector<std::byte> all(bytes().size());
    EXPECT_TRUE(window.device->gather(window, 0, all).ok());
    return all;
  }
  testing::AssertionResult holds(std::span<const float> expected) {
    return std::ranges::equal(now(), std::as_bytes(expected)) ? testing::AssertionSuccess()
                                                              : testing::AssertionFailure();
  }
};

class DeviceCopies : public testing::TestWithParam<Place> {
 protected:
  Matrix matrix_{GetParam()};
  Device& device() { return *matrix_.window.device; }
};

std::string name_of_place(const testing::TestParamInfo<Place>& each) {
  if (each.param == Place::kHost) return "Host";
  return each.param == Place::kGuarded ? "Guarded" : "Reached";
}

INSTANTIATE_TEST_SUITE_P(Each, DeviceCopies,
                         testing::Values(Place::kHost, Place::kGuarded, Place::kReached),
                         name_of_place);

TEST_P(DeviceCopies, GatherGivesAnyRunOfThePackedBytes) {
  for (const size_t begin : {size_t{0}, size_t{1}, size_t{115}, size_t{4000}}) {
    std::vector<std::byte> to(matrix_.bytes().size() - begin - 3);
    ASSERT_TRUE(device().gather(matrix_.window, begin, to).ok());
    EXPECT_TRUE(std::ranges::equal(to, matrix_.bytes().subspan(begin, to.size()))) << begin;
    std::ranges::fill(to, std::byte{0});
    const Result<Digest128> digest = device().gather_and_digest(matrix_.window, begin, to);
    ASSERT_TRUE(digest.ok());
    EXPECT_TRUE(std::ranges::equal(to, matrix_.bytes().subspan(begin, to.size()))) << begin;
    EXPECT_EQ(*digest, integrity::xxh3_128(to));
  }
}

TEST_P(DeviceCopies, ScatterPutsThemBack) {
  std::vector<float> other = matrix_.packed;
  for (size_t i = 100; i < 500; ++i) other[i] = -1.0F;
  const auto bytes = std::as_bytes(std::span(other));
  ASSERT_TRUE(device().scatter(bytes.subspan(400, 1600), matrix_.window, 400).ok());
  EXPECT_TRUE(matrix_.holds(other));
}

TEST_P(DeviceCopies, CopyTouchesTheElementsOfTheRangeOnly) {
  std::vector<float> other(kElements);
  std::iota(other.begin(), other.end(), 5000.0F);
  constexpr uint64_t kBegin = 17;
  constexpr uint64_t kEnd = 600;
  // What is outside the range is not there.
  std::vector<float> part(other.begin() + kBegin, other.begin() + kEnd);
  auto* const first = reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(part.data()) -
                                                   kBegin * sizeof(float));
  const StridedWindow from = packed_window(first, sizeof(float), Dims{kRows, kColumns});
  ASSERT_TRUE(device().copy(from, matrix_.window, {kBegin, kEnd}).ok());
  std::vector<float> expected = matrix_.packed;
  std::copy(part.begin(), part.end(), expected.begin() + kBegin);
  EXPECT_TRUE(matrix_.holds(expected));
}

TEST_P(DeviceCopies, CastConvertsTheElementsOfTheRange) {
  std::vector<int16_t> stored(kElements);
  std::iota(stored.begin(), stored.end(), int16_t{-50});
  const StridedWindow from = packed_window(reinterpret_cast<std::byte*>(stored.data()),
                                           sizeof(int16_t), Dims{kRows, kColumns});
  ASSERT_TRUE(device().casts(DType::kInt16, DType::kFloat32));
  ASSERT_TRUE(
      device().cast(from, DType::kInt16, matrix_.window, DType::kFloat32, {3, kElements - 2}).ok());
  std::vector<float> expected = matrix_.packed;
  for (size_t i = 3; i < kElements - 2; ++i) expected[i] = static_cast<float>(stored[i]);
  EXPECT_TRUE(matrix_.holds(expected));
}

TEST_P(DeviceCopies, FillZeroReachesEveryElement) {
  ASSERT_TRUE(device().fill_zero(matrix_.window).ok());
  EXPECT_TRUE(matrix_.holds(std::vector<float>(kElements, 0.0F)));
}

TEST_P(DeviceCopies, NothingIsMovedForNoElements) {
  DeviceWindow none = matrix_.window;
  none.elements.shape = Dims{0, kColumns};
  EXPECT_TRUE(device().gather(none, 0, {}).ok());
  EXPECT_TRUE(device().scatter({}, none, 0).ok());
  EXPECT_TRUE(device().fill_zero(none).ok());
  EXPECT_TRUE(device().copy(none.elements, none, {0, 0}).ok());
  EXPECT_TRUE(device().cast(none.elements, DType::kInt16, none, DType::kFloat32, {0, 0}).ok());
  EXPECT_TRUE(matrix_.holds(matrix_.packed));
}

TEST(DeviceCopies, TheHostReachesContiguousHostMemoryItself) {
  Matrix matrix(Place::kHost);
  EXPECT_TRUE(matrix.host->host_bytes(matrix.window).empty()) << "its elements are no run";
  DeviceWindow column = matrix.window;
  column.elements.shape = Dims{kRows, 1};
  const std::span<std::byte> bytes = matrix.host->host_bytes(column);
  EXPECT_EQ(static_cast<void*>(bytes.data()), static_cast<void*>(matrix.memory.data()));
  EXPECT_EQ(bytes.size(), kRows * sizeof(float));
  EXPECT_TRUE(matrix.guarded.host_bytes(column).empty());
}

}  // namespace
}  // namespace shardwright::device
