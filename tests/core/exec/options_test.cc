// SPDX-License-Identifier: Apache-2.0
#include "core/exec/options.h"

#include <functional>

#include <gtest/gtest.h>

#include "core/base/limits.h"

namespace shardwright::exec {
namespace {

Status check(const std::function<void(SaveOptions*)>& change) {
  SaveOptions options;
  change(&options);
  return check_options(options);
}

TEST(SaveOptions, DefaultsAreValid) {
  EXPECT_TRUE(check_options(SaveOptions()).ok());
  EXPECT_TRUE(check_options(LoadOptions()).ok());
}

TEST(SaveOptions, ABadValueIsNamed) {
  const auto expect = [](const Status& status, StatusCode code, std::string_view parameter) {
    EXPECT_EQ(status.code(), code) << status.to_string();
    EXPECT_EQ(status.detail("parameter"), parameter);
  };
  const StatusCode kInvalid = StatusCode::kInvalidArgument;
  expect(check([](auto* o) { o->overwrite = static_cast<Overwrite>(2); }), kInvalid, "overwrite");
  expect(check([](auto* o) { o->durability = static_cast<Durability>(-1); }), kInvalid,
         "durability");
  expect(check([](auto* o) { o->rules.owner = static_cast<plan::OwnerRule>(9); }), kInvalid,
         "owner");
  expect(check([](auto* o) { o->rules.verify_replicas = static_cast<plan::VerifyReplicas>(3); }),
         kInvalid, "verify_replicas");
  expect(check([](auto* o) { o->rules.preset = static_cast<plan::Preset>(4); }), kInvalid,
         "preset");
  expect(check([](auto* o) { o->rules.owner = plan::OwnerRule::kAll; }), kInvalid, "owner");
  expect(check([](auto* o) { o->keep_generations = 0; }), kInvalid, "keep_generations");
  expect(check([](auto* o) { o->file_mode = 0100644; }), kInvalid, "file_mode");
  expect(check([](auto* o) { o->metadata["a"] = "\xff"; }), kInvalid, "metadata");
  expect(check([](auto* o) { o->metadata["a"] = std::string(kMaxMetadataBytes, 'x'); }), kInvalid,
         "metadata");
  expect(check([](auto* o) { o->rules.kinds.push_back({"*", static_cast<EntryKind>(77)}); }),
         kInvalid, "kind");
}

TEST(LoadOptions, ABadValueIsNamed) {
  LoadOptions options;
  options.verify = static_cast<VerifyRule>(5);
  EXPECT_EQ(check_options(options).detail("parameter"), "verify");
  options = LoadOptions();
  options.rules.missing = static_cast<plan::MissingRule>(5);
  EXPECT_EQ(check_options(options).detail("parameter"), "missing");
  options = LoadOptions();
  options.rules.strict.push_back({"*", plan::MissingRule::kError, plan::UnexpectedRule::kReport,
                                  static_cast<plan::CastRule>(5)});
  EXPECT_EQ(check_options(options).detail("parameter"), "strict");
}

TEST(SharedOptionsText, ShowsEveryOptionThatRanksShareAndNoOther) {
  const std::string text = shared_options_text(SaveOptions());
  const auto differs = [&text](const std::function<void(SaveOptions*)>& change) {
    SaveOptions options;
    change(&options);
    return shared_options_text(options) != text;
  };
  EXPECT_TRUE(differs([](auto* o) { o->overwrite = Overwrite::kRefuse; }));
  EXPECT_TRUE(differs([](auto* o) { o->durability = Durability::kNone; }));
  EXPECT_TRUE(differs([](auto* o) { o->digests = false; }));
  EXPECT_TRUE(differs([](auto* o) { o->rules.owner = plan::OwnerRule::kLowestRank; }));
  EXPECT_TRUE(differs([](auto* o) { o->rules.verify_replicas = plan::VerifyReplicas::kAll; }));
  EXPECT_TRUE(differs([](auto* o) { o->rules.kinds.push_back({"a*", EntryKind::kSharded}); }));
  EXPECT_TRUE(differs([](auto* o) { o->keep_generations = 2; }));
  EXPECT_TRUE(differs([](auto* o) { o->file_mode = 0600; }));
  EXPECT_TRUE(differs([](auto* o) { o->metadata["step"] = "1"; }));
  EXPECT_FALSE(differs([](auto* o) { o->trace_path = "trace.json"; }));
  EXPECT_FALSE(differs([](auto* o) { o->deadline_ns = 5; }));
}

TEST(SharedOptionsText, LongMetadataDifferBehindWhatIsShown) {
  SaveOptions a;
  a.metadata["config"] = std::string(100'000, 'x');
  SaveOptions b = a;
  b.metadata["config"].back() = 'y';
  EXPECT_NE(shared_options_text(a), shared_options_text(b));
  EXPECT_LT(shared_options_text(a).size(), 4096U);
}

}  // namespace
}  // namespace shardwright::exec
