// SPDX-License-Identifier: Apache-2.0
//
// Loads of several ranks of one machine: what several of them want is read once, every byte comes,
// and where one of them fails all do, with its cause.
#include <sys/resource.h>

#include <atomic>
#include <cerrno>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/core/exec/load_of_ranks.h"
#include "tests/support/gate.h"

namespace shardwright::exec::test {
namespace {

constexpr int32_t kRanks = 3;

using SharedLoad = LoadOfRanks;

TEST_F(SharedLoad, ReadsEveryByteOnceInEveryLayout) {
  for (const char* format : {"native", "safetensors"}) {
    location_.prefix = format;
    save(format);
    for (const bool cached : {false, true}) {
      cache_->has_all = cached;
      for (const Wanted wanted : {Wanted::kRows, Wanted::kColumns, Wanted::kAll}) {
        for (const VerifyRule verify : {VerifyRule::kOnRead, VerifyRule::kOff}) {
          LoadOptions options;
          options.verify = verify;
          const auto reports = load(wanted, options);
          expect_filled(reports);
          EXPECT_LE(bytes_from_device(reports) * 100, unique_bytes() * 105)
              << format << cached << static_cast<int>(wanted);
        }
      }
    }
  }
}

// Through the memory of the machine it would be copied twice.
TEST_F(SharedLoad, EachRankReadsWhatIsCachedAndNobodyChecks) {
  height_ = 1000;
  for (const char* format : {"native", "safetensors"}) {
    location_.prefix = format;
    save(format);
    for (const bool cached : {false, true}) {
      cache_->has_all = cached;
      for (const ExchangeRule exchange : {ExchangeRule::kAuto, ExchangeRule::kAlways}) {
        for (const VerifyRule verify : {VerifyRule::kOnRead, VerifyRule::kOff}) {
          LoadOptions options;
          options.verify = verify;
          options.exchange = exchange;
          const auto reports = load(Wanted::kAll, options);
          expect_filled(reports);
          const bool checked = verify == VerifyRule::kOnRead && format == std::string("native");
          const bool alone = cached && !checked && exchange == ExchangeRule::kAuto;
          EXPECT_EQ(bytes_read(reports) > 2 * unique_bytes(), alone)
              << format << cached << static_cast<int>(exchange) << static_cast<int>(verify);
        }
      }
    }
  }
}

TEST_F(SharedLoad, NeedsLittleMemory) {
  save();
  RuntimeOptions least;
  least.memory_budget = 2 * kWriteBlockBytes;
  for (const int32_t threads : {1, 4}) {
    least.threads = threads;
    for (const bool cached : {false, true}) {
      cache_->has_all = cached;
      for (const Wanted wanted : {Wanted::kColumns, Wanted::kAll}) {
        const auto reports = load(wanted, {}, least);
        expect_filled(reports);
        EXPECT_LE(bytes_read(reports) * 100, unique_bytes() * 105);
      }
    }
  }
}

// What a rank reads round the page cache is rounded; what it gives to others is not.
TEST_F(SharedLoad, IsTheSameWhereRanksReadInOtherWays) {
  for (const char* format : {"native", "safetensors"}) {
    location_.prefix = format;
    save(format);
    for (const bool cached : {false, true}) {
      cache_->has_all = cached;
      for (const Wanted wanted : {Wanted::kColumns, Wanted::kAll}) {
        options_of_ = [](int32_t rank) {
          LoadOptions options;
          options.read_path = static_cast<ReadPath>(rank);  // each of the three
          return options;
        };
        const auto reports = load(wanted);
        expect_filled(reports);
        EXPECT_LE(bytes_from_device(reports) * 100, unique_bytes() * 105);
      }
    }
  }
}

TEST_F(SharedLoad, RanksOfOneContextDoNotWaitForEachOthersMemory) {
  save();
  RuntimeOptions least;
  least.memory_budget = 2 * kWriteBlockBytes;
  for (const int32_t threads : {1, 3}) {
    least.threads = threads;
    runtime_ = std::move(*Runtime::create(least));
    for (const Wanted wanted : {Wanted::kColumns, Wanted::kAll}) expect_filled(load(wanted));
  }
}

TEST_F(SharedLoad, IsNotSharedWhereMemoryCannotBe) {
  save();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto reports = load(Wanted::kAll);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_filled(reports);
  EXPECT_GT(bytes_read(reports), 2 * unique_bytes());
}

TEST_F(SharedLoad, FailsOnAllRanksWithTheCauseOfTheOne) {
  save();
  for (int32_t failing = 0; failing < kRanks; ++failing) {
    for (int nth = 0; nth < 3; ++nth) {
      std::atomic<int> reads = 0;
      const std::shared_ptr<storage::Storage> faulty =
          storage::make_fault_storage(*posix_, [&](const storage::StorageEvent& event, uint64_t*) {
            const bool is_payload = event.operation == storage::StorageEvent::Operation::kRead &&
                                    event.size_bytes >= (1 << 20);
            return is_payload && reads++ == nth ? unavailable("the cable is out") : Status();
          });
      const auto reports = load(Wanted::kColumns, {}, {}, [&](int32_t rank) {
        return rank == failing ? format::Location{faulty, "ckpt"} : location_;
      });
      EXPECT_GT(reads, nth == 0 ? 0 : -1) << "no rank reads a large block";
      if (reads <= nth) continue;
      EXPECT_EQ(agreed_code(reports), StatusCode::kUnavailable) << texts(reports);
      for (const auto& report : reports) {
        EXPECT_EQ(report.status().detail("rank"), fmt::to_string(failing));
        EXPECT_NE(report.status().to_string().find("the cable is out"), std::string::npos);
      }
    }
  }
}

// A rank that comes to nothing, stopped or with storage that does not answer.
TEST_F(SharedLoad, EndsAtItsDeadlineWhereOneReaderIsStuck) {
  save();
  shardwright::test::Gate gate;
  std::atomic<int> waiting = kRanks - 1;
  const std::shared_ptr<storage::Storage> stuck =
      storage::make_fault_storage(*posix_, [&](const storage::StorageEvent& event, uint64_t*) {
        const bool is_payload = event.operation == storage::StorageEvent::Operation::kRead &&
                                event.size_bytes >= (1 << 20);
        if (is_payload) gate.pass();
        return Status();
      });
  LoadOptions options;
  options.deadline_ns = 500'000'000;
  const auto reports = load(
      Wanted::kAll, options, {},
      [&](int32_t rank) { return rank == 1 ? format::Location{stuck, "ckpt"} : location_; },
      [&](int32_t rank) {
        if (rank != 1 && --waiting == 0) gate.open();
      });
  for (const auto& report : reports) {
    const StatusCode code = report.status().code();
    EXPECT_TRUE(code == StatusCode::kDeadlineExceeded || code == StatusCode::kAborted)
        << texts(reports);
  }
}

TEST_F(SharedLoad, EndsOnAllRanksWhereverOneIsOutOfMemory) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  save();
  for (const int32_t rank : {0, 2}) {
    starving_ = rank;
    was_starved_ = true;
    for (allowed_ = 0; was_starved_; allowed_ += 1 + allowed_ / 8) {
      for (const bool cached : {false, true}) {
        cache_->has_all = cached;
        const auto reports = load(Wanted::kAll);
        bool all = true;
        for (const auto& report : reports) all = all && report.ok();
        if (all) {
          expect_filled(reports);
        } else {
          EXPECT_EQ(agreed_code(reports), StatusCode::kResourceExhausted) << texts(reports);
        }
        ASSERT_FALSE(HasFailure()) << allowed_;
      }
    }
    EXPECT_GT(allowed_, 100) << "it came as far as reading";
  }
}

TEST_F(SharedLoad, NamesADamagedFileOnAllRanks) {
  save();
  const std::string damaged = damage_largest_file();
  for (const bool cached : {false, true}) {
    cache_->has_all = cached;
    const auto reports = load(Wanted::kAll);
    EXPECT_EQ(agreed_code(reports), StatusCode::kDataLoss) << texts(reports);
    for (const auto& report : reports) {
      EXPECT_NE(damaged.find(report.status().detail("file")), std::string::npos);
      EXPECT_FALSE(report.status().detail("file").empty());
    }
  }
}

}  // namespace
}  // namespace shardwright::exec::test
