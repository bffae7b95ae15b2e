// SPDX-License-Identifier: Apache-2.0
//
// Saving directories of Megatron-core: what becomes of the common state, and the steps behind the
// commit. Each call of a save fails once, and each is the last one that is carried out: our readers
// find the checkpoint before or the new one, Megatron one of the two or none, and the next save
// puts all in order.
#include <set>

#include <fmt/format.h>

#include "core/exec/housekeeping.h"
#include "core/format/megatron/listed_digests.h"
#include "core/format/megatron/publication.h"
#include "core/storage/backends.h"
#include "tests/core/exec/failing_call.h"
#include "tests/core/exec/megatron_world.h"

namespace shardwright::exec::test {
namespace {

namespace megatron = format::megatron;

SaveOptions megatron_options() {
  SaveOptions options;
  options.format = "megatron";
  return options;
}

class MegatronSave : public testing::Test {
 protected:
  format::Location location() const { return {memory_, "ckpt"}; }
  Status save(const World& world, std::shared_ptr<storage::Storage> storage = nullptr) {
    const format::Location place{storage == nullptr ? memory_ : std::move(storage), "ckpt"};
    const auto saved = save_world(*runtime_, world, place, options_);
    agreed_code(saved);
    return saved.front().status();
  }
  testing::AssertionResult is_settled(const World& world) {
    testing::AssertionResult found = stores(*runtime_, location(), world);
    if (found) found = megatron_finds(*runtime_, location(), world);
    if (found && memory_->stat("ckpt/.shardwright.publish").ok())
      return testing::AssertionFailure() << "the journal is still there";
    if (found && memory_->stat("ckpt/integrity.json").ok() != options_.lists_digests)
      return testing::AssertionFailure() << "integrity.json is there, or is not";
    return found ? listed_files_are_whole() : found;
  }
  // What integrity.json says, for our readers and for those that know Megatron's files alone.
  testing::AssertionResult listed_files_are_whole() {
    const auto opened = Checkpoint::open(*runtime_, location());
    if (opened.ok()) {
      const auto verified = (*opened)->verify(true, CallContext());
      if (!verified.ok()) return testing::AssertionFailure() << verified.status().to_string();
      if (!verified->damage.empty())
        return testing::AssertionFailure() << verified->damage.front().message;
    }
    if (!memory_->stat("ckpt/metadata.json").ok()) return testing::AssertionSuccess();
    const auto findings = megatron::compare_listed(location());
    if (!findings.ok()) return testing::AssertionFailure() << findings.status().to_string();
    if (findings->empty()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << findings->front().to_string();
  }
  std::vector<std::byte> get(const std::string& key) const {
    return *storage::read_all(*memory_, key, uint64_t{1} << 30);
  }
  std::string text_of(const std::string& key) const {
    const std::vector<std::byte> bytes = get(key);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void put(const std::string& key, std::span<const std::byte> bytes) {
    ASSERT_TRUE(memory_->remove(key).ok());
    storage::OpenOptions create;
    create.mode = storage::OpenMode::kCreateVisible;
    const auto object = memory_->open(key, create);
    ASSERT_TRUE(object.ok() && (*object)->write_at(0, bytes).ok() && (*object)->close().ok());
  }
  std::shared_ptr<const Checkpoint> open() {
    auto opened = Checkpoint::open(*runtime_, location());
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return *opened;
  }
  // The value of an object that is text, "" where there is none of the name.
  std::string object_text(const std::string& name) {
    const auto checkpoint = open();
    const plan::Catalog& catalog = checkpoint->catalog();
    for (size_t o = 0; o < catalog.objects.size(); ++o) {
      if (catalog.object_name(o) != name) continue;
      const auto bytes = checkpoint->read_object(o, ReadRules());
      EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
      return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    }
    return "";
  }

  void fail_at_each_call(bool overwrites, bool goes_on);

  std::unique_ptr<Runtime> runtime_ = make_runtime(1);
  std::shared_ptr<storage::Storage> memory_ = storage::make_memory_storage();
  SaveOptions options_ = megatron_options();
};

TEST_F(MegatronSave, IsWhatMegatronFindsAndNothingElseIsLeft) {
  for (const int32_t ranks : {1, 2, 3}) {
    const World world = make_megatron_world(ranks, static_cast<uint64_t>(ranks));
    ASSERT_TRUE(save(world).ok());
    EXPECT_TRUE(is_settled(world)) << ranks;
    EXPECT_GT(open()->opened().digest_block_bytes(), 0U);
    EXPECT_TRUE(open()->opened().notes().empty());
    EXPECT_EQ(text_of("ckpt/metadata.json"),
              R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, )"
              R"("common_backend": "torch", "common_backend_version": 1})");
    // Data, digests, index, common state, marker; this storage has no key for its lock.
    EXPECT_EQ(keys_at(location()).size(), static_cast<size_t>(ranks) + 4);
  }
}

TEST_F(MegatronSave, WithoutCommonEntriesHasAnEmptyCommonState) {
  const World world = make_small_world(2, 1);
  ASSERT_TRUE(save(world).ok());
  EXPECT_TRUE(is_settled(world));
  EXPECT_EQ(object_text("common"), "{}");
}

TEST_F(MegatronSave, NestsTheCommonStateByPathsAndNames) {
  World world = make_megatron_world(1, 1);
  const auto add = [&](std::string name, std::string path, std::string_view text) {
    ObjectEntry entry;
    entry.name = std::move(name);
    entry.path = std::move(path);
    entry.content_type = "application/json";
    const auto bytes = std::as_bytes(std::span(text));
    entry.bytes.assign(bytes.begin(), bytes.end());
    std::vector<ObjectEntry> entries;
    entries.push_back(std::move(entry));
    ASSERT_TRUE(world.ranks[0].state->add_objects(std::move(entries)).ok());
  };
  add("common.args.lr", "", "0.25");
  add("common.args.a.b", R"(["common","args","a.b"])", R"({"$tuple":[1,"x"]})");
  add("common.groups.0.betas", R"(["common","groups",[0],"betas"])", "[0.9,0.95]");
  add("common.groups.1.betas", R"(["common","groups",[1],"betas"])", "null");
  add("common.count.3", R"(["common","count",3])", "12345678901234567890");
  ASSERT_TRUE(save(world).ok());
  EXPECT_TRUE(is_settled(world));
  EXPECT_GT(open()->opened().digest_block_bytes(), 0U);
  EXPECT_EQ(object_text("common.args.lr"), "0.25");
  EXPECT_EQ(object_text("common.args.a.b.1"), R"("x")");
  EXPECT_EQ(object_text("common.groups.0.betas.1"), "0.95");
  EXPECT_EQ(object_text("common.groups.1.betas"), "null");
  EXPECT_EQ(object_text("common.count.3"), "12345678901234567890");
}

TEST_F(MegatronSave, KeepsTheCommonStateAmongTheDataWhereThatIsWanted) {
  const World world = make_megatron_world(2, 1);
  SaveOptions options = megatron_options();
  options.common_as_object = true;
  const auto saved = save_world(*runtime_, world, location(), options);
  ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
  EXPECT_EQ(text_of("ckpt/metadata.json"),
            R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})");
  EXPECT_FALSE(memory_->stat("ckpt/common.pt").ok());
  const auto checkpoint = open();
  EXPECT_GT(checkpoint->opened().digest_block_bytes(), 0U);
  EXPECT_TRUE(checkpoint->find_object("common_state/shard_0_1", -1).ok());
  EXPECT_TRUE(checkpoint->verify(true, CallContext()).ok());
  ASSERT_TRUE(save(make_megatron_world(1, 2)).ok());
  EXPECT_TRUE(is_settled(make_megatron_world(1, 2)));
  EXPECT_EQ(keys_at(location()).size(), 5U);
}

// Common state as a file and as an object, many blocks, ranks that write nothing: what was hashed
// while it was written is what lies there.
TEST_F(MegatronSave, ListsTheSha256OfEachFileWhereThatIsWanted) {
  options_.lists_digests = true;
  for (const bool as_object : {false, true}) {
    for (const World& world : {make_megatron_world(3, 1), make_world(3, 2)}) {
      options_.common_as_object = as_object;
      ASSERT_TRUE(save(world).ok());
      std::set<std::string> names;
      const auto files = megatron::decode_integrity(get("ckpt/integrity.json"));
      ASSERT_TRUE(files.ok()) << files.status().to_string();
      for (const auto& [name, digest] : *files) names.insert("ckpt/" + name);
      std::set<std::string> expected;
      for (const std::string& key : keys_at(location())) expected.insert(key);
      expected.erase("ckpt/integrity.json");
      EXPECT_EQ(names, expected);
      EXPECT_TRUE(listed_files_are_whole());
      EXPECT_TRUE(stores(*runtime_, location(), world) || as_object);
    }
  }
  options_ = megatron_options();
  ASSERT_TRUE(save(make_megatron_world(1, 3)).ok());
  EXPECT_TRUE(is_settled(make_megatron_world(1, 3)));
}

TEST_F(MegatronSave, SaysWhichListedFileIsDamaged) {
  options_.lists_digests = true;
  ASSERT_TRUE(save(make_megatron_world(2, 1)).ok());
  for (const std::string& key : keys_at(location())) {
    const std::string name = key.substr(5);
    if (name == "integrity.json" || name == ".metadata" || name == "metadata.json") continue;
    std::vector<std::byte> bytes = get(key);
    bytes.back() ^= std::byte{1};
    put(key, bytes);
    const auto findings = megatron::compare_listed(location());
    ASSERT_TRUE(findings.ok() && findings->size() == 1) << name;
    EXPECT_EQ(findings->front().detail("file"), name);
    // A common state that is cut is found when it is opened.
    const auto opened = Checkpoint::open(*runtime_, location());
    const Status said =
        opened.ok() ? (*opened)->verify(true, CallContext()).status() : opened.status();
    EXPECT_EQ(said.code(), StatusCode::kDataLoss) << name;
    EXPECT_TRUE(said.detail("file").ends_with(name)) << said.to_string();
    bytes.back() ^= std::byte{1};
    put(key, bytes);
  }
  EXPECT_TRUE(listed_files_are_whole());
}

TEST_F(MegatronSave, OtherFormatsRefuseAListOfDigests) {
  options_.lists_digests = true;
  for (const char* const format : {"native", "torch-dcp", "safetensors"}) {
    options_.format = format;
    const Status refused = save(make_small_world(1, 1));
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.to_string();
    EXPECT_EQ(refused.detail("option"), "integrity");
  }
}

TEST_F(MegatronSave, RefusesACommonStateThatIsNone) {
  const auto refusal = [&](const std::function<void(World*)>& change) {
    World world = make_megatron_world(2, 1);
    change(&world);
    return save(world);
  };
  const Status of_one = refusal(
      [](World* world) { add_object(&world->ranks[1], "common.x", "1", EntryKind::kRankLocal); });
  EXPECT_EQ(of_one.code(), StatusCode::kInvalidArgument) << of_one.to_string();
  EXPECT_EQ(of_one.detail("object"), "common.x");
  const Status both = refusal([](World* world) {
    for (Holding& rank : world->ranks)
      add_object(&rank, "common_state/shard_0_1", "1", EntryKind::kReplicated);
  });
  EXPECT_EQ(both.code(), StatusCode::kInvalidArgument) << both.to_string();
  const Status conflict = refusal([](World* world) {
    for (Holding& rank : world->ranks)
      add_object(&rank, "common.state", "1", EntryKind::kReplicated);
  });
  EXPECT_EQ(conflict.code(), StatusCode::kInvalidArgument) << conflict.to_string();
  for (const std::string& key : keys_at(location())) EXPECT_EQ(key, "ckpt/.lock");
}

void MegatronSave::fail_at_each_call(bool overwrites, bool goes_on) {
  const World old_world = make_megatron_world(1, 1);
  const World new_world = make_megatron_world(1, 2);
  const World next_world = make_megatron_world(1, 3);
  int64_t committed = 0;
  int64_t calls = 0;
  for (int64_t call = 1; !HasFailure(); ++call) {
    memory_ = storage::make_memory_storage();
    if (overwrites) {
      ASSERT_TRUE(save(old_world).ok());
    }
    const FailingCall failing{.call = call, .goes_on = goes_on};
    const Status saved = save(new_world, failing.on(*memory_));
    if (*failing.count < call) break;  // it has no such call
    calls = call;
    const std::string what = fmt::format("call {}: {}", call, saved.to_string());
    const testing::AssertionResult is_new = stores(*runtime_, location(), new_world);
    committed += is_new ? 1 : 0;
    EXPECT_TRUE(is_new || !saved.ok()) << what;
    if (!is_new && overwrites) {
      EXPECT_TRUE(stores(*runtime_, location(), old_world)) << what;
    } else if (!is_new) {
      EXPECT_EQ(Checkpoint::open(*runtime_, location()).status().code(), StatusCode::kNotFound)
          << what;
    }
    const World* const both[] = {&new_world, &old_world};
    EXPECT_TRUE(megatron_finds_none_or(*runtime_, location(), {both, overwrites ? 2U : 1U}))
        << what;
    EXPECT_TRUE(listed_files_are_whole()) << what;
    ASSERT_TRUE(save(next_world).ok()) << what;
    EXPECT_TRUE(is_settled(next_world)) << what;
    GcOptions collect;
    collect.apply = true;
    collect.grace_ns = -1;
    EXPECT_TRUE(collect_garbage(*runtime_, location(), collect).ok()) << what;
    EXPECT_EQ(keys_at(location()).size(), options_.lists_digests ? 6U : 5U) << what;
  }
  EXPECT_GT(committed, 8) << "a save has steps behind its commit";
  EXPECT_GT(calls - committed, 12) << "and more before it";
}

TEST_F(MegatronSave, AFirstSaveThatFailsAtAnyCallLeavesNothingOrTheNewOne) {
  fail_at_each_call(false, false);
}

TEST_F(MegatronSave, AFirstSaveThatEndsAtAnyCallLeavesNothingOrTheNewOne) {
  fail_at_each_call(false, true);
}

TEST_F(MegatronSave, AnOverwriteThatFailsAtAnyCallLeavesTheOldOrTheNewOne) {
  fail_at_each_call(true, false);
}

TEST_F(MegatronSave, AnOverwriteThatEndsAtAnyCallLeavesTheOldOrTheNewOne) {
  fail_at_each_call(true, true);
}

TEST_F(MegatronSave, AnOverwriteWithDigestsThatFailsAtAnyCallLeavesTheOldOrTheNewOne) {
  options_.lists_digests = true;
  fail_at_each_call(true, false);
}

TEST_F(MegatronSave, AnOverwriteWithDigestsThatEndsAtAnyCallLeavesTheOldOrTheNewOne) {
  options_.lists_digests = true;
  fail_at_each_call(true, true);
}

TEST_F(MegatronSave, ADamagedJournalStopsReadersAndSaves) {
  const World world = make_megatron_world(1, 1);
  ASSERT_TRUE(save(world).ok());
  storage::OpenOptions create;
  create.mode = storage::OpenMode::kCreateVisible;
  const std::vector<std::byte> bytes(megatron::kJournalBytes, std::byte{1});
  const auto object = memory_->open("ckpt/.shardwright.publish", create);
  ASSERT_TRUE(object.ok() && (*object)->write_at(0, bytes).ok() && (*object)->close().ok());
  const Status opened = Checkpoint::open(*runtime_, location()).status();
  EXPECT_EQ(opened.code(), StatusCode::kDataLoss);
  EXPECT_EQ(opened.detail("file"), megatron::kJournalName);
  EXPECT_EQ(save(make_megatron_world(1, 2)).code(), StatusCode::kDataLoss);
  ASSERT_TRUE(memory_->remove("ckpt/.shardwright.publish").ok());
  EXPECT_TRUE(is_settled(world));
}

}  // namespace
}  // namespace shardwright::exec::test
