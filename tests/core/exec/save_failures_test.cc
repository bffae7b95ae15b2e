// SPDX-License-Identifier: Apache-2.0
//
// Saves that fail on one rank: every rank returns that rank's code, the old checkpoint stays as it
// was, nothing new is left, and the next save succeeds.
#include <thread>

#include <fmt/format.h>

#include "core/format/native/native_checkpoint.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

using Operation = storage::StorageEvent::Operation;

constexpr int32_t kRanks = 3;

class SaveFailuresTest : public testing::Test {
 protected:
  SaveFailuresTest() {
    const auto saved = save_world(*runtime_, old_world_, location());
    EXPECT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
    before_ = contents(location());
  }
  format::Location location() { return {memory_, "ckpt"}; }

  // What every failed save must leave.
  void expect_untouched(const std::string& what) {
    EXPECT_EQ(contents(location()), before_) << what;
    EXPECT_TRUE(stores(*runtime_, location(), old_world_)) << what;
  }
  // What the new world's save gives one rank, called from its thread.
  Status save_rank(size_t rank, collective::Collective& member) {
    return save(*runtime_, new_world_.ranks[rank].state, location(), member, SaveOptions(),
                CallContext())
        .status();
  }
  // Saves with a location per rank.
  std::vector<Result<Report>> save_at(const std::function<format::Location(int32_t)>& location_of) {
    return save_world(*runtime_, new_world_, [&](int32_t rank) {
      return RankCall{SaveOptions(), location_of(rank), CallContext()};
    });
  }

  std::unique_ptr<Runtime> runtime_ = make_runtime();
  std::shared_ptr<storage::Storage> memory_ = storage::make_memory_storage();
  World old_world_ = make_small_world(kRanks, 1);
  World new_world_ = make_small_world(kRanks, 2);
  std::vector<std::pair<std::string, std::vector<std::byte>>> before_;
};

// A storage that passes every call on; tests derive what misbehaves.
class PassingStorage : public storage::Storage {
 public:
  explicit PassingStorage(storage::Storage& inner) : inner_(inner) {}
  std::string_view name() const override { return inner_.name(); }
  uint64_t capabilities() const override { return inner_.capabilities(); }
  uint64_t alignment() const override { return inner_.alignment(); }
  uint64_t part_bytes() const override { return inner_.part_bytes(); }
  Result<std::unique_ptr<storage::StorageObject>> open(
      std::string_view key, const storage::OpenOptions& options) override {
    return inner_.open(key, options);
  }
  Result<storage::ObjectStat> stat(std::string_view key) override { return inner_.stat(key); }
  Status list(std::string_view prefix, char delimiter,
              const std::function<Status(const storage::ListEntry&)>& sink) override {
    return inner_.list(prefix, delimiter, sink);
  }
  Status remove(std::string_view key) override { return inner_.remove(key); }
  Result<uint64_t> free_space(std::string_view key) override { return inner_.free_space(key); }
  Status create_prefix(std::string_view prefix) override { return inner_.create_prefix(prefix); }
  Status sync_prefix(std::string_view prefix, bool* supported) override {
    return inner_.sync_prefix(prefix, supported);
  }
  Status sync_above(std::string_view prefix) override { return inner_.sync_above(prefix); }
  Result<std::unique_ptr<storage::StorageLock>> try_lock(std::string_view key,
                                                         storage::LockMode mode) override {
    return inner_.try_lock(key, mode);
  }

 private:
  storage::Storage& inner_;
};

// A storage that fails one kind of call on keys that contain a text.
std::shared_ptr<storage::Storage> failing(storage::Storage& inner, Operation operation,
                                          std::string part, Status failure) {
  return storage::make_fault_storage(
      inner, [operation, part, failure](const storage::StorageEvent& event, uint64_t*) {
        const bool hit = event.operation == operation && event.key.find(part) != std::string::npos;
        return hit ? failure : Status();
      });
}

