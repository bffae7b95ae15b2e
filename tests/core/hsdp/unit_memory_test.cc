// SPDX-License-Identifier: Apache-2.0
//
// Books of buffers, and what is kept of their memory, over a device that counts.
#include "core/hsdp/unit_memory.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace shardwright::hsdp {
namespace {

// Memory of the host, counted; refuses what goes beyond a limit.
class CountingDevice final : public device::LaneDevice {
 public:
  ~CountingDevice() override {
    EXPECT_EQ(live_bytes, 0U) << "memory of the device was not given back";
  }
  std::string_view name() const override { return "counting"; }
  bool is_host() const override { return true; }
  device::DeviceNumber number() const override { return {}; }
  Result<std::unique_ptr<device::Lane>> make_lane(int32_t) override {
    return unimplemented("no lanes");
  }
  Result<std::unique_ptr<device::Event>> make_event() override {
    return unimplemented("no events");
  }
  Result<std::span<std::byte>> allocate(uint64_t bytes) override {
    if (live_bytes + bytes > limit_bytes) return resource_exhausted("memory", "the limit");
    live_bytes += bytes;
    ++made;
    return std::span(static_cast<std::byte*>(std::aligned_alloc(64, bytes)), bytes);
  }
  void release(std::span<std::byte> memory) noexcept override {
    live_bytes -= memory.size();
    std::free(memory.data());
  }
  Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) override { return allocate(bytes); }
  void release_pinned(std::span<std::byte> memory) noexcept override { release(memory); }
  Status copy(device::Lane&, device::CopyKind, std::span<const std::byte>,
              std::span<std::byte>) override {
    return unimplemented("no copies");
  }
  Status copy_elements(device::Lane&, const device::ElementCopy&) override {
    return unimplemented("no copies");
  }
  Status fill_zero(device::Lane&, std::span<std::byte>) override {
    return unimplemented("no zeros");
  }
  uint64_t current_stream() const override { return 0; }

  uint64_t live_bytes = 0;
  uint64_t limit_bytes = uint64_t{1} << 30;
  int32_t made = 0;
};

