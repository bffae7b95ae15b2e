// SPDX-License-Identifier: Apache-2.0
//
// Removals of entries, of whose calls each fails once and each is the last one that is carried out:
// the checkpoint is there whole, with the entries or without, its digests with it, and the same
// removal ends what was begun.
#include <set>

#include <fmt/format.h>

#include "core/exec/housekeeping.h"
#include "core/format/megatron/listed_digests.h"
#include "tests/core/exec/failing_call.h"
#include "tests/core/exec/megatron_world.h"
#include "tests/core/exec/removal_world.h"

namespace shardwright::exec::test {
namespace {

namespace megatron = format::megatron;
using Operation = storage::StorageEvent::Operation;

const char* const kList = "ckpt/.shardwright.removal";

struct FormatCase {
  std::string name;
  bool lists_digests = false;
};

class RemoveEntries : public testing::Test {
 protected:
  format::Location location() const { return {memory_, "ckpt"}; }

  void save(const FormatCase& format, const World& world) {
    SaveOptions options;
    options.format = format.name;
    options.lists_digests = format.lists_digests;
    const auto saved = save_world(*runtime_, world, location(), options);
    ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  }
  void save_anew(const FormatCase& format) {
    memory_ = storage::make_memory_storage();
    save(format, world_);
  }
  // With its digests, for readers of both kinds.
  testing::AssertionResult is_whole(const FormatCase& format, const World& world) {
    testing::AssertionResult found = stores(*runtime_, location(), world);
    if (!found) return found;
    if ((*Checkpoint::open(*runtime_, location()))->opened().digest_block_bytes() == 0)
      return testing::AssertionFailure() << "it has no digests any more";
    if (format.name != "megatron") return found;
    const auto findings = megatron::compare_listed(location());
    if (!findings.ok()) return testing::AssertionFailure() << findings.status().to_string();
    if (!findings->empty()) return testing::AssertionFailure() << findings->front().to_string();
    return megatron_finds(*runtime_, location(), world);
  }
  // Nothing of the removal is left, and integrity.json is there where it was.
  testing::AssertionResult is_done(const FormatCase& format) {
    testing::AssertionResult found = is_whole(format, left_);
    if (!found) return found;
    std::set<std::string> listed;
    if (format.lists_digests) {
      const auto bytes = storage::read_all(*memory_, "ckpt/integrity.json", 1 << 20);
      if (!bytes.ok()) return testing::AssertionFailure() << bytes.status().to_string();
      const auto files = megatron::decode_integrity(*bytes);
      if (!files.ok()) return testing::AssertionFailure() << files.status().to_string();
      for (const auto& [name, digest] : *files) listed.insert(name);
    }
    size_t files = 0;
    size_t digests = 0;
    for (const std::string& key : keys_at(location())) {
      const std::string name = key.substr(5);
      if (key.find("removal") != std::string::npos)
        return testing::AssertionFailure() << key << " is left";
      files += name.ends_with(".distcp") ? 1 : 0;
      digests += name.ends_with(".digests") ? 1 : 0;
      if (format.lists_digests && name != "integrity.json" && listed.erase(name) != 1)
        return testing::AssertionFailure() << "integrity.json does not list " << name;
    }
    if (files != 2 || digests != 1)
      return testing::AssertionFailure() << files << " files of data, " << digests << " of digests";
    if (!listed.empty()) return testing::AssertionFailure() << *listed.begin() << " is listed";
    return testing::AssertionSuccess();
  }

  void fail_at_each_call(const FormatCase& format, bool goes_on);
  // A removal of which nothing is carried out behind the commit of a file.
  void cut_off_behind(const std::string& part);