TEST_F(SaveFailuresTest, AnyStepOfWritingOnAnyRankFailsTheSaveOnAll) {
  const Operation steps[] = {Operation::kOpen, Operation::kWrite, Operation::kSync,
                             Operation::kClose, Operation::kSyncPrefix};
  for (const Operation step : steps) {
    for (int32_t failing_rank = 0; failing_rank < kRanks; ++failing_rank) {
      const std::string part =
          step == Operation::kSyncPrefix ? "ckpt/" : fmt::format("rank-{:05d}", failing_rank);
      const auto faulty =
          failing(*memory_, step, part, resource_exhausted("disk", "no space left"));
      const std::string what =
          fmt::format("{} on rank {}", storage::operation_name(step), failing_rank);
      const auto results = save_at([&](int32_t rank) {
        return rank == failing_rank ? format::Location{faulty, "ckpt"} : location();
      });
      EXPECT_EQ(agreed_code(results), StatusCode::kResourceExhausted) << what << texts(results);
      for (const auto& result : results) {
        EXPECT_EQ(result.status().detail("rank"), fmt::to_string(failing_rank)) << what;
        EXPECT_FALSE(result.status().detail("file").empty()) << what;
        EXPECT_FALSE(result.status().detail("phase").empty()) << what;
      }
      expect_untouched(what);
    }
  }
  EXPECT_EQ(agreed_code(save_world(*runtime_, new_world_, location())), StatusCode::kOk);
  EXPECT_TRUE(stores(*runtime_, location(), new_world_));
}

TEST_F(SaveFailuresTest, AnyStepOfTheCoordinatorFailsTheSaveOnAll) {
  struct Case {
    Operation operation;
    std::string part;
  };
  const Case cases[] = {
      {Operation::kOpen, "manifest.shw"}, {Operation::kCreatePrefix, "ckpt/"},
      {Operation::kFreeSpace, "ckpt"},    {Operation::kWrite, "manifest.shw"},
      {Operation::kSync, "manifest.shw"}, {Operation::kCommit, "manifest.shw"},
      {Operation::kRead, "rank-00002"},   {Operation::kStat, "rank-00001"},
  };
  for (const Case& each : cases) {
    const auto faulty = failing(*memory_, each.operation, each.part, permission_denied("no"));
    const std::string what =
        fmt::format("{} of {}", storage::operation_name(each.operation), each.part);
    const auto results = save_at(
        [&](int32_t rank) { return rank == 0 ? format::Location{faulty, "ckpt"} : location(); });
    EXPECT_EQ(agreed_code(results), StatusCode::kPermissionDenied) << what << texts(results);
    expect_untouched(what);
  }
}

TEST_F(SaveFailuresTest, SeveralFailingRanksGiveTheLowestOnesCause) {
  const auto one =
      failing(*memory_, Operation::kOpen, "rank-00001", resource_exhausted("disk", "full"));
  const auto two = failing(*memory_, Operation::kOpen, "rank-00002", permission_denied("no"));
  const auto results = save_at([&](int32_t rank) {
    return rank == 0 ? location() : format::Location{rank == 1 ? one : two, "ckpt"};
  });
  EXPECT_EQ(agreed_code(results), StatusCode::kResourceExhausted);
  for (const auto& result : results) {
    EXPECT_EQ(result.status().detail("rank"), "1");
    EXPECT_NE(result.status().to_string().find("1 other rank failed too"), std::string::npos);
  }
  expect_untouched("two ranks");
}

TEST_F(SaveFailuresTest, OptionsThatDifferAreNamedOnAllRanks) {
  const auto results = save_world(*runtime_, new_world_, [&](int32_t rank) {
    SaveOptions options;
    if (rank == 2) options.keep_generations = 5;
    return RankCall{options, location(), CallContext()};
  });
  EXPECT_EQ(agreed_code(results), StatusCode::kInvalidArgument) << texts(results);
  for (const auto& result : results) {
    EXPECT_EQ(result.status().detail("parameter"), "keep_generations");
    EXPECT_EQ(result.status().detail("rank"), "2");
  }
  expect_untouched("options");
}