class UnitMemoryTest : public testing::Test {
 protected:
  Buffer acquire(BufferKind kind, uint64_t unit, uint64_t bytes) {
    Result<Buffer> buffer = memory_->acquire(kind, unit, bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status().to_string();
    return buffer.ok() ? std::move(buffer).value() : Buffer();
  }

  std::shared_ptr<CountingDevice> device_ = std::make_shared<CountingDevice>();
  std::unique_ptr<UnitMemory> memory_ = std::make_unique<UnitMemory>(device_);
};

TEST_F(UnitMemoryTest, BooksCountWhatWasAskedForByKindUnitAndInAll) {
  Buffer gathered = acquire(BufferKind::kGathered, 0, 100);
  {
    const Buffer packed = acquire(BufferKind::kPacked, 1, 30);
    EXPECT_EQ(packed.bytes().size(), 30U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(packed.bytes().data()) % 64, 0U);
  }
  const MemoryStats stats = memory_->stats();
  EXPECT_EQ(stats.total, (MemoryUse{100, 130, 1, 2}));
  EXPECT_EQ(stats.of(BufferKind::kGathered), (MemoryUse{100, 100, 1, 1}));
  EXPECT_EQ(stats.of(BufferKind::kPacked), (MemoryUse{0, 30, 0, 1}));
  EXPECT_EQ(stats.by_unit.at(0), (MemoryUse{100, 100, 1, 1}));
  EXPECT_EQ(stats.by_unit.at(1), (MemoryUse{0, 30, 0, 1}));
}

TEST_F(UnitMemoryTest, ABufferBecomesAnotherKindWithItsBytes) {
  Buffer buffer = acquire(BufferKind::kScattered, 0, 64);
  buffer.bytes()[5] = std::byte{7};
  ASSERT_TRUE(buffer.retag(BufferKind::kShardGradient).ok());
  EXPECT_EQ(buffer.kind(), BufferKind::kShardGradient);
  EXPECT_EQ(buffer.bytes()[5], std::byte{7});
  EXPECT_EQ(memory_->stats().of(BufferKind::kScattered).current_bytes, 0U);
  EXPECT_EQ(memory_->stats().of(BufferKind::kShardGradient).current_bytes, 64U);
  EXPECT_EQ(memory_->stats().total, (MemoryUse{64, 64, 1, 1}));
  EXPECT_EQ(Buffer().retag(BufferKind::kShard).code(), StatusCode::kFailedPrecondition);
}

TEST_F(UnitMemoryTest, ABufferMovesAndIsGivenBackOnce) {
  Buffer first = acquire(BufferKind::kShard, 0, 10);
  Buffer second = std::move(first);
  EXPECT_FALSE(static_cast<bool>(first));  // NOLINT: what a moved buffer is
  EXPECT_TRUE(static_cast<bool>(second));
  second = acquire(BufferKind::kShard, 0, 20);
  EXPECT_EQ(memory_->stats().total.current_bytes, 20U);
  second = Buffer();
  EXPECT_EQ(memory_->stats().total.current_count, 0U);
}

TEST_F(UnitMemoryTest, ABufferOfNothingIsThere) {
  const Buffer buffer = acquire(BufferKind::kPartial, 3, 0);
  EXPECT_TRUE(static_cast<bool>(buffer));
  EXPECT_TRUE(buffer.bytes().empty());
  EXPECT_EQ(memory_->stats().total, (MemoryUse{0, 0, 1, 1}));
  EXPECT_EQ(device_->made, 0);
}

TEST_F(UnitMemoryTest, MemoryIsKeptForBuffersOfAboutItsSize) {
  {
    const Buffer buffer = acquire(BufferKind::kGathered, 0, 1280);
  }
  {
    const Buffer buffer = acquire(BufferKind::kGathered, 1, 1024);
  }
  EXPECT_EQ(device_->made, 1);
  EXPECT_EQ(memory_->stats().total.peak_bytes, 1280U);
  EXPECT_EQ(memory_->held_bytes(), 1280U);
  memory_->trim();
  EXPECT_EQ(memory_->held_bytes(), 0U);
  EXPECT_EQ(device_->live_bytes, 0U);
}

TEST_F(UnitMemoryTest, ThatWhichFitsBestIsTakenFirst) {
  std::vector<Buffer> buffers;
  for (const uint64_t bytes : {1280, 1024, 1152})
    buffers.push_back(acquire(BufferKind::kGathered, 0, bytes));
  const std::byte* const best = buffers[1].bytes().data();
  buffers.clear();
  EXPECT_EQ(acquire(BufferKind::kGathered, 0, 1000).bytes().data(), best);
}

TEST_F(UnitMemoryTest, NoMoreIsHeldThanWasEverInUse) {
  {
    const Buffer buffer = acquire(BufferKind::kGathered, 0, 1024);
  }
  {
    const Buffer buffer = acquire(BufferKind::kPacked, 0, 4096);
    EXPECT_EQ(memory_->held_bytes(), 4096U);
  }
  {
    const Buffer buffer = acquire(BufferKind::kGathered, 0, 1024);
  }
  EXPECT_LE(memory_->held_bytes(), 4096U);
}

TEST_F(UnitMemoryTest, WhatIsKeptGivesWayBeforeTheDeviceRefuses) {
  {
    const Buffer one = acquire(BufferKind::kGathered, 0, 4096);
    const Buffer two = acquire(BufferKind::kGathered, 0, 8192);
  }
  device_->limit_bytes = 5000;
  const Buffer buffer = acquire(BufferKind::kPacked, 0, 2048);
  EXPECT_TRUE(static_cast<bool>(buffer));
}

TEST_F(UnitMemoryTest, ARefusalLeavesTheBooksAsTheyWere) {
  device_->limit_bytes = 1024;
  const Buffer buffer = acquire(BufferKind::kShard, 0, 512);
  const Result<Buffer> refused = memory_->acquire(BufferKind::kGathered, 0, 1024);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(memory_->acquire(BufferKind::kGathered, 0, UINT64_MAX).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(memory_->stats().total.current_bytes, 512U);
  EXPECT_EQ(memory_->stats().of(BufferKind::kGathered).current_bytes, 0U);
  EXPECT_EQ(memory_->held_bytes(), 512U);
}

TEST_F(UnitMemoryTest, BuffersOutliveTheMemoryTheyCameFrom) {
  Buffer buffer = acquire(BufferKind::kPacked, 0, 256);
  memory_.reset();
  buffer.bytes()[255] = std::byte{1};
  buffer = Buffer();
  EXPECT_EQ(device_->live_bytes, 0U);
}

TEST_F(UnitMemoryTest, PeaksBeginAgain) {
  const Buffer stays = acquire(BufferKind::kShard, 0, 10);
  {
    const Buffer goes = acquire(BufferKind::kPacked, 0, 90);
  }
  memory_->reset_peaks();
  EXPECT_EQ(memory_->stats().total.peak_bytes, 10U);
  EXPECT_EQ(memory_->stats().of(BufferKind::kPacked).peak_bytes, 0U);
  EXPECT_EQ(memory_->stats().by_unit.at(0).peak_bytes, 10U);
}

TEST(BufferKinds, HaveNames) {
  EXPECT_EQ(buffer_kind_name(BufferKind::kCastStaging), "cast staging");
  EXPECT_EQ(buffer_kind_name(BufferKind::kShardGradient), "shard gradient");
  EXPECT_EQ(buffer_kind_name(static_cast<BufferKind>(11)), "unknown");
}

}  // namespace
}  // namespace shardwright::hsdp
