// SPDX-License-Identifier: Apache-2.0
//
// When ranks are told that a save has succeeded: not before readers that know no journal of ours
// find it.
#include <functional>
#include <memory>
#include <thread>

#include "tests/core/exec/megatron_world.h"
#include "tests/support/gate.h"
#include "tests/support/plain_collective.h"

namespace shardwright::exec::test {
namespace {

using Operation = storage::StorageEvent::Operation;

constexpr uint32_t kTagOutcome = 0x5307;  // of exec's save
constexpr int32_t kRanks = 2;

// Calls `look` when the outcome of a save is about to be told; what that gives fails the exchange.
class OutcomeCollective final : public shardwright::test::PlainCollective {
 public:
  OutcomeCollective(std::unique_ptr<collective::Collective> inner, std::function<Status()> look)
      : PlainCollective(std::move(inner)), look_(std::move(look)) {}
  Status all_reduce_i64(const collective::Call& call, std::span<int64_t> values,
                        collective::ReduceOperation operation) override {
    if (call.tag == kTagOutcome) SHW_RETURN_IF_ERROR(look_());
    return PlainCollective::all_reduce_i64(call, values, operation);
  }

 private:
  const std::function<Status()> look_;
};

class PublishedSave : public testing::Test {
 protected:
  bool is_there(const std::string& name) const { return memory_->stat("ckpt/" + name).ok(); }

  // look: by rank. places: likewise.
  std::vector<Result<Report>> save(const std::vector<std::function<Status()>>& look,
                                   const std::vector<std::shared_ptr<storage::Storage>>& places) {
    auto members = collective::make_thread_collectives(kRanks);
    std::vector<Result<Report>> results(kRanks, Result<Report>(internal_error("not run")));
    SaveOptions options;
    options.format = "megatron";
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < results.size(); ++rank) {
      threads.emplace_back([&, rank] {
        OutcomeCollective own(std::move(members[rank]), look[rank]);
        const format::Location place{places[rank], "ckpt"};
        results[rank] =
            exec::save(*runtime_, world_.ranks[rank].state, place, own, options, CallContext());
      });
    }
    threads.clear();
    return results;
  }

  std::unique_ptr<Runtime> runtime_ = make_runtime(1);
  std::shared_ptr<storage::Storage> memory_ = storage::make_memory_storage();
  World world_ = make_megatron_world(kRanks, 1);
};

const std::function<Status()> kGoOn = [] { return Status(); };

bool says_not_yet(const Report& report) {
  for (const std::string& note : report.notes)
    if (note.find("not yet where other readers look") != note.npos) return true;
  return false;
}

TEST_F(PublishedSave, IsToldWhenAllReadersFindIt) {
  for (const char* const what : {"first", "overwrite"}) {
    int told = 0;
    const auto look = [&] {
      ++told;
      EXPECT_TRUE(is_there("metadata.json")) << what;
      EXPECT_FALSE(is_there(".shardwright.publish")) << what;
      return Status();
    };
    const auto results = save({look, kGoOn}, {memory_, memory_});
    EXPECT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
    EXPECT_GT(told, 0) << what;
    for (const Result<Report>& each : results) EXPECT_FALSE(says_not_yet(*each)) << what;
  }
}

// A storage on which the marker cannot be taken away, which comes right behind the commit.
std::shared_ptr<storage::Storage> without_removal_of_marker(storage::Storage& inner) {
  return storage::make_fault_storage(inner, [](const storage::StorageEvent& event, uint64_t*) {
    const bool hit = event.operation == Operation::kRemove && event.key == "ckpt/metadata.json";
    return hit ? unavailable("the marker cannot be removed") : Status();
  });
}

TEST_F(PublishedSave, SaysOnAllRanksWhatIsNotInPlace) {
  const auto results = save({kGoOn, kGoOn}, {without_removal_of_marker(*memory_), memory_});
  ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  for (const Result<Report>& each : results) EXPECT_TRUE(says_not_yet(*each));
  EXPECT_TRUE(stores(*runtime_, {memory_, "ckpt"}, world_)) << "ours follow the journal";
  EXPECT_EQ(agreed_code(save({kGoOn, kGoOn}, {memory_, memory_})), StatusCode::kOk);
  EXPECT_TRUE(megatron_finds(*runtime_, {memory_, "ckpt"}, world_));
}

// The network of rank 1 goes away when rank 0 is about to tell.
std::vector<std::function<Status()>> untold() {
  const auto telling = std::make_shared<shardwright::test::Gate>();  // co-owned by both
  return {[telling] {
            telling->open();
            return Status();
          },
          [telling] {
            telling->pass();
            return aborted("the network went away");
          }};
}

// A rank that the outcome does not reach looks by itself.
TEST_F(PublishedSave, ThatIsNotInPlaceIsNoSuccessOfARankThatMissedTheOutcome) {
  const auto results = save(untold(), {without_removal_of_marker(*memory_), memory_});
  EXPECT_TRUE(results[0].ok()) << texts(results);
  EXPECT_EQ(results[1].status().code(), StatusCode::kAborted) << texts(results);
  EXPECT_NE(results[1].status().to_string().find("not yet where other readers look"),
            std::string::npos)
      << texts(results);
  const auto later = save(untold(), {memory_, memory_});
  EXPECT_EQ(agreed_code(later), StatusCode::kOk) << texts(later);
}

}  // namespace
}  // namespace shardwright::exec::test
