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
  Result<std::shared_ptr<const Checkpoint>> open() {
    const std::filesystem::path path = directory_ / expected_["path"].get<std::string>();
    format::Location location;
    location.storage = storage::make_posix_storage(path);
    location.display = path;
    return Checkpoint::open(*runtime_, location);
  }

  const std::filesystem::path directory_;
  std::unique_ptr<Runtime> runtime_;
  nlohmann::json expected_;
};

}  // namespace shardwright::exec::test