TEST_F(SaveFailuresTest, PlacesThatDifferAreNamedOnAllRanksBeforeAnythingIsWritten) {
  World replicated;
  replicated.ranks.resize(kRanks);
  shardwright::test::RandomSource random(3);
  const Dense bias = random_dense(random, "bias", DType::kFloat32, Dims{100});
  for (Holding& holding : replicated.ranks) add_whole(&holding, bias, true);
  for (const World* world : {&new_world_, &replicated}) {
    for (int32_t lost = 0; lost < kRanks; ++lost) {
      const auto results = save_world(*runtime_, *world, [&](int32_t rank) {
        return RankCall{SaveOptions(), {memory_, rank == lost ? "lost" : "ckpt"}, CallContext()};
      });
      EXPECT_EQ(agreed_code(results), StatusCode::kInvalidArgument) << texts(results);
      for (const auto& result : results) {
        EXPECT_EQ(result.status().detail("parameter"), "path") << texts(results);
        EXPECT_EQ(result.status().detail("rank"), lost == 0 ? "1" : fmt::to_string(lost));
        EXPECT_NE(result.status().to_string().find("lost"), std::string::npos) << texts(results);
      }
      expect_untouched("places");
      EXPECT_TRUE(keys_at({memory_, "lost"}).empty());
    }
  }
}

// A rank that remembers its plan brings 16 bytes, and its place all the same.
TEST_F(SaveFailuresTest, PlacesThatDifferAreFoundWhenASaveIsRepeated) {
  for (int round = 0; round < 2; ++round)
    ASSERT_EQ(agreed_code(save_world(*runtime_, new_world_, location())), StatusCode::kOk);
  const auto results =
      save_at([&](int32_t rank) { return format::Location{memory_, rank == 1 ? "lost" : "ckpt"}; });
  EXPECT_EQ(agreed_code(results), StatusCode::kInvalidArgument) << texts(results);
  EXPECT_TRUE(keys_at({memory_, "lost"}).empty());
  EXPECT_TRUE(stores(*runtime_, location(), new_world_));
}

// Ranks may write one place in their own ways, but not mean two.
TEST_F(SaveFailuresTest, PlacesAreComparedAsTheyAreAndNotAsTheyAreShown) {
  const auto shown = [&](int32_t rank, const std::string& path) {
    format::Location place{memory_, "ckpt"};
    place.display = rank == 1 ? "./here/ckpt" : "ckpt";
    place.path = path;
    return place;
  };
  EXPECT_EQ(agreed_code(save_at([&](int32_t rank) { return shown(rank, "/run/ckpt"); })),
            StatusCode::kOk);
  EXPECT_EQ(agreed_code(save_at([&](int32_t rank) {
              return shown(rank, rank == 1 ? "/run/here/ckpt" : "/run/ckpt");
            })),
            StatusCode::kInvalidArgument);
}

TEST_F(SaveFailuresTest, AStorageWithoutAtomicCommitsIsRefusedBeforeAnythingIsWritten) {
  class Torn final : public PassingStorage {
   public:
    using PassingStorage::PassingStorage;
    uint64_t capabilities() const override {
      return PassingStorage::capabilities() & ~storage::kAtomicCommit;
    }
  };
  const auto torn = std::make_shared<Torn>(*memory_);
  const auto results = save_at([&](int32_t) { return format::Location{torn, "ckpt"}; });
  EXPECT_EQ(agreed_code(results), StatusCode::kFailedPrecondition) << texts(results);
  EXPECT_EQ(results[0].status().detail("capability"), "ATOMIC_COMMIT");
  expect_untouched("atomic");
}

TEST_F(SaveFailuresTest, AnOptionThatIsRefusedOnOneRankFailsAll) {
  const auto results = save_world(*runtime_, new_world_, [&](int32_t rank) {
    SaveOptions options;
    if (rank == 1) options.format = "torch_dcp";
    return RankCall{options, location(), CallContext()};
  });
  EXPECT_EQ(agreed_code(results), StatusCode::kUnimplemented) << texts(results);
  expect_untouched("format");
}

