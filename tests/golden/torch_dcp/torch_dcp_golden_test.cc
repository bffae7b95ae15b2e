// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that torch.distributed.checkpoint of torch 2.1 to 2.15 wrote, and some that were
// damaged by hand. expected.json of each says what was saved: dtype, shape, SHA-256 and chunks of
// each tensor, nested paths, and of the damaged ones which tensors may not be read.
#include <memory>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/golden/golden_case.h"

namespace shardwright::exec {
namespace {

using Json = nlohmann::json;
using test::golden_cases;
using test::GoldenCase;

bool is_empty(const Json& sizes) {
  return std::ranges::any_of(sizes, [](const Json& size) { return size == 0; });
}

class TorchDcpGolden : public GoldenCase {
 protected:
  TorchDcpGolden() : GoldenCase("torch_dcp") {}
  void expect_tensor(const Checkpoint& checkpoint, const std::string& name, const Json& tensor) {
    const plan::Catalog& catalog = checkpoint.catalog();
    const Result<size_t> found = checkpoint.find_tensor(name, -1);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    const plan::TensorRecord& record = catalog.tensors[*found];
    const auto shape = catalog.shape(*found);
    EXPECT_EQ(dtype_name(record.dtype), tensor["dtype"].get<std::string>());
    EXPECT_EQ(Json(std::vector<int64_t>(shape.begin(), shape.end())), tensor["shape"]) << name;
    std::set<std::string> wanted, boxes;
    for (const Json& chunk : tensor["chunks"]) {
      if (!is_empty(chunk["sizes"])) wanted.insert(chunk["offsets"].dump() + chunk["sizes"].dump());
    }
    for (uint64_t i = record.chunk_begin; i < record.chunk_begin + record.chunk_count; ++i) {
      const Box box = catalog.chunk_box(i);
      const Json offsets = std::vector<int64_t>(box.offsets.begin(), box.offsets.end());
      const Json sizes = std::vector<int64_t>(box.sizes.begin(), box.sizes.end());
      boxes.insert(offsets.dump() + sizes.dump());
    }
    EXPECT_EQ(boxes, wanted) << name;
    if (expected_.contains("paths") && expected_["paths"].contains(name))
      expect_path(catalog.texts.at(record.path), expected_["paths"][name]);
  }
  // Positions in lists are arrays of one number.
  static void expect_path(std::string_view path, const Json& keys) {
    Json parts = Json::array();
    for (const Json& key : keys) parts.push_back(key.is_number() ? Json::array({key}) : key);
    EXPECT_EQ(Json::parse(path), parts);
  }
  void expect_refused(const Result<std::shared_ptr<const Checkpoint>>& opened) {
    if (!opened.ok()) {
      EXPECT_NE(opened.status().detail("file"), "") << opened.status().to_string();
      return;
    }
    EXPECT_EQ(expected_["fail_on"], "read");
    for (const Json& name : expected_["bad"]) {
      const auto digest = sha256(**opened, name);
      ASSERT_FALSE(digest.ok()) << name;
      EXPECT_NE(digest.status().detail("file"), "") << digest.status().to_string();
    }
    for (const Json& name : expected_["good"]) {
      const auto digest = sha256(**opened, name);
      ASSERT_TRUE(digest.ok()) << digest.status().to_string();
      EXPECT_EQ(*digest,
                expected_["tensors"][name.get<std::string>()]["sha256"].get<std::string>());
    }
  }
};

TEST_P(TorchDcpGolden, HoldsWhatWasSavedOrIsRefused) {
  const auto opened = open();
  if (expected_.contains("fail_on")) return expect_refused(opened);
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const Checkpoint& checkpoint = **opened;
  EXPECT_EQ(checkpoint.opened().format_name(), "torch-dcp");
  EXPECT_EQ(checkpoint.catalog().tensors.size(), expected_["tensors"].size());
  EXPECT_EQ(checkpoint.catalog().objects.size(), expected_["objects"].size());
  for (const auto& [name, tensor] : expected_["tensors"].items())
    expect_tensor(checkpoint, name, tensor);
  for (size_t i = 0; i < checkpoint.catalog().objects.size(); ++i)
    EXPECT_TRUE(expected_["objects"].contains(checkpoint.catalog().object_name(i)));
  expect_digests(checkpoint);
}

INSTANTIATE_TEST_SUITE_P(All, TorchDcpGolden, testing::ValuesIn(golden_cases("torch_dcp")),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace shardwright::exec
