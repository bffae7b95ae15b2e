// SPDX-License-Identifier: Apache-2.0
//
// The power goes after every file-system call of some workloads of the shipped library, and every
// legal state of the file system is read (state_checker.h). Then the logs are spoiled, as if the
// library left a sync out or took a step too early: each such mutant must be found in every run.
// SHW_SOAK=1 draws workloads until a million states were read.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/crash/crew.h"
#include "tests/crash/state_checker.h"
#include "tests/crash/victim/seam.h"
#include "tests/support/random_source.h"
#include "tests/support/run_length.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::crash {
namespace {

using shardwright::test::is_soak;
using shardwright::test::RandomSource;
using shardwright::test::TemporaryDirectory;

constexpr size_t kExhaustive = 7;      // uncertain things
constexpr size_t kSingles = 24;        // of the data, one missing or one there
constexpr size_t kFollowUpEvery = 97;  // states per I5, which costs a save
constexpr size_t kLeastStates = 10'000;
constexpr size_t kSoakStates = 1'000'000;
constexpr size_t kRandomChoices = 8;  // per crash point
constexpr size_t kSoakChoices = 48;

struct Workload {
  std::string name;
  std::string checkpoint;  // path below the root
  std::string script;
  int ranks = 1;
  std::vector<std::string> settings = {};  // of every rank
  std::string script_after = {};           // of another job, at the same path
};

using Log = std::vector<RecordedCall>;

std::string described(const RecordedCall& call) {
  static const char* const kWords[] = {
      "",       "create", "write",  "set size", "sync", "sync directory", "make directory",
      "rename", "link",   "remove", "mark"};
  return fmt::format("rank {}: {} {} {}", call.rank, kWords[call.kind], call.path, call.second);
}

// What really lies below a directory.
FileTree tree_below(const std::string& root);

bool same_bytes(FileContent a, FileContent b) {
  a.bytes.resize(a.size);
  b.bytes.resize(b.size);
  return a == b;
}

class PowerLossTest : public testing::Test {
 protected:
  Log record(const Workload& workload) {
    const TemporaryDirectory directory;
    const std::string root = directory / "root";
    const std::string path = root + "/" + workload.checkpoint;
    const std::string log = directory / "log";
    std::filesystem::create_directory(root);
    Crew crew;
    const auto ranks = static_cast<size_t>(workload.ranks);
    crew.start(std::vector<VictimSettings>(ranks, {path, workload.script, workload.settings, log}));
    crew.run();
    if (!workload.script_after.empty()) {
      crew.start({{path, workload.script_after, {}, log}});
      crew.run();
    }
    EXPECT_EQ(crew.trouble(), "") << workload.name;
    Log calls = read_record(log, root);
    expect_complete(calls, root, workload.name);
    return calls;
  }

  // A log that has missed a call gives another tree than the one that is there.
  static void expect_complete(const Log& log, const std::string& root, const std::string& name) {
    PowerLossModel model;
    for (const RecordedCall& call : log) model.apply(call);
    const FileTree recorded = model.whole();
    const FileTree real = tree_below(root);
    ASSERT_EQ(recorded.size(), real.size()) << name;
    for (const auto& [path, bytes] : real) {
      ASSERT_TRUE(recorded.contains(path)) << name << ": " << path;
      const auto& other = recorded.at(path);
      ASSERT_EQ(bytes == nullptr, other == nullptr) << name << ": " << path;
      ASSERT_TRUE(bytes == nullptr || same_bytes(*bytes, *other)) << name << ": " << path;
    }
  }

  // Reads all states of a log; stops at the first violation and describes it. "" = none.
  std::string check(const Workload& workload, const Log& log, size_t random_choices) {
    PowerLossModel model;
    Progress progress;
    std::unordered_set<size_t> seen;
    for (size_t point = 0; point <= log.size(); ++point) {
      const std::string what =
          fmt::format("{}: the power goes before call {} of {} ({})", workload.name, point,
                      log.size(), point < log.size() ? described(log[point]) : "after the last");
      for (const std::vector<bool>& choice : choices_for(model, random_choices)) {
        const FileTree tree = model.build(choice);
        if (!seen.insert(number_of(tree, progress.expected())).second) continue;
        ++states_;
        const std::string broken = checker_.violation(
            tree, workload.checkpoint, progress.expected(), states_ % kFollowUpEvery == 0);
        if (!broken.empty()) return what + ": " + broken;
      }
      if (point == log.size()) break;
      model.apply(log[point]);
      progress.follow(log[point]);
    }
    return "";
  }

