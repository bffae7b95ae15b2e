// SPDX-License-Identifier: Apache-2.0
//
// Every name that a save makes is durable before it commits: files, the generation, the
// checkpoint's folder and those above it, whoever of its calls made them, and those that a save
// made which was killed before it could sync them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/storage/posix/system_calls.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/watched_names.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::WatchedNames;

class DurableNames : public testing::Test {
 protected:
  DurableNames() {
    calls_->before_rename = [this](const std::string& to) {
      if (!to.ends_with("manifest.shw")) return;
      ++commits_;
      for (const std::string& name : calls_->lost_now()) {
        const bool may_go =
            name.ends_with("/.lock") || name.find("manifest.shw.") != std::string::npos;
        EXPECT_TRUE(may_go) << name << " would be lost with a committed checkpoint";
      }
    };
  }
  format::Location location(const std::string& prefix = "run/step-1") {
    return {storage::make_posix_storage(root_, calls_), prefix};
  }
  void save(const format::Location& where, const SaveOptions& options = {}) {
    const auto results = save_world(*runtime_, make_small_world(2, 1), where, options);
    EXPECT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  }

  shardwright::test::TemporaryDirectory directory_;
  const std::string root_ = directory_ / "jobs/42";
  std::shared_ptr<WatchedNames> calls_ = std::make_shared<WatchedNames>(root_);
  std::unique_ptr<Runtime> runtime_ = make_runtime();
  int commits_ = 0;
};

TEST_F(DurableNames, OfAFirstSaveInNewFolders) {
  save(location());
  EXPECT_EQ(commits_, 1);
}

TEST_F(DurableNames, OfAnOverwrite) {
  save(location());
  save(location());
  EXPECT_EQ(commits_, 2);
}

TEST_F(DurableNames, OfFoldersThatAKilledSaveLeft) {
  // All that it came to was its lock: folders of whom nobody synced anything.
  ASSERT_TRUE(location().storage->try_lock("run/step-1/.lock", storage::LockMode::kShared).ok());
  EXPECT_GE(calls_->lost_now().size(), 4U) << "jobs, 42, run and step-1 are not durable yet";
  save(location());
  EXPECT_EQ(commits_, 1);
}

// A save syncs the folders above its checkpoint once more; an object alone has nobody who does.
TEST_F(DurableNames, OfFoldersThatTheOpeningOfAnObjectMade) {
  for (const auto mode : {storage::OpenMode::kCreate, storage::OpenMode::kCreateVisible}) {
    storage::OpenOptions options;
    options.mode = mode;
    const std::string key = fmt::format("new-{}/below/object", static_cast<int>(mode));
    const auto object = location().storage->open(key, options);
    ASSERT_TRUE(object.ok()) << object.status().to_string();
    ASSERT_TRUE((*object)->sync().ok());
    const bool commits = mode == storage::OpenMode::kCreate;
    ASSERT_TRUE(!commits || (*object)->commit(storage::CommitCondition::kNone, {}).ok());
    ASSERT_TRUE((*object)->close().ok());
    for (const std::string& name : calls_->lost_now())
      ADD_FAILURE() << name << " would be lost with a durable object";
  }
}

TEST_F(DurableNames, OfASaveAfterOneThatSyncedNothing) {
  SaveOptions options;
  options.durability = Durability::kNone;
  calls_->before_rename = nullptr;
  save(location(), options);
  for (const std::string& name : calls_->lost_now())
    EXPECT_NE(name.find("/step-1/"), std::string::npos)
        << name << ": a folder above was not synced";
}

}  // namespace
}  // namespace shardwright::exec::test