TEST_F(SaveFailuresTest, ReplicasThatDifferAreFound) {
  World world;
  world.ranks.resize(2);
  shardwright::test::RandomSource random(3);
  for (Holding& holding : world.ranks)
    add_whole(&holding, random_dense(random, "bias", DType::kFloat32, Dims{100}), true);
  const auto results = save_world(*runtime_, world, location());
  EXPECT_EQ(agreed_code(results), StatusCode::kInvalidArgument) << texts(results);
  EXPECT_NE(results[1].status().to_string().find("bias"), std::string::npos);
  expect_untouched("replicas");
  SaveOptions off;
  off.rules.verify_replicas = plan::VerifyReplicas::kOff;
  EXPECT_EQ(agreed_code(save_world(*runtime_, world, location(), off)), StatusCode::kOk);
}

TEST_F(SaveFailuresTest, ReplicasAreEqualWhateverTheirStrides) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const float columns[] = {1, 4, 2, 5, 3, 6};  // the same matrix, column by column
  World world;
  world.ranks.resize(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    TensorView view;
    view.data = reinterpret_cast<std::byte*>(const_cast<float*>(rank == 0 ? values : columns));
    view.dtype = DType::kFloat32;
    view.shape = Dims{2, 3};
    if (rank == 1) view.strides = Dims{1, 2};
    view.read_only = true;
    std::vector<TensorEntry> entries{plain_tensor_entry("m", view)};
    ASSERT_TRUE(world.ranks[rank].state->add_tensors(entries).ok());
  }
  Dense truth{"m", DType::kFloat32, Dims{2, 3}, {}};
  const auto bytes = std::as_bytes(std::span(values));
  truth.bytes.assign(bytes.begin(), bytes.end());
  world.tensors.push_back(truth);
  const auto results = save_world(*runtime_, world, location());
  EXPECT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  EXPECT_TRUE(stores(*runtime_, location(), world));
}

TEST_F(SaveFailuresTest, ReplicasInPiecesAreComparedAsAWhole) {
  shardwright::test::RandomSource random(4);
  Dense truth = random_dense(random, "m", DType::kFloat32, Dims{6, 8});
  const std::vector<Box> halves{{Dims{0, 0}, Dims{6, 3}}, {Dims{0, 3}, Dims{6, 5}}};
  const auto make = [&](const Dense& second) {
    World world;
    world.ranks.resize(2);
    add_boxes(&world.ranks[0], truth, halves, true, EntryKind::kReplicated);
    add_boxes(&world.ranks[1], second, halves, true, EntryKind::kReplicated);
    world.tensors.push_back(truth);
    return world;
  };
  const auto equal = save_world(*runtime_, make(truth), location());
  EXPECT_EQ(agreed_code(equal), StatusCode::kOk) << texts(equal);
  Dense other = truth;
  other.bytes.back() ^= std::byte{1};
  const auto different = save_world(*runtime_, make(other), location());
  EXPECT_EQ(agreed_code(different), StatusCode::kInvalidArgument) << texts(different);
}

// Two ranks hold each half, as a hybrid mesh cuts and copies it.
TEST_F(SaveFailuresTest, CopiesOfOneShardAreComparedWhenAllAre) {
  shardwright::test::RandomSource random(5);
  const Dense truth = random_dense(random, "m", DType::kFloat32, Dims{6, 8});
  Dense other = truth;
  other.bytes.back() ^= std::byte{1};
  const auto make = [&](const Dense& last) {
    World world;
    world.ranks.resize(4);
    for (size_t rank = 0; rank < 4; ++rank) {
      const auto row = static_cast<int64_t>(rank % 2 * 3);
      add_boxes(&world.ranks[rank], rank == 3 ? last : truth, {{Dims{row, 0}, Dims{3, 8}}}, true,
                EntryKind::kSharded);
    }
    world.tensors.push_back(truth);
    return world;
  };
  SaveOptions all;
  all.rules.verify_replicas = plan::VerifyReplicas::kAll;
  EXPECT_EQ(agreed_code(save_world(*runtime_, make(truth), location(), all)), StatusCode::kOk);
  const auto different = save_world(*runtime_, make(other), location(), all);
  EXPECT_EQ(agreed_code(different), StatusCode::kInvalidArgument) << texts(different);
  EXPECT_NE(texts(different).find("between rank 1 and rank 3"), std::string::npos)
      << texts(different);
}

