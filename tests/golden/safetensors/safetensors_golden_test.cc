// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints that the safetensors package, torch's Hugging Face writer and MindSpore wrote, and
// some that were damaged by hand. expected.json of each says what was saved: dtype, shape, SHA-256
// and chunks of each tensor, metadata, and of the damaged ones that they are refused.
#include <memory>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "tests/golden/golden_case.h"

namespace shardwright::exec {
namespace {

using Json = nlohmann::json;
using test::golden_cases;
using test::GoldenCase;

class SafetensorsGolden : public GoldenCase {
 protected:
  SafetensorsGolden() : GoldenCase("safetensors") {}
  std::string sha256(const Checkpoint& checkpoint, size_t tensor) {
    const auto digest =
        checkpoint.tensor_digest(tensor, integrity::TensorDigestAlgorithm::kSha256, CallContext());
    EXPECT_TRUE(digest.ok()) << digest.status().to_string();
    return digest.ok() ? to_hex(*digest) : "";
  }
  // Where the format says which file has which box.
  void expect_chunks(const Checkpoint& checkpoint, size_t tensor, const Json& chunks) {
    const plan::Catalog& catalog = checkpoint.catalog();
    std::set<std::string> found;
    std::set<std::string> wanted;
    for (const Json& chunk : chunks) {
      wanted.insert(chunk["offsets"].dump() + chunk["sizes"].dump() + chunk.value("file", ""));
    }
    const plan::TensorRecord& record = catalog.tensors[tensor];
    for (uint64_t i = record.chunk_begin; i < record.chunk_begin + record.chunk_count; ++i) {
      const Box box = catalog.chunk_box(i);
      const Json offsets = std::vector<int64_t>(box.offsets.begin(), box.offsets.end());
      const Json sizes = std::vector<int64_t>(box.sizes.begin(), box.sizes.end());
      const auto& file = checkpoint.opened().files()[checkpoint.opened().chunk_file(i)];
      found.insert(offsets.dump() + sizes.dump() + file.key);
    }
    EXPECT_EQ(found, wanted) << catalog.tensor_name(tensor);
  }
};

TEST_P(SafetensorsGolden, HoldsWhatWasSavedOrIsRefused) {
  const auto opened = open();
  if (expected_.contains("fail_on")) {
    ASSERT_FALSE(opened.ok());
    EXPECT_FALSE(opened.status().detail("file").empty()) << opened.status().to_string();
    return;
  }
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const Checkpoint& checkpoint = **opened;
  const std::string format = expected_["format"];
  EXPECT_EQ(checkpoint.opened().format_name(),
            format == "mindspore-safetensors" ? "safetensors" : format);
  const plan::Catalog& catalog = checkpoint.catalog();
  ASSERT_EQ(catalog.tensors.size(), expected_["tensors"].size());
  for (const auto& [name, tensor] : expected_["tensors"].items()) {
    const Result<size_t> found = checkpoint.find_tensor(name, -1);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(dtype_name(catalog.tensors[*found].dtype), tensor["dtype"].get<std::string>());
    EXPECT_EQ(
        Json(std::vector<int64_t>(catalog.shape(*found).begin(), catalog.shape(*found).end())),
        tensor["shape"])
        << name;
    EXPECT_EQ(sha256(checkpoint, *found), tensor["sha256"].get<std::string>()) << name;
    if (tensor.contains("chunks")) expect_chunks(checkpoint, *found, tensor["chunks"]);
  }
  if (expected_.contains("metadata") && !expected_["metadata"].is_null()) {
    EXPECT_EQ(Json(checkpoint.opened().metadata()), expected_["metadata"]);
  }
  const Result<Report> report = checkpoint.verify(true, CallContext());
  EXPECT_TRUE(report.ok()) << report.status().to_string();
}

INSTANTIATE_TEST_SUITE_P(All, SafetensorsGolden, testing::ValuesIn(golden_cases("safetensors")),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace shardwright::exec
