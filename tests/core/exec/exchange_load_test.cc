// SPDX-License-Identifier: Apache-2.0
//
// Loads of ranks on several machines (which are played on this one) that exchange what several of
// them want: the storage gives each byte once, all of them arrive, and a failure is that of all.
#include <algorithm>
#include <atomic>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/exec/load_exchange_internal.h"
#include "core/exec/planned_load.h"
#include "core/plan/load/exchange_routes.h"
#include "tests/core/exec/load_of_ranks.h"
#include "tests/support/fake_clock.h"
#include "tests/support/plain_collective.h"
#include "tests/support/run_length.h"

namespace shardwright::exec::test {
namespace {

using collective::Call;
using collective::Collective;

class ExchangeLoad : public LoadOfRanks {
 protected:
  void play(int32_t ranks, int32_t ranks_per_machine) {
    ranks_ = ranks;
    machine_of_ = [ranks_per_machine](int32_t rank) {
      return fmt::format("machine {}", rank / ranks_per_machine);
    };
  }
  static LoadOptions always() {
    LoadOptions options;
    options.exchange = ExchangeRule::kAlways;
    return options;
  }
  // Ranks of which each does its part when the test says so.
  struct Hosts {
    Hosts(ExchangeLoad& test, Wanted wanted, int32_t ranks) {
      test.play(ranks, 1);
      test.make_targets(wanted);
      for (int32_t r = 0; r < ranks; ++r) {
        RuntimeOptions small_budget = small();
        runtimes.push_back(std::move(*Runtime::create(small_budget)));
        checkpoints.push_back(std::move(*Checkpoint::open(*runtimes.back(), test.location_)));
        State& state = *test.targets_[static_cast<size_t>(r)].state;
        states.push_back(&state);
        plans.push_back(*plan_load(*checkpoints.back(), state, options, r));
      }
    }
    PlannedInput input(size_t r) {
      return {*runtimes[r], *checkpoints[r], plans[r], *states[r], options};
    }
    Result<std::unique_ptr<PlannedLoad>> create(size_t r) {
      return PlannedLoad::create(input(r), exchanges[r], call);
    }
    void plan() {
      std::vector<plan::WantList> wants;
      for (size_t r = 0; r < plans.size(); ++r)
        wants.push_back(*want_list(input(r), static_cast<int32_t>(plans.size()), call));
      exchanges = *plan::make_exchange_plans(wants);
    }
    void move_blocks() {
      for (size_t r = 0; r < plans.size(); ++r) loads.push_back(std::move(*create(r)));
      for (size_t round = 0; round < loads[0]->rounds(); ++round) {
        std::vector<PlannedLoad::Round> rounds;
        for (auto& load : loads) rounds.push_back(*load->begin_round());
        for (size_t to = 0; to < rounds.size(); ++to) {
          auto at = rounds[to].incoming.begin();
          for (const PlannedLoad::Round& from : rounds) at = copy_part(from, to, at);
        }
        for (auto& load : loads) ASSERT_TRUE(load->finish_round().ok());
      }
    }
    template <typename Place>
    static Place copy_part(const PlannedLoad::Round& from, size_t to, Place at) {
      uint64_t begin = 0;
      for (size_t r = 0; r < to; ++r) begin += from.outgoing_sizes[r];
      return std::ranges::copy(from.outgoing.subspan(begin, from.outgoing_sizes[to]), at).out;
    }
    std::vector<Result<Report>> finish() {
      std::vector<Result<Report>> reports;
      for (auto& load : loads) reports.push_back(load->finish());
      return reports;
    }