TEST_F(SaveFailuresTest, WholeShardsOfALayoutAreComparedAsReplicasAre) {
  shardwright::test::RandomSource random(6);
  const Dense truth = random_dense(random, "m", DType::kFloat32, Dims{6, 8});
  Dense other = truth;
  other.bytes.front() ^= std::byte{1};
  World world;
  world.ranks.resize(2);
  add_whole(&world.ranks[0], truth, true, EntryKind::kSharded);
  add_whole(&world.ranks[1], other, true, EntryKind::kSharded);
  world.tensors.push_back(truth);
  const auto results = save_world(*runtime_, world, location());
  EXPECT_EQ(agreed_code(results), StatusCode::kInvalidArgument) << texts(results);
}

TEST_F(SaveFailuresTest, AHoleIsFoundBeforeAnythingIsWritten) {
  World world = make_small_world(kRanks, 2);
  world.ranks[1] = Holding();
  const auto results = save_world(*runtime_, world, location());
  EXPECT_EQ(agreed_code(results), StatusCode::kInvalidArgument) << texts(results);
  expect_untouched("hole");
}

TEST_F(SaveFailuresTest, TooLittleSpaceIsFoundBeforeAnythingIsWritten) {
  // A storage that has a little room only.
  class SmallDisk final : public PassingStorage {
   public:
    using PassingStorage::PassingStorage;
    Result<uint64_t> free_space(std::string_view) override { return uint64_t{1} << 20; }
    Status create_prefix(std::string_view) override {
      return internal_error("nothing may be written");
    }
  };
  const auto small = std::make_shared<SmallDisk>(*memory_);
  const auto results = save_at([&](int32_t) { return format::Location{small, "ckpt"}; });
  EXPECT_EQ(agreed_code(results), StatusCode::kResourceExhausted) << texts(results);
  EXPECT_EQ(results[0].status().detail("resource"), "disk");
  EXPECT_EQ(results[0].status().detail("found"), "1048576");
  expect_untouched("space");
}

TEST_F(SaveFailuresTest, AnUnknownOutcomeKeepsBothGenerations) {
  const auto faulty =
      failing(*memory_, Operation::kCommit, "manifest.shw",
              unavailable("directory sync failed").with_detail("commit", "unknown"));
  const auto results = save_at([&](int32_t) { return format::Location{faulty, "ckpt"}; });
  EXPECT_EQ(agreed_code(results), StatusCode::kUnavailable) << texts(results);
  for (const auto& result : results) EXPECT_EQ(result.status().detail("commit"), "unknown");
  EXPECT_EQ(format::native::list_generations(location())->size(), 2U);
  EXPECT_TRUE(stores(*runtime_, location(), old_world_));
}

TEST_F(SaveFailuresTest, CancellationAndDeadlineOnOneRankReachAll) {
  CancellationFlag flag;
  flag.cancel();
  auto results = save_world(*runtime_, new_world_, [&](int32_t rank) {
    RankCall call{SaveOptions(), location(), CallContext()};
    if (rank == 1) call.call.control.cancellation = &flag;
    return call;
  });
  EXPECT_EQ(agreed_code(results), StatusCode::kCancelled) << texts(results);
  expect_untouched("cancelled");
  shardwright::test::FakeClock clock;
  results = save_world(*runtime_, new_world_, [&](int32_t rank) {
    RankCall call{SaveOptions(), location(), CallContext()};
    if (rank == 2) call.call.control.clock = &clock;
    if (rank == 2) call.call.control.deadline_ns = clock.monotonic_ns() - 1;
    return call;
  });
  EXPECT_EQ(agreed_code(results), StatusCode::kDeadlineExceeded) << texts(results);
  expect_untouched("deadline");
}