  // All choices where there are few; else names in order with all, no or some data; each single
  // thing missing or there; and random ones.
  std::vector<std::vector<bool>> choices_for(const PowerLossModel& model, size_t random_choices) {
    const size_t names = model.name_count();
    const size_t all = names + model.data_count();
    std::vector<std::vector<bool>> choices;
    if (all <= kExhaustive) {
      for (size_t bits = 0; bits < size_t{1} << all; ++bits) {
        std::vector<bool> choice(all);
        for (size_t i = 0; i < all; ++i) choice[i] = (bits >> i & 1) != 0;
        choices.push_back(std::move(choice));
      }
      return choices;
    }
    for (size_t kept = 0; kept <= names; ++kept) {
      for (const int64_t percent : {0, 50, 100}) {
        std::vector<bool> choice(all, false);
        for (size_t i = 0; i < all; ++i) choice[i] = i < names ? i < kept : random_.chance(percent);
        choices.push_back(std::move(choice));
      }
    }
    const size_t step = std::max<size_t>(1, (all - names) / kSingles);
    for (size_t i = 0; i < all; i += i < names ? 1 : step) {
      for (const bool base : {false, true}) {
        std::vector<bool> choice(all, base);
        choice[i] = !base;
        choices.push_back(choice);
        for (size_t name = 0; name < names; ++name) choice[name] = true;
        if (i >= names) choices.push_back(std::move(choice));
      }
    }
    for (size_t i = 0; i < random_choices; ++i) {
      const int64_t percent = random_.between(5, 95);
      std::vector<bool> choice(all);
      for (size_t bit = 0; bit < all; ++bit) choice[bit] = random_.chance(percent);
      choices.push_back(std::move(choice));
    }
    return choices;
  }

  static size_t number_of(const FileTree& tree, const Expected& expected) {
    const std::hash<std::string_view> hash;
    size_t number = expected.may_be_missing ? 1 : 2;
    const auto mix = [&number](size_t more) {
      number = (number ^ more) * 0x9e3779b97f4a7c15U;
      number ^= number >> 29;
    };
    for (const uint64_t each : expected.numbers) mix(each);
    for (const auto& [path, bytes] : tree) {
      mix(hash(path));
      mix(bytes == nullptr ? 7 : hash(bytes->bytes));
      mix(bytes == nullptr ? 7 : bytes->size);
    }
    return number;
  }

  RandomSource random_;
  StateChecker checker_;
  size_t states_ = 0;
};

FileTree tree_below(const std::string& root) {
  FileTree tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    FilePointer bytes;
    if (!entry.is_directory()) {
      std::ifstream stream(entry.path(), std::ios::binary);
      FileContent content;
      content.write(0, std::string(std::istreambuf_iterator<char>(stream), {}));
      bytes = std::make_shared<const FileContent>(std::move(content));
    }
    tree[entry.path().lexically_relative(root).string()] = std::move(bytes);
  }
  return tree;
}

std::vector<std::string> failing(uint32_t kind, const char* part, int error) {
  return {fmt::format("fail_kind={}", kind), fmt::format("fail_part={}", part),
          fmt::format("fail_errno={}", error)};
}