  std::unique_ptr<Runtime> runtime_ = make_runtime(1);
  std::shared_ptr<storage::Storage> memory_;
  World world_ = removal_world(1);
  World left_ = left_of(world_);
};

void RemoveEntries::fail_at_each_call(const FormatCase& format, bool goes_on) {
  int64_t calls = 0;
  int64_t removed = 0;
  for (int64_t call = 1; !HasFailure(); ++call) {
    save_anew(format);
    const FailingCall failing{.call = call, .goes_on = goes_on};
    const Status status = remove_optimizer(*runtime_, {failing.on(*memory_), "ckpt"}).status();
    if (*failing.count < call) break;  // it has no such call
    calls = call;
    const std::string what = fmt::format("{} call {}: {}", format.name, call, status.to_string());
    const bool is_before = lists_optimizer(*runtime_, location());
    removed += is_before ? 0 : 1;
    EXPECT_TRUE(!is_before || !status.ok()) << what;
    EXPECT_TRUE(is_whole(format, is_before ? world_ : left_)) << what;
    const Result<Report> again = remove_optimizer(*runtime_, location());
    const bool was_done = again.status().code() == StatusCode::kNotFound;
    EXPECT_TRUE(again.ok() || (was_done && !is_before)) << what << again.status().to_string();
    EXPECT_TRUE(is_done(format)) << what;
  }
  EXPECT_GT(removed, 6) << "a removal has steps behind its commit";
  EXPECT_GT(calls - removed, 12) << "and more before it";
}

TEST_F(RemoveEntries, ThatFailAtAnyCallLeaveTheCheckpointBeforeOrBehind) {
  for (const FormatCase& format :
       {FormatCase{"torch-dcp"}, FormatCase{"megatron"}, FormatCase{"megatron", true}})
    fail_at_each_call(format, false);
}

TEST_F(RemoveEntries, ThatEndAtAnyCallLeaveTheCheckpointBeforeOrBehind) {
  for (const FormatCase& format :
       {FormatCase{"torch-dcp"}, FormatCase{"megatron"}, FormatCase{"megatron", true}})
    fail_at_each_call(format, true);
}

void RemoveEntries::cut_off_behind(const std::string& part) {
  bool is_over = false;
  const std::shared_ptr<storage::Storage> ending =
      storage::make_fault_storage(*memory_, [&](const storage::StorageEvent& event, uint64_t*) {
        if (is_over) return unavailable("the process is gone");
        is_over = event.operation == Operation::kCommit && event.key.ends_with(part);
        return Status();
      });
  EXPECT_FALSE(remove_optimizer(*runtime_, {ending, "ckpt"}).ok());
  EXPECT_TRUE(is_over);
  EXPECT_TRUE(memory_->stat(kList).ok());
}

TEST_F(RemoveEntries, AreFinishedByOnesWithAnotherPrefixAndByGc) {
  const FormatCase format{"megatron", true};
  RemoveOptions other;
  other.prefix = "nothing";
  for (const bool collects : {false, true}) {
    save_anew(format);
    cut_off_behind("ckpt/.metadata");
    const auto before = contents(location());
    const Result<Report> dry = remove_entries(*runtime_, location(), other);
    ASSERT_TRUE(dry.ok()) << dry.status().to_string();
    EXPECT_TRUE(dry->removed.empty());
    EXPECT_EQ(dry->files, 1U);
    EXPECT_NE(dry->notes.front().find("cut off"), std::string::npos) << dry->notes.front();
    EXPECT_EQ(contents(location()), before);
    if (collects) {
      EXPECT_TRUE(collect_garbage(*runtime_, location(), {true, -1}).ok());
    } else {
      other.apply = true;
      EXPECT_TRUE(remove_entries(*runtime_, location(), other).ok());
      EXPECT_EQ(remove_entries(*runtime_, location(), other).status().code(),
                StatusCode::kNotFound);
      other.apply = false;
    }
    EXPECT_TRUE(is_done(format)) << collects;
  }
}

// What was kept of the checkpoint before is none of this one's affair.
TEST_F(RemoveEntries, ThatWereCutOffTakeNothingFromASaveBehindThem) {
  for (const char* const part : {"ckpt/.shardwright.removal", "ckpt/.metadata"}) {
    save_anew({"megatron", true});
    cut_off_behind(part);
    const World next = removal_world(2);
    save({"megatron"}, next);
    EXPECT_TRUE(collect_garbage(*runtime_, location(), {true, -1}).ok());
    EXPECT_TRUE(is_whole({"megatron"}, next)) << part;
    EXPECT_FALSE(memory_->stat("ckpt/integrity.json").ok()) << part;
    EXPECT_FALSE(memory_->stat(kList).ok()) << part;
    EXPECT_EQ(keys_at(location()).size(), 7U) << part;
  }
}

TEST_F(RemoveEntries, AreRefusedBesideAListThatIsDamaged) {
  save_anew({"torch-dcp"});
  for (const std::string text : {"{}", "[",
                                 R"({"before":"","after":"","files":[".metadata"],"digests":"",)"
                                 R"("new_digests":"","kept":""})"}) {
    storage::OpenOptions create;
    create.mode = storage::OpenMode::kCreateVisible;
    const auto object = memory_->open(kList, create);
    const auto bytes = std::as_bytes(std::span(text));
    ASSERT_TRUE(object.ok() && (*object)->write_at(0, bytes).ok() && (*object)->close().ok());
    const Status status = remove_optimizer(*runtime_, location()).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
    EXPECT_EQ(status.detail("file"), ".shardwright.removal");
    EXPECT_TRUE(is_whole({"torch-dcp"}, world_));
    ASSERT_TRUE(memory_->remove(kList).ok());
  }
}

}  // namespace
}  // namespace shardwright::exec::test