// Cancels when a call of a kind on a key with a text is about to be made.
TEST_F(SaveFailuresTest, CancellationActsAtStepsBeforeTheManifestAndNotBehind) {
  const auto cancelled_at = [&](Operation operation, std::string part) {
    CancellationFlag flag;
    const auto watching =
        storage::make_fault_storage(*memory_, [&](const storage::StorageEvent& event, uint64_t*) {
          if (event.operation == operation && event.key.find(part) != std::string::npos)
            flag.cancel();
          return Status();
        });
    const std::shared_ptr<storage::Storage> shared(watching.get(), [](storage::Storage*) {});
    const auto results = save_world(*runtime_, new_world_, [&](int32_t) {
      RankCall call{SaveOptions(), {shared, "ckpt"}, CallContext()};
      call.call.control.cancellation = &flag;
      return call;
    });
    return agreed_code(results);
  };
  EXPECT_EQ(cancelled_at(Operation::kCreatePrefix, "ckpt"), StatusCode::kCancelled);
  expect_untouched("generation");
  EXPECT_EQ(cancelled_at(Operation::kWrite, "rank-0000"), StatusCode::kCancelled);
  expect_untouched("write");
  EXPECT_EQ(cancelled_at(Operation::kSyncPrefix, ""), StatusCode::kCancelled);
  expect_untouched("sync");
  EXPECT_EQ(cancelled_at(Operation::kSync, "manifest.shw"), StatusCode::kOk);
  EXPECT_TRUE(stores(*runtime_, location(), new_world_));
}

// What each rank returns when it runs with its member of one group, a thread per rank.
std::vector<Status> on_every_rank(
    const std::function<Status(size_t, std::unique_ptr<collective::Collective>&)>& run) {
  auto members = collective::make_thread_collectives(kRanks);
  std::vector<Status> statuses(kRanks);
  {
    std::vector<std::jthread> threads;
    for (size_t rank = 0; rank < members.size(); ++rank)
      threads.emplace_back([&, rank] { statuses[rank] = run(rank, members[rank]); });
  }
  return statuses;
}