std::vector<Workload> workloads() {
  std::vector<Workload> all;
  for (const int ranks : {1, 2, 3}) {
    all.push_back({fmt::format("first save by {}", ranks), "a/b/c/ckpt", "save:1", ranks});
    all.push_back({fmt::format("overwrite by {}", ranks), "ckpt", "save:1 save:2", ranks});
  }
  // Every eighth state is large: its files are written directly, in batches.
  all.push_back({"large over small", "new/ckpt", "save:6 save:7", 1});
  all.push_back({"keeps two", "ckpt", "keep:2 save:1 save:2 save:3 gc", 2});
  all.push_back({"in the background", "new/ckpt", "async:1 async:2", 2});
  all.push_back({"cancelled", "ckpt", "save:1 cancel:2 save:3", 2});
  all.push_back({"let go", "ckpt", "save:1 drop:2", 2});
  all.push_back({"cannot write", "x/ckpt", "save:1", 2, failing(SEAM_WRITE, "rank-00001", ENOSPC),
                 "save:2 gc"});
  all.push_back(
      {"cannot sync", "x/ckpt", "save:1", 2, failing(SEAM_SYNC_FILE, "rank-", EIO), "save:2 gc"});
  all.push_back({"cannot commit", "ckpt", "save:1 gc", 1, failing(SEAM_RENAME, "manifest", EIO),
                 "save:2 gc"});
  all.push_back({"killed", "ckpt", "save:1 save:2", 1, {"kill_at=75"}, "save:3 gc"});
  return all;
}

// One of a wide range, with everything that workloads() has.
Workload drawn_workload(RandomSource* random, uint64_t number) {
  static const std::vector<std::string> kWords = {"save", "save", "save", "async", "cancel"};
  static const std::vector<std::string> kPlaces = {"ckpt", "a/ckpt", "a/b/ckpt", "a/b/c/ckpt"};
  Workload drawn{fmt::format("drawn {}", number), random->pick(kPlaces), "", 1, {}, ""};
  drawn.ranks = static_cast<int>(random->between(1, 4));
  uint64_t save = 1;
  if (random->chance(30)) drawn.script = "keep:2 ";
  for (int64_t left = random->between(1, 3); left > 0; --left)
    drawn.script += fmt::format("{}:{} ", random->pick(kWords), save++);
  if (random->chance(20)) drawn.script += "gc ";
  drawn.script_after = fmt::format("save:{} gc", save);
  const int64_t mishap = random->between(0, 9);
  const auto rank = fmt::format("rank-0000{}", random->between(0, drawn.ranks - 1));
  if (mishap == 0) drawn.settings = failing(SEAM_WRITE, rank.c_str(), ENOSPC);
  if (mishap == 1) drawn.settings = failing(SEAM_SYNC_FILE, rank.c_str(), EIO);
  if (mishap == 2) drawn.settings = failing(SEAM_RENAME, "manifest", EIO);
  if (mishap == 3) drawn.settings = failing(SEAM_SYNC_DIRECTORY, "ckpt", EIO);
  if (mishap == 4 && drawn.ranks == 1)
    drawn.settings = {fmt::format("kill_at={}", random->between(1, 200))};
  return drawn;
}

TEST_F(PowerLossTest, NoStateLosesWhatWasCommitted) {
  size_t count = 0;
  for (const Workload& workload : workloads()) {
    EXPECT_EQ(check(workload, record(workload), kRandomChoices), "");
    ++count;
  }
  while (states_ < (is_soak() ? kSoakStates : kLeastStates) && !HasFailure()) {
    const Workload workload = drawn_workload(&random_, count++);
    EXPECT_EQ(check(workload, record(workload), is_soak() ? kSoakChoices : kRandomChoices), "")
        << workload.script << " by " << workload.ranks << ", "
        << fmt::format("{}", fmt::join(workload.settings, " "));
  }
  RecordProperty("states", static_cast<int>(states_));
  fmt::print("{} states after a loss of power in {} workloads\n", states_, count);
}

using Spoil = std::function<void(Log*)>;
using Which = std::function<bool(const RecordedCall&)>;

size_t find_call(const Log& log, size_t from, const Which& which) {
  const auto found = std::find_if(log.begin() + static_cast<ptrdiff_t>(from), log.end(), which);
  return static_cast<size_t>(found - log.begin());
}

Which call_on(uint32_t kind, std::string part) {
  return [kind, part = std::move(part)](const RecordedCall& call) {
    return call.kind == kind && (call.path + " " + call.second).find(part) != std::string::npos;
  };
}

// Directory syncs of these folders, "" = that in which all lies.
Which sync_of(std::vector<std::string> folders) {
  return [folders = std::move(folders)](const RecordedCall& call) {
    return call.kind == SEAM_SYNC_DIRECTORY &&
           std::find(folders.begin(), folders.end(), call.path) != folders.end();
  };
}