    LoadOptions options;
    CallContext call;
    std::vector<std::unique_ptr<Runtime>> runtimes;
    std::vector<std::shared_ptr<const Checkpoint>> checkpoints;
    std::vector<State*> states;
    std::vector<plan::LoadPlan> plans;
    std::vector<plan::ExchangePlan> exchanges;
    std::vector<std::unique_ptr<PlannedLoad>> loads;
  };
  // So little memory that there are many rounds.
  static RuntimeOptions small() {
    RuntimeOptions options;
    options.memory_budget = uint64_t{24} << 20;
    return options;
  }
  void expect_read_once(const std::vector<Result<Report>>& reports) {
    expect_filled(reports);
    EXPECT_LE(bytes_read(reports) * 100, unique_bytes() * 105);
  }
};

TEST_F(ExchangeLoad, ReadsEveryByteOnceInEveryLayout) {
  for (const char* format : {"native", "safetensors"}) {
    location_.prefix = format;
    save(format);
    for (const auto& [ranks, per_machine] : {std::pair(2, 1), {4, 2}, {5, 2}, {10, 1}}) {
      if (shardwright::test::kSanitized && ranks != 4)
        continue;  // the way of the bytes is the same
      play(ranks, per_machine);
      for (const Wanted wanted : {Wanted::kRows, Wanted::kColumns, Wanted::kAll}) {
        if (wanted == Wanted::kRows && ranks == 10) continue;  // so few that each reads alone
        for (const VerifyRule verify : {VerifyRule::kOnRead, VerifyRule::kOff}) {
          SCOPED_TRACE(fmt::format("{} {} ranks {} per machine {} verify {}", format, ranks,
                                   per_machine, static_cast<int>(wanted),
                                   static_cast<int>(verify)));
          cache_->has_all = !cache_->has_all;
          LoadOptions options = always();
          options.verify = verify;
          expect_read_once(load(wanted, options, cache_->has_all ? RuntimeOptions() : small()));
        }
      }
    }
  }
}

TEST_F(ExchangeLoad, IsLeftOutWhereItIsOffOrThereIsOneMachine) {
  save();
  play(4, 2);
  LoadOptions options;
  options.exchange = ExchangeRule::kOff;
  auto reports = load(Wanted::kAll, options);
  expect_filled(reports);
  EXPECT_GT(bytes_read(reports), 2 * unique_bytes() - (1 << 20)) << "each machine reads it once";
  EXPECT_LT(bytes_read(reports), 2 * unique_bytes() + (1 << 20));
  play(4, 4);
  reports = load(Wanted::kAll, always());
  expect_read_once(reports);
  for (const auto& report : reports) EXPECT_LT(report->bytes_received, 64U << 10);
}

// The tensor is one chunk of the file: where two ranks meet, both want a part of one block.
TEST_F(ExchangeLoad, APartOfABlockIsReadWhereNobodyChecksOrSharesIt) {
  save("safetensors");
  play(6, 1);
  LoadOptions options;
  options.exchange = ExchangeRule::kOff;
  const auto reports = load(Wanted::kRows, options);
  expect_filled(reports);
  EXPECT_LT(bytes_read(reports), unique_bytes() + (64 << 10));
}

// What comes over the network comes once to each machine.
TEST_F(ExchangeLoad, SendsABlockOnceToAMachine) {
  save();
  play(6, 3);
  const auto reports = load(Wanted::kAll, always());
  expect_read_once(reports);
  uint64_t received = 0;
  for (const auto& report : reports) received += report->bytes_received;
  EXPECT_LT(received, unique_bytes() + unique_bytes() / 10);
}

TEST_F(ExchangeLoad, GoesOverATransportThatGivesEverythingToAll) {
  save();
  play(3, 1);
  wrap_ = [](std::unique_ptr<Collective> inner) {
    return std::make_unique<shardwright::test::PlainCollective>(std::move(inner));
  };
  for (const Wanted wanted : {Wanted::kColumns, Wanted::kAll})
    expect_read_once(load(wanted, always()));
}

// Hosts that move plans and blocks themselves.
TEST_F(ExchangeLoad, IsCarriedOutByAHost) {
  for (const char* format : {"native", "safetensors"}) {
    location_.prefix = format;
    save(format);
    for (const Wanted wanted : {Wanted::kRows, Wanted::kColumns, Wanted::kAll}) {
      Hosts hosts(*this, wanted, 4);
      hosts.plan();
      hosts.move_blocks();
      const std::vector<Result<Report>> reports = hosts.finish();
      expect_read_once(reports);
      uint64_t received = 0;
      for (const auto& report : reports) received += report->bytes_received;
      // Columns want every block; of rows a block at each border has two who want it.
      if (wanted == Wanted::kRows) {
        EXPECT_LE(received, 3U << 20);
      } else {
        EXPECT_EQ(received, 3 * unique_bytes());
      }
    }
  }
}

TEST_F(ExchangeLoad, RefusesPlansOfOthersAndStepsOutOfOrder) {
  save();
  Hosts hosts(*this, Wanted::kAll, 3);
  hosts.plan();
  std::swap(hosts.exchanges[0], hosts.exchanges[1]);
  EXPECT_EQ(hosts.create(0).status().code(), StatusCode::kFailedPrecondition);
  std::swap(hosts.exchanges[0], hosts.exchanges[1]);
  plan::ExchangePlan cut = hosts.exchanges[0];
  cut.routes.pop_back();
  std::swap(hosts.exchanges[0], cut);
  EXPECT_EQ(hosts.create(0).status().code(), StatusCode::kFailedPrecondition);
  std::swap(hosts.exchanges[0], cut);
  hosts.exchanges[0].rounds.pop_back();
  EXPECT_EQ(hosts.create(0).status().code(), StatusCode::kFailedPrecondition);
  hosts.exchanges[0].rounds = hosts.exchanges[1].rounds;

  auto load = hosts.create(0);
  ASSERT_TRUE(load.ok()) << load.status().to_string();
  EXPECT_EQ((*load)->finish_round().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*load)->finish().status().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE((*load)->begin_round().ok());
  EXPECT_EQ((*load)->begin_round().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ((*load)->finish().status().code(), StatusCode::kFailedPrecondition);

  const auto wants = want_list(hosts.input(2), 2, {});
  EXPECT_EQ(wants.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ExchangeLoad, NeedsLittleMemory) {
  save();
  RuntimeOptions least;
  least.memory_budget = 2 * kWriteBlockBytes;
  for (const int32_t threads : {1, 3}) {
    least.threads = threads;
    for (const auto& [ranks, per_machine] : {std::pair(3, 1), {4, 2}}) {
      play(ranks, per_machine);
      for (const Wanted wanted : {Wanted::kColumns, Wanted::kAll})
        expect_filled(load(wanted, always(), least));
    }
  }
}

TEST_F(ExchangeLoad, FailsOnAllRanksWithTheCauseOfTheOne) {
  save();
  play(4, 2);
  int failed = 0;
  for (const Wanted wanted : {Wanted::kColumns, Wanted::kAll}) {
    for (int32_t failing = 0; failing < ranks_; ++failing) {
      std::atomic<int> reads = 0;
      const std::shared_ptr<storage::Storage> faulty =
          storage::make_fault_storage(*posix_, [&](const storage::StorageEvent& event, uint64_t*) {
            const bool is_payload = event.operation == storage::StorageEvent::Operation::kRead &&
                                    event.size_bytes >= (1 << 20);
            return is_payload && ++reads > 0 ? unavailable("the cable is out") : Status();
          });
      const auto reports = load(wanted, always(), small(), [&](int32_t rank) {
        return rank == failing ? format::Location{faulty, "ckpt"} : location_;
      });
      if (reads == 0) continue;  // others read all that it wants
      ++failed;
      EXPECT_EQ(agreed_code(reports), StatusCode::kUnavailable) << texts(reports);
      for (const auto& report : reports) {
        EXPECT_EQ(report.status().detail("rank"), fmt::to_string(failing));
        EXPECT_NE(report.status().to_string().find("the cable is out"), std::string::npos);
      }
    }
  }
  EXPECT_GE(failed, ranks_) << "most ranks read something";
}

TEST_F(ExchangeLoad, NamesADamagedFileOnAllRanks) {
  save();
  play(3, 1);
  const std::string damaged = damage_largest_file();
  const auto reports = load(Wanted::kAll, always());
  EXPECT_EQ(agreed_code(reports), StatusCode::kDataLoss) << texts(reports);
  for (const auto& report : reports) {
    EXPECT_FALSE(report.status().detail("file").empty());
    EXPECT_NE(damaged.find(report.status().detail("file")), std::string::npos);
  }
}

// Spoils one byte of what a transport moves between all ranks, on one rank.
class Spoiling final : public shardwright::test::PlainCollective {
 public:
  using PlainCollective::PlainCollective;
  bool has_all_to_all_v() const override { return true; }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override {
    Status moved = inner().all_to_all_v(call, in, in_sizes, out, out_sizes);
    if (rank() == 1 && out.size() > (1 << 20)) out[out.size() / 2] ^= std::byte{1};
    return moved;
  }
};

TEST_F(ExchangeLoad, FindsWhatTheTransportHasSpoiled) {
  save();
  play(3, 1);
  wrap_ = [](std::unique_ptr<Collective> inner) {
    return std::make_unique<Spoiling>(std::move(inner));
  };
  const auto reports = load(Wanted::kAll, always());
  EXPECT_EQ(agreed_code(reports), StatusCode::kDataLoss) << texts(reports);
}

// A rank whose process ends, or whose transport does, in the n-th movement of blocks: before it, or
// when the others have theirs.
class Leaving final : public shardwright::test::PlainCollective {
 public:
  Leaving(std::unique_ptr<Collective> inner, int64_t leaves_at, bool behind)
      : PlainCollective(std::move(inner)), calls_left_(leaves_at), behind_(behind) {}
  bool has_all_to_all_v() const override { return true; }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override {
    const bool leaves = calls_left_-- == 0;
    if (!leaves || behind_)
      SHW_RETURN_IF_ERROR(inner().all_to_all_v(call, in, in_sizes, out, out_sizes));
    if (!leaves) return {};
    abort(unavailable("rank 2 is gone"));
    return unavailable("rank 2 is gone");
  }

 private:
  int64_t calls_left_;
  const bool behind_;
};

TEST_F(ExchangeLoad, EndsOnAllRanksWhenOneLeaves) {
  save();
  play(4, 2);
  for (const bool behind : {false, true}) {
    int64_t leaves_at = 0;
    for (bool was_there = false; !was_there; ++leaves_at) {
      wrap_ = [&](std::unique_ptr<Collective> inner) {
        const int64_t at = inner->rank() == 2 ? leaves_at : INT64_MAX;
        return std::make_unique<Leaving>(std::move(inner), at, behind);
      };
      const auto reports = load(Wanted::kAll, always(), small());
      was_there = reports[0].ok();
      EXPECT_EQ(agreed_code(reports), was_there ? StatusCode::kOk : StatusCode::kUnavailable)
          << texts(reports);
    }
    EXPECT_GT(leaves_at, 8) << "there are more movements than those of the plan";
  }
}

TEST_F(ExchangeLoad, EndsOnAllRanksWhereverOneIsOutOfMemory) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  save();
  play(4, 2);
  for (const int32_t rank : {0, 3}) {
    starving_ = rank;
    was_starved_ = true;
    for (allowed_ = 0; was_starved_; allowed_ += 1 + allowed_ / 8) {
      const auto reports = load(Wanted::kAll, always(), small());
      if (std::ranges::all_of(reports, [](const auto& report) { return report.ok(); })) {
        expect_filled(reports);
      } else {
        EXPECT_EQ(agreed_code(reports), StatusCode::kResourceExhausted) << texts(reports);
      }
      ASSERT_FALSE(HasFailure()) << allowed_;
    }
    EXPECT_GT(allowed_, 200) << "it came as far as exchanging";
  }
}

// Formats in which tensors share bytes have such.
TEST(ExchangeBlocks, ThatOverlapAreLeftToEachRank) {
  const std::vector<plan::StoredBlock> blocks{{0, 10}, {10, 20}, {10, 30},
                                              {40, 5}, {41, 2},  {45, 9}};
  const std::vector<plan::StoredBlock> apart = internal::exchangeable(blocks);
  EXPECT_EQ(apart, (std::vector<plan::StoredBlock>{{0, 10}, {45, 9}}));
  plan::ExchangePlan plan;
  plan.routes = {{1, plan::Route::kStored, 0, 0}, {2, 1, 1, 0}};
  internal::spread_routes(blocks, &plan);
  ASSERT_EQ(plan.routes.size(), blocks.size());
  EXPECT_EQ(plan.routes[0].taker, 1);
  EXPECT_EQ(plan.routes[5].taker, 2);
  for (const size_t block : {1, 2, 3, 4}) EXPECT_FALSE(plan.routes[block].is_exchanged());
}

TEST(ExchangeCosts, DecideByTheSlowestRank) {
  internal::ExchangeCosts costs{.read_alone_bytes = 100 << 20,
                                .read_bytes = 25 << 20,
                                .received_bytes = 75 << 20,
                                .read_ns_per_mib = 1000,
                                .send_ns_per_mib = 900};
  EXPECT_FALSE(exchange_pays(costs)) << "0.925 of the time is not worth it";
  costs.send_ns_per_mib = 500;
  EXPECT_TRUE(exchange_pays(costs));
  costs.read_ns_per_mib = 0;  // nobody knows
  EXPECT_FALSE(exchange_pays(costs));
}

// Time passes with reads and with what moves between ranks, and with nothing else.
class Timed final : public shardwright::test::PlainCollective {
 public:
  Timed(std::unique_ptr<Collective> inner, shardwright::test::FakeClock* clock, int64_t ns_per_mib)
      : PlainCollective(std::move(inner)), clock_(*clock), ns_per_mib_(ns_per_mib) {}
  bool has_all_to_all_v() const override { return true; }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override {
    clock_.advance_ns(ns_per_mib_ * static_cast<int64_t>(in.size()) / (1 << 20));
    return inner().all_to_all_v(call, in, in_sizes, out, out_sizes);
  }

 private:
  shardwright::test::FakeClock& clock_;
  const int64_t ns_per_mib_;
};

TEST_F(ExchangeLoad, IsChosenWhereTheStorageIsSlowerThanTheTransport) {
  height_ = 18000;
  save();
  play(3, 1);
  for (const bool pays : {true, false}) {
    std::vector<shardwright::test::FakeClock> clocks(3);
    std::vector<std::shared_ptr<storage::Storage>> storages;
    for (auto& clock : clocks) {
      storages.push_back(storage::make_fault_storage(
          *posix_, [&clock](const storage::StorageEvent& event, uint64_t*) {
            if (event.operation == storage::StorageEvent::Operation::kRead)
              clock.advance_ns(static_cast<int64_t>(event.size_bytes));
            return Status();
          }));
    }
    clock_of_ = [&](int32_t rank) { return &clocks[static_cast<size_t>(rank)]; };
    wrap_ = [&](std::unique_ptr<Collective> inner) {
      auto* const clock = &clocks[static_cast<size_t>(inner->rank())];
      return std::make_unique<Timed>(std::move(inner), clock, pays ? 200'000 : 2'000'000);
    };
    const auto reports = load(Wanted::kAll, {}, {}, [&](int32_t rank) {
      return format::Location{storages[static_cast<size_t>(rank)], "ckpt"};
    });
    expect_filled(reports);
    if (pays) {
      EXPECT_LE(bytes_read(reports) * 100, unique_bytes() * 105);
    } else {
      EXPECT_GE(bytes_read(reports), 3 * unique_bytes());
    }
  }
}

}  // namespace
}  // namespace shardwright::exec::test
