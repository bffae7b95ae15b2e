// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of other libraries in folders of tests/golden/KIND: expected.json of each says where
// the checkpoint is ("path") and what was saved. One test for each folder.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/exec/checkpoint.h"
#include "core/exec/runtime.h"
#include "core/storage/backends.h"

namespace shardwright::exec::test {

inline std::filesystem::path golden_directory(const std::string& kind) {
  const char* given = std::getenv("SHW_SOURCE_DIR");
  const std::filesystem::path root = given != nullptr ? given : std::filesystem::current_path();
  return root / "tests/golden" / kind;
}

inline std::vector<std::string> golden_cases(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_directory(kind))) {
    if (std::filesystem::exists(entry.path() / "expected.json"))
      names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

class GoldenCase : public testing::TestWithParam<std::string> {
 protected:
  explicit GoldenCase(const std::string& kind)
      : directory_(golden_directory(kind) / GetParam()), runtime_(std::move(*Runtime::create({}))) {
    std::ifstream stream(directory_ / "expected.json");
    expected_ = nlohmann::json::parse(stream);
  }
  format::Location location() {
    const std::filesystem::path path = directory_ / expected_["path"].get<std::string>();
    format::Location location;
    location.storage = storage::make_posix_storage(path);
    location.display = path;
    return location;
  }
  Result<std::shared_ptr<const Checkpoint>> open() {
    return Checkpoint::open(*runtime_, location());
  }

  static Result<std::string> sha256(const Checkpoint& checkpoint, const std::string& name) {
    SHW_ASSIGN_OR_RETURN(const size_t tensor, checkpoint.find_tensor(name, -1));
    SHW_ASSIGN_OR_RETURN(
        const auto digest,
        checkpoint.tensor_digest(tensor, integrity::TensorDigestAlgorithm::kSha256, CallContext()));
    return to_hex(digest);
  }
  void expect_digests(const Checkpoint& checkpoint) {
    for (const auto& [name, tensor] : expected_["tensors"].items()) {
      const auto digest = sha256(checkpoint, name);
      ASSERT_TRUE(digest.ok()) << digest.status().to_string();
      EXPECT_EQ(*digest, tensor["sha256"].get<std::string>()) << name;
    }
  }

  const std::filesystem::path directory_;
  std::unique_ptr<Runtime> runtime_;
  nlohmann::json expected_;
};

// One that opens.
class SoundGoldenCase : public GoldenCase {
 protected:
  using GoldenCase::GoldenCase;
  void SetUp() override {
    auto opened = open();
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    checkpoint_ = *opened;
  }
  std::string object_text(size_t object) const {
    const auto bytes = checkpoint_->read_object(object, ReadRules());
    EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
    if (!bytes.ok()) return "";
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
  void expect_whole() const {
    const Result<Report> report = checkpoint_->verify(true, CallContext());
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(report->damage.empty());
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
};

}  // namespace shardwright::exec::test