// A rank that never comes, or leaves in the middle.
TEST_F(SaveFailuresTest, ARankThatDiesFreesTheOthersByName) {
  const std::vector<Status> statuses = on_every_rank([&](size_t rank, auto& member) {
    if (rank != 2) return save_rank(rank, *member);
    member.reset();
    return Status();
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(statuses[rank].code(), StatusCode::kAborted) << statuses[rank].to_string();
    EXPECT_EQ(statuses[rank].detail("rank"), "2");
  }
  expect_untouched("dead rank");
}

TEST_F(SaveFailuresTest, ARankThatCannotTakePartTellsTheOthers) {
  const std::vector<Status> statuses = on_every_rank([&](size_t rank, auto& member) {
    return rank == 1 ? decline_save(*member, not_found("no such storage"), 0)
                     : save_rank(rank, *member);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kNotFound) << status.to_string();
    EXPECT_EQ(status.detail("rank"), "1");
  }
  expect_untouched("declined");
}

TEST_F(SaveFailuresTest, WhatAStepThrowsReachesAllRanksAsAFailure) {
  // A storage that runs out of memory when a file is opened for writing.
  class ThrowingDisk final : public PassingStorage {
   public:
    using PassingStorage::PassingStorage;
    Result<std::unique_ptr<storage::StorageObject>> open(
        std::string_view key, const storage::OpenOptions& options) override {
      if (options.mode != storage::OpenMode::kRead) throw std::bad_alloc();
      return PassingStorage::open(key, options);
    }
  };
  for (const int32_t thrower : {0, 2}) {
    const auto throwing = std::make_shared<ThrowingDisk>(*memory_);
    const auto results = save_at([&](int32_t rank) {
      return rank == thrower ? format::Location{throwing, "ckpt"} : location();
    });
    EXPECT_EQ(agreed_code(results), StatusCode::kResourceExhausted) << texts(results);
    expect_untouched("thrown");
  }
}

// Fails the n-th operation of one member, as a broken network does.
class BreakingCollective final : public collective::Collective {
 public:
  BreakingCollective(collective::Collective& inner, int calls_before)
      : inner_(inner), left_(calls_before) {}
  int32_t rank() const override { return inner_.rank(); }
  int32_t size() const override { return inner_.size(); }
  std::string_view name() const override { return "breaking"; }
  Status barrier(const collective::Call& call) override {
    return broken() ? failure() : inner_.barrier(call);
  }
  Status broadcast(const collective::Call& call, std::span<std::byte> data, int32_t root) override {
    return broken() ? failure() : inner_.broadcast(call, data, root);
  }
  Status all_gather(const collective::Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    return broken() ? failure() : inner_.all_gather(call, in, out);
  }
  Status all_gather_v(const collective::Call& call, std::span<const std::byte> in,
                      std::span<std::byte> out, std::span<const uint64_t> sizes) override {
    return broken() ? failure() : inner_.all_gather_v(call, in, out, sizes);
  }
  Status all_reduce_i64(const collective::Call& call, std::span<int64_t> values,
                        collective::ReduceOperation operation) override {
    return broken() ? failure() : inner_.all_reduce_i64(call, values, operation);
  }
  void abort(const Status& cause) noexcept override { inner_.abort(cause); }

 private:
  bool broken() { return left_-- <= 0; }
  static Status failure() { return aborted("the network went away"); }
  collective::Collective& inner_;
  int left_;
};

TEST_F(SaveFailuresTest, ABrokenTransportHangsNobodyAndLosesNothing) {
  for (int calls = 0; calls < 9; ++calls) {
    for (int32_t broken_rank = 0; broken_rank < kRanks; ++broken_rank) {
      auto members = collective::make_thread_collectives(kRanks);
      std::vector<Status> statuses(kRanks);
      {
        std::vector<std::jthread> threads;
        for (int32_t rank = 0; rank < kRanks; ++rank) {
          threads.emplace_back([&, rank] {
            const auto index = static_cast<size_t>(rank);
            BreakingCollective own(*members[index], rank == broken_rank ? calls : 1000);
            statuses[index] = save(*runtime_, new_world_.ranks[index].state, location(), own,
                                   SaveOptions(), CallContext())
                                  .status();
          });
        }
      }
      const std::string what = fmt::format("call {} on rank {}", calls, broken_rank);
      const bool is_old{stores(*runtime_, location(), old_world_)};
      EXPECT_TRUE(is_old || stores(*runtime_, location(), new_world_)) << what;
      for (const Status& status : statuses) {
        // Who says that it succeeded must be right.
        if (status.ok()) {
          EXPECT_TRUE(stores(*runtime_, location(), new_world_)) << what;
        }
      }
      if (!is_old) {
        ASSERT_EQ(agreed_code(save_world(*runtime_, old_world_, location())), StatusCode::kOk);
      }
    }
  }
}

TEST_F(SaveFailuresTest, APathThatIsAFileIsRefused) {
  const shardwright::test::TemporaryDirectory directory;
  const std::shared_ptr<storage::Storage> files = storage::make_posix_storage(directory.path());
  storage::OpenOptions create;
  create.mode = storage::OpenMode::kCreateVisible;
  ASSERT_TRUE((*files->open("ckpt", create))->close().ok());
  const auto results = save_at([&](int32_t) { return format::Location{files, "ckpt"}; });
  EXPECT_EQ(agreed_code(results), StatusCode::kInvalidArgument) << texts(results);
}

}  // namespace
}  // namespace shardwright::exec::test