Spoil without(Which which) {
  return [which = std::move(which)](Log* log) {
    const auto end = std::remove_if(log->begin(), log->end(), which);
    EXPECT_NE(end, log->end()) << "the mutant changes nothing";
    log->erase(end, log->end());
  };
}

Spoil in_front(Which moved, Which before) {
  return [moved = std::move(moved), before = std::move(before)](Log* log) {
    const size_t to = find_call(*log, 0, before);
    const size_t from = find_call(*log, to, moved);
    ASSERT_LT(from, log->size());
    std::rotate(log->begin() + static_cast<ptrdiff_t>(to),
                log->begin() + static_cast<ptrdiff_t>(from),
                log->begin() + static_cast<ptrdiff_t>(from) + 1);
  };
}

// The call comes right after a later one.
Spoil behind(Which moved, Which after) {
  return [moved = std::move(moved), after = std::move(after)](Log* log) {
    const size_t from = find_call(*log, 0, moved);
    const size_t to = find_call(*log, from, after);
    ASSERT_LT(to, log->size());
    std::rotate(log->begin() + static_cast<ptrdiff_t>(from),
                log->begin() + static_cast<ptrdiff_t>(from) + 1,
                log->begin() + static_cast<ptrdiff_t>(to) + 1);
  };
}

TEST_F(PowerLossTest, EveryMutantOfTheLibraryIsFound) {
  const Workload first{"first save", "a/b/ckpt", "save:1", 2};
  const Workload over{"overwrite", "ckpt", "save:1 save:2", 2};
  const Which commit = call_on(SEAM_RENAME, "ckpt/manifest.shw");
  const Which any_folder = [](const RecordedCall& call) {
    return call.kind == SEAM_SYNC_DIRECTORY;
  };
  const Which generation = [](const RecordedCall& call) {
    return call.kind == SEAM_SYNC_DIRECTORY && call.path.find("ckpt/") != std::string::npos;
  };
  const Spoil all_at_once = [&](Log* log) {
    without(call_on(SEAM_SYNC_FILE, "rank-"))(log);
    without(generation)(log);
  };
  const Spoil not_after_commit = [&](Log* log) {
    const size_t from = find_call(*log, 0, commit);
    const size_t sync = find_call(*log, from, any_folder);
    ASSERT_LT(sync, log->size());
    log->erase(log->begin() + static_cast<ptrdiff_t>(sync));
  };
  const std::vector<std::tuple<std::string, const Workload*, Spoil>> mutants = {
      {"rank files are written as if nothing had to last", &over, all_at_once},
      {"rank files are not synced", &over, without(call_on(SEAM_SYNC_FILE, "rank-"))},
      {"one rank does not sync its file", &over, without(call_on(SEAM_SYNC_FILE, "rank-00001"))},
      {"the new folder is not synced", &over, without(generation)},
      {"the folder of the checkpoint is not synced", &over, without(sync_of({"ckpt"}))},
      {"the folder is not synced after the rename", &first, not_after_commit},
      {"the manifest is not synced", &first, without(call_on(SEAM_SYNC_FILE, "manifest"))},
      {"the rename comes before the data", &first,
       in_front(commit, call_on(SEAM_SYNC_FILE, "manifest"))},
      {"the rename comes before the data of a rank", &over,
       behind(call_on(SEAM_SYNC_FILE, "rank-00001"), commit)},
      {"the old checkpoint goes before the new one is there", &over,
       in_front(call_on(SEAM_REMOVE, "rank-"), call_on(SEAM_SYNC_FILE, "manifest"))},
      {"the folder above the checkpoint is not synced", &first, without(sync_of({"a/b"}))},
      {"a folder further up is not synced", &first, without(sync_of({"a"}))},
      {"the uppermost folder is not synced", &first, without(sync_of({""}))},
  };
  const Log sound_first = record(first);
  const Log sound_over = record(over);
  ASSERT_EQ(check(first, sound_first, kRandomChoices), "");
  ASSERT_EQ(check(over, sound_over, kRandomChoices), "");
  for (const auto& [name, workload, spoil] : mutants) {
    Log log = workload == &first ? sound_first : sound_over;
    spoil(&log);
    EXPECT_NE(check(*workload, log, 0), "") << name;
  }
}

}  // namespace
}  // namespace shardwright::crash
