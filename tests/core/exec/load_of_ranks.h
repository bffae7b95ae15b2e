// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint that two ranks saved in rows, loaded by several ranks as threads, each with a
// runtime of its own as processes have: for tests of what ranks read for each other.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/collective/collective.h"
#include "core/storage/backends.h"
#include "core/storage/posix/system_calls.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/no_memory.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {

inline constexpr int64_t kWidth = 4099;

// Whether the page cache has everything or nothing.
class CacheOf final : public storage::KernelCalls {
 public:
  int64_t count_cached(const storage::OpenFile&, uint64_t, uint64_t size_bytes) override {
    return has_all ? static_cast<int64_t>(size_bytes) : 0;
  }
  std::atomic<bool> has_all = false;
};

enum class Wanted { kRows, kColumns, kAll };

class LoadOfRanks : public testing::Test {
 protected:
  void save(const std::string& format = "native") {
    shardwright::test::RandomSource random;
    truth_ = random_dense(random, "w", DType::kUint8, {height_, kWidth});
    World world;
    world.tensors = {truth_};
    world.ranks.resize(2);
    for (int64_t r = 0; r < 2; ++r) {
      add_boxes(&world.ranks[static_cast<size_t>(r)], truth_,
                {{{r * height_ / 2, 0}, {height_ / 2, kWidth}}}, true, EntryKind::kSharded);
    }
    SaveOptions options;
    options.format = format;
    const auto saved = save_world(*make_runtime(), world, location_, options);
    ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  }

  // What each rank fills.
  void make_targets(Wanted wanted) {
    targets_ = std::vector<Holding>(static_cast<size_t>(ranks_));
    for (int32_t r = 0; r < ranks_; ++r) {
      Holding* const target = &targets_[static_cast<size_t>(r)];
      const int64_t rows = (height_ + ranks_ - 1) / ranks_;
      const int64_t columns = (kWidth + ranks_ - 1) / ranks_;
      if (wanted == Wanted::kAll) add_whole(target, truth_, false, EntryKind::kReplicated);
      if (wanted == Wanted::kRows) {
        add_boxes(target, truth_, {{{r * rows, 0}, {std::min(rows, height_ - r * rows), kWidth}}},
                  false, EntryKind::kSharded);
      }
      if (wanted == Wanted::kColumns) {
        add_boxes(target, truth_,
                  {{{0, r * columns}, {height_, std::min(columns, kWidth - r * columns)}}}, false,
                  EntryKind::kSharded);
      }
    }
  }

  // location_of: what rank r opens. ended: told of each rank.
  std::vector<Result<Report>> load(Wanted wanted, const LoadOptions& options = {},
                                   const RuntimeOptions& with = {},
                                   const std::function<format::Location(int32_t)>& location_of = {},
                                   const std::function<void(int32_t)>& ended = {}) {
    const auto world = static_cast<size_t>(ranks_);
    make_targets(wanted);
    std::vector<Result<Report>> reports(world, Result<Report>(internal_error("not run")));
    auto members = collective::make_thread_collectives(ranks_);
    if (wrap_) {
      for (auto& member : members) member = wrap_(std::move(member));
    }
    std::vector<std::thread> threads;
    for (int32_t r = 0; r < ranks_; ++r) {
      Holding* const target = &targets_[static_cast<size_t>(r)];
      threads.emplace_back([&, r, target] {
        std::unique_ptr<Runtime> own;
        RuntimeOptions options_of_runtime = with;
        if (machine_of_) options_of_runtime.machine = machine_of_(r);
        if (runtime_ == nullptr) own = std::move(*Runtime::create(options_of_runtime));
        Runtime& runtime = runtime_ == nullptr ? *own : *runtime_;
        CallContext call;
        if (clock_of_) call.control.clock = clock_of_(r);
        if (!clock_of_)
          call.control.end_within(real_clock().monotonic_ns(), int64_t{120} * 1000 * 1000 * 1000);
        const format::Location from = location_of ? location_of(r) : location_;
        if (r == starving_) shardwright::test::take_memory(allowed_);
        reports[static_cast<size_t>(r)] =
            exec::load(runtime, from, *target->state, *members[static_cast<size_t>(r)],
                       options_of_ ? options_of_(r) : options, call);
        if (r == starving_) was_starved_ = shardwright::test::give_memory();
        if (ended) ended(r);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return reports;
  }

  void expect_filled(const std::vector<Result<Report>>& reports) {
    ASSERT_EQ(agreed_code(reports), StatusCode::kOk) << texts(reports);
    for (const Holding& target : targets_) EXPECT_TRUE(holds(target, 0, truth_));
  }
  static uint64_t bytes_read(const std::vector<Result<Report>>& reports) {
    uint64_t bytes = 0;
    for (const auto& report : reports) bytes += report->bytes_read;
    return bytes;
  }
  static uint64_t bytes_from_device(const std::vector<Result<Report>>& reports) {
    uint64_t bytes = 0;
    for (const auto& report : reports) bytes += report->bytes_read - report->bytes_cached;
    return bytes;
  }
  // Changes a bit of the payload; returns the path of its file.
  std::string damage_largest_file() {
    std::filesystem::path largest;
    for (const auto& each : std::filesystem::recursive_directory_iterator(directory_.path())) {
      if (each.is_regular_file() && (largest.empty() || each.file_size() > file_size(largest)))
        largest = each.path();
    }
    std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(3'000'000);
    const int byte = file.get();
    file.seekp(3'000'000);
    file.put(static_cast<char>(byte ^ 4));
    EXPECT_TRUE(file.good());
    return largest;
  }
  uint64_t unique_bytes() const { return truth_.bytes.size(); }

  shardwright::test::TemporaryDirectory directory_;
  std::shared_ptr<CacheOf> cache_ = std::make_shared<CacheOf>();
  std::shared_ptr<storage::Storage> posix_ =
      storage::make_posix_storage(directory_ / "root", cache_);
  format::Location location_{posix_, "ckpt"};
  Dense truth_;
  std::vector<Holding> targets_;
  std::unique_ptr<Runtime> runtime_;                     // of all ranks, or null
  std::function<LoadOptions(int32_t)> options_of_ = {};  // of rank r, or those of the call
  int64_t height_ = 4000;
  int32_t ranks_ = 3;
  std::function<std::string(int32_t)> machine_of_ = {};  // of rank r, or one for all
  std::function<const Clock*(int32_t)> clock_of_ = {};   // of rank r, or the real one
  std::function<std::unique_ptr<collective::Collective>(std::unique_ptr<collective::Collective>)>
      wrap_ = {};          // around what a rank has, if anything
  int32_t starving_ = -1;  // its thread has so many allocations left
  int64_t allowed_ = 0;
  bool was_starved_ = false;
};

}  // namespace shardwright::exec::test
