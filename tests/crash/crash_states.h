// SPDX-License-Identifier: Apache-2.0
//
// Every call of a few saves is a crash point; at each one the legal states of the storage are built
// and read by the production reader:
//   I1, I2, I3  the newest committed checkpoint opens, with all its bytes and nothing else's
//   I4          opening changes nothing
//   I5          a following save succeeds, and gc leaves exactly the named files
//   I6          when nothing was committed, open says NOT_FOUND
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/exec/housekeeping.h"
#include "core/format/megatron/listed_digests.h"
#include "core/integrity/digest.h"
#include "tests/core/exec/megatron_world.h"
#include "tests/crash/storage_model.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"

namespace shardwright::crash {

using exec::Report;
using exec::Runtime;
using exec::test::World;
using shardwright::test::is_soak;
using shardwright::test::kSanitized;
using shardwright::test::RandomSource;

inline constexpr size_t kExhaustiveAtoms = 12;
inline constexpr size_t kPairAtoms = 64;
inline constexpr size_t kRandomSubsets = 700;

// What was done and what the path must hold after so many commits.
struct Workload {
  std::string name;
  std::vector<LoggedCall> log;
  std::vector<std::shared_ptr<const World>> worlds;  // by number of commits; the first is no world
  std::string io_engine;                             // of the last save, "" = nothing in batches
};

// A world whose sizes are the awkward ones.
inline World sizes_world(int32_t ranks, uint64_t number) {
  World world;
  world.ranks.resize(static_cast<size_t>(ranks));
  RandomSource random(number);
  int32_t next = 0;
  for (const int64_t size : {0, 1, 4095, 4096, 4097}) {
    world.tensors.push_back(
        exec::test::random_dense(random, fmt::format("t{}", size), DType::kUint8, Dims{size}));
    exec::test::add_whole(&world.ranks[static_cast<size_t>(next++ % ranks)], world.tensors.back(),
                          true, EntryKind::kSharded);
  }
  return world;
}

// Calls on a storage of its own. Of a write in a batch it is told when the write has ended: what a
// sync covers is what ended before it.
class Recorder {
 public:
  explicit Recorder(std::shared_ptr<storage::Storage> inner = storage::make_memory_storage())
      : inner_(std::move(inner)) {}
  std::shared_ptr<storage::Storage> storage() { return recording_; }
  std::vector<LoggedCall> take() { return std::move(log_); }
  // Since the last mark, a commit of a key that ends so is that of a checkpoint.
  void mark_commits(std::string_view suffix) {
    for (; marked_ < log_.size(); ++marked_) {
      LoggedCall& call = log_[marked_];
      call.commits = call.operation == Operation::kCommit && call.key.ends_with(suffix);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<LoggedCall> log_;
  size_t marked_ = 0;
  std::shared_ptr<storage::Storage> inner_;
  std::shared_ptr<storage::Storage> recording_ =
      storage::make_recording_storage(*inner_, [this](const storage::StorageEvent& event) {
        const std::lock_guard lock(mutex_);
        log_.push_back({event.operation,
                        event.key,
                        event.offset,
                        event.size_bytes,
                        {event.data.begin(), event.data.end()},
                        event.mode});
      });
};

// The part of the log after the first commit, spoiled.
using Spoil = std::function<void(std::vector<LoggedCall>*, size_t after)>;
using Mutants = std::vector<std::pair<std::string, Spoil>>;

class CrashStatesTest : public testing::Test {
 protected:
  // What overwrites are made of.
  virtual std::vector<World> two_worlds(int32_t ranks) const;

  // Saves worlds one after another and keeps the calls.
  Workload record(std::string name, std::vector<World> worlds, int32_t keep_generations = 1) {
    Recorder recorder;
    return record(std::move(name), std::move(worlds), keep_generations, &recorder);
  }
  Workload record(std::string name, std::vector<World> worlds, int32_t keep_generations,
                  Recorder* recorder) {
    exec::SaveOptions options = options_;
    options.keep_generations = keep_generations;
    Workload workload{std::move(name), {}, {std::make_shared<const World>()}, ""};
    for (World& world : worlds) {
      const auto results =
          exec::test::save_world(*runtime_, world, {recorder->storage(), "ckpt"}, options);
      EXPECT_EQ(exec::test::agreed_code(results), StatusCode::kOk) << exec::test::texts(results);
      workload.worlds.push_back(std::make_shared<const World>(std::move(world)));
      if (results[0].ok()) workload.io_engine = results[0]->io_engine;
      recorder->mark_commits(commit_);
    }
    workload.log = recorder->take();
    return workload;
  }

  // A save, one that fails when it commits, and a collection of garbage.
  Workload record_failure_and_gc() {
    Recorder recorder;
    const format::Location location{recorder.storage(), "ckpt"};
    Workload workload{"failed save and gc", {}, {std::make_shared<const World>()}, ""};
    auto first = std::make_shared<const World>(exec::test::make_small_world(2, 1));
    EXPECT_TRUE(exec::test::save_world(*runtime_, *first, location, options_)[0].ok());
    recorder.mark_commits(commit_);
    workload.worlds.push_back(first);
    const std::shared_ptr<storage::Storage> failing = storage::make_fault_storage(
        *recorder.storage(), [](const storage::StorageEvent& event, uint64_t*) {
          const bool leaves = event.operation == Operation::kRemove;
          const bool commits = event.operation == Operation::kCommit;
          return leaves || commits ? resource_exhausted("disk", "no room") : Status();
        });
    const auto failed = exec::test::save_world(*runtime_, exec::test::make_small_world(2, 2),
                                               {failing, "ckpt"}, options_);
    EXPECT_EQ(exec::test::agreed_code(failed), StatusCode::kResourceExhausted);
    exec::GcOptions collect;
    collect.apply = true;
    collect.grace_ns = -1;
    const Result<Report> collected = exec::collect_garbage(*runtime_, location, collect);
    EXPECT_TRUE(collected.ok() && collected->removed.size() == 1);
    workload.log = recorder.take();
    return workload;
  }

  void expect_found(const Mutants& mutants, std::string_view commit);
  void expect_found(const Mutants& mutants, const Workload& sound, size_t after);

  // Checks all states of a workload; stops at the first violation and describes it. "" = none.
  std::string check(const Workload& workload, uint64_t sector_bytes) {
    std::set<integrity::Digest128> seen;
    StorageModel model(sector_bytes);
    size_t commits = 0;
    for (size_t point = 0; point <= workload.log.size(); ++point) {
      for (const std::vector<bool>& choices : choices_for(model.atom_count())) {
        const Tree tree = model.build(choices);
        if (!seen.insert(digest_of(tree, commits)).second) continue;
        ++states_;
        std::string broken = violation(tree, *workload.worlds[commits]);
        if (broken.empty() && commits > 0)
          broken = megatrons_violation(
              tree, {workload.worlds[commits].get(), workload.worlds[commits - 1].get()});
        if (!broken.empty()) {
          return fmt::format("{}: crash before call {} of {}: {}", workload.name, point,
                             workload.log.size(), broken);
        }
      }
      if (point == workload.log.size()) break;
      model.apply(workload.log[point]);
      if (workload.log[point].commits) ++commits;
    }
    return "";
  }

  // All choices when there are few things to choose; else none, all, one missing, one present, some
  // pairs and random ones.
  std::vector<std::vector<bool>> choices_for(size_t atoms) {
    std::vector<std::vector<bool>> result;
    if (atoms <= kExhaustiveAtoms) {
      for (size_t bits = 0; bits < size_t{1} << atoms; ++bits) {
        std::vector<bool> choice(atoms);
        for (size_t i = 0; i < atoms; ++i) choice[i] = (bits >> i & 1) != 0;
        result.push_back(std::move(choice));
      }
      return result;
    }
    const auto add = [&result, atoms](bool base, std::initializer_list<size_t> others) {
      std::vector<bool> choice(atoms, base);
      for (const size_t i : others) choice[i] = !base;
      result.push_back(std::move(choice));
    };
    add(false, {});
    add(true, {});
    for (size_t i = 0; i < atoms; ++i) {
      add(true, {i});
      add(false, {i});
    }
    for (size_t i = 0; i < std::min(atoms, kPairAtoms); ++i) {
      for (size_t j = i + 1; j < std::min(atoms, kPairAtoms); ++j) add(true, {i, j});
    }
    for (size_t i = 0; i < kRandomSubsets; ++i) {
      std::vector<bool> choice(atoms);
      for (size_t bit = 0; bit < atoms; ++bit) choice[bit] = random_.chance(50);
      result.push_back(std::move(choice));
    }
    return result;
  }

  static integrity::Digest128 digest_of(const Tree& tree, size_t commits) {
    integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
    digester.update(std::as_bytes(std::span(&commits, 1)));
    for (const auto& [key, bytes] : tree) {
      const uint64_t sizes[] = {key.size(), bytes.size()};
      digester.update(std::as_bytes(std::span(sizes)));
      digester.update(std::as_bytes(std::span(key)));
      digester.update(bytes);
    }
    integrity::Digest128 digest{};
    std::ranges::copy(digester.finish(), digest.begin());
    return digest;
  }

  static format::Location place(const Tree& tree) {
    const format::Location location{storage::make_memory_storage(), "ckpt"};
    for (const auto& [key, bytes] : tree) {
      storage::OpenOptions create;
      create.mode = storage::OpenMode::kCreateVisible;
      auto object = location.storage->open(key, create);
      EXPECT_TRUE(object.ok() && (*object)->write_at(0, bytes).ok() && (*object)->close().ok());
    }
    return location;
  }

  // What is wrong with a state that must hold this world; "" = nothing.
  std::string violation(const Tree& tree, const World& world) {
    const format::Location location = place(tree);
    const auto before = exec::test::contents(location);
    if (world.ranks.empty()) {
      const Status opened = exec::Checkpoint::open(*runtime_, location).status();
      if (opened.code() != StatusCode::kNotFound) return "I6: " + opened.to_string();
    } else {
      const testing::AssertionResult whole = exec::test::stores(*runtime_, location, world);
      if (!whole) return fmt::format("I1: {}", whole.message());
    }
    if (exec::test::contents(location) != before) return "I4: opening changed something";
    return states_ % follow_up_every_ == 0 ? follow_up_violation(location) : "";
  }

  // I3 for Megatron-core, which knows no journal: one of the two worlds or none.
  std::string megatrons_violation(const Tree& tree, std::initializer_list<const World*> worlds) {
    if (options_.format != "megatron") return "";
    std::vector<const World*> wanted;
    for (const World* const world : worlds) {
      if (!world->ranks.empty()) wanted.push_back(world);
    }
    const auto found = exec::test::megatron_finds_none_or(*runtime_, place(tree), wanted);
    if (!found) return fmt::format("I3: {}", found.message());
    if (!options_.lists_digests || !tree.contains("ckpt/metadata.json")) return "";
    const auto listed = format::megatron::compare_listed(place(tree));
    if (!listed.ok()) return "I3: " + listed.status().to_string();
    return listed->empty() ? "" : "I3: " + listed->front().to_string();
  }

  // I5.
  std::string follow_up_violation(const format::Location& location) {
    const World next = exec::test::make_small_world(1, 4711);
    const auto results = exec::test::save_world(*runtime_, next, location, options_);
    if (!results[0].ok()) return "I5: " + exec::test::texts(results);
    exec::GcOptions collect;
    collect.apply = true;
    collect.grace_ns = -1;
    const Result<Report> collected = exec::collect_garbage(*runtime_, location, collect);
    if (!collected.ok()) return "I5: " + collected.status().to_string();
    const auto writer = runtime_->formats().writer(options_.format);
    if (!writer.ok()) return writer.status().to_string();
    const auto generations = (*writer)->list_generations(location);
    if (!generations.ok() || generations->size() != 1) return "I5: gc left more than is named";
    const testing::AssertionResult whole = exec::test::stores(*runtime_, location, next);
    return whole ? "" : fmt::format("I5: {}", whole.message());
  }

  exec::SaveOptions options_;  // of all saves
  std::string commit_;         // what the key of a commit ends with
  std::unique_ptr<Runtime> runtime_ = exec::test::make_runtime(1);
  RandomSource random_;
  size_t states_ = 0;
  size_t follow_up_every_ = 61;  // states per I5, which costs a save
};

inline World small(int32_t ranks, uint64_t number) {
  return exec::test::make_small_world(ranks, number);
}

inline std::vector<World> CrashStatesTest::two_worlds(int32_t ranks) const {
  std::vector<World> worlds;
  worlds.push_back(small(ranks, 1));
  worlds.push_back(small(ranks, 2));
  return worlds;
}

inline void drop(std::vector<LoggedCall>* log, size_t after, Operation operation,
                 std::string_view part) {
  const auto spoiled = std::remove_if(
      log->begin() + static_cast<ptrdiff_t>(after), log->end(), [&](const LoggedCall& call) {
        return call.operation == operation && call.key.find(part) != std::string::npos;
      });
  ASSERT_NE(spoiled, log->end()) << "the mutant changes nothing";
  log->erase(spoiled, log->end());
}

inline size_t find_call(const std::vector<LoggedCall>& log, size_t from, Operation operation,
                        std::string_view part) {
  for (size_t i = from; i < log.size(); ++i) {
    if (log[i].operation == operation && log[i].key.find(part) != std::string::npos) return i;
  }
  return log.size();
}

// Each way of spoiling a sound save that overwrites another; commit: the key whose commit it is.
inline void CrashStatesTest::expect_found(const Mutants& mutants, std::string_view commit) {
  const Workload sound = record("mutant", two_worlds(2));
  expect_found(mutants, sound, find_call(sound.log, 0, Operation::kCommit, commit) + 1);
}

// after: the first call that a mutant spoils.
inline void CrashStatesTest::expect_found(const Mutants& mutants, const Workload& sound,
                                          size_t after) {
  ASSERT_EQ(check(sound, 4096), "");
  for (const auto& [name, spoil] : mutants) {
    Workload mutant = sound;
    spoil(&mutant.log, after);
    EXPECT_NE(check(mutant, 4096), "") << name << " was not found";
  }
}

// Moves the call at from in front of the one at to.
inline void move_before(std::vector<LoggedCall>* log, size_t from, size_t to) {
  ASSERT_LT(from, log->size());
  ASSERT_LT(to, from);
  LoggedCall call = std::move((*log)[from]);
  log->erase(log->begin() + static_cast<ptrdiff_t>(from));
  log->insert(log->begin() + static_cast<ptrdiff_t>(to), std::move(call));
}

}  // namespace shardwright::crash
