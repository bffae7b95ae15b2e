// SPDX-License-Identifier: Apache-2.0
//
// Saves and loads on an object store: files go up in parts of the least size, the manifest is put
// under a condition on an ETag, and the steps of a run are found without looking into them.
#include <gtest/gtest.h>

#include "core/exec/housekeeping.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/object_store.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::ObjectStore;

class ObjectStoreTest : public testing::Test {
 protected:
  explicit ObjectStoreTest(uint64_t part_bytes = 1 << 20)
      : store_(std::make_shared<ObjectStore>(part_bytes)) {}
  format::Location at(const std::string& prefix) const { return {store_, prefix}; }
  void save(const World& world, const std::string& prefix) {
    const auto results = save_world(*runtime_, world, at(prefix));
    ASSERT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
    EXPECT_EQ(results[0]->durability, "full");
  }

  std::shared_ptr<ObjectStore> store_;
  std::unique_ptr<Runtime> runtime_ = make_runtime();
};

TEST_F(ObjectStoreTest, HoldsACheckpointThatWentUpInParts) {
  const World world = make_world(2, 19);
  save(world, "run/step-1");
  EXPECT_TRUE(stores(*runtime_, at("run/step-1"), world));
  EXPECT_GE(store_->bucket().parts.load(), 5U) << "two files in parts and a manifest";
}

TEST_F(ObjectStoreTest, ReplacesACheckpointUnderTheETagOfTheOld) {
  save(make_world(2, 1), "ckpt");
  const std::string first = store_->stat("ckpt/manifest.shw")->version;
  EXPECT_TRUE(first.starts_with('"')) << first;
  const World next = make_world(3, 2);
  save(next, "ckpt");
  EXPECT_NE(store_->stat("ckpt/manifest.shw")->version, first);
  EXPECT_TRUE(stores(*runtime_, at("ckpt"), next));
}

TEST_F(ObjectStoreTest, ListsTheStepsOfARunWithoutLookingIntoThem) {
  for (const char* step : {"run/step-1", "run/step-2"}) save(make_small_world(2, 1), step);
  for (int other = 0; other < 50; ++other) {
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreate;
    auto object = store_->open("run/step-1/notes/" + std::to_string(other), options);
    ASSERT_TRUE(object.ok() && (*object)->commit(storage::CommitCondition::kNone, {}).ok());
  }
  store_->bucket().keys_looked_at = 0;
  const Result<RunInfo> run = list_run(*runtime_, at("run"));
  ASSERT_TRUE(run.ok()) << run.status().to_string();
  EXPECT_EQ(run->newest_whole, "step-2");
  EXPECT_LT(store_->bucket().keys_looked_at.load(), 20U);
}

class PartsBeyondTheBudget : public ObjectStoreTest {
 protected:
  PartsBeyondTheBudget() : ObjectStoreTest(uint64_t{1} << 40) {}
};

TEST_F(PartsBeyondTheBudget, FailTheSaveByName) {
  const auto results = save_world(*runtime_, make_small_world(1, 1), at("ckpt"));
  EXPECT_EQ(agreed_code(results), StatusCode::kResourceExhausted);
  EXPECT_NE(results[0].status().to_string().find("parts of at least 1099511627776 bytes"),
            std::string::npos)
      << texts(results);
  EXPECT_TRUE(keys_at(at("ckpt")).empty());
}

}  // namespace
}  // namespace shardwright::exec::test
