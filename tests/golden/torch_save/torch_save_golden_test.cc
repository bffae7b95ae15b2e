// SPDX-License-Identifier: Apache-2.0
//
// Files that torch.save wrote, by several versions and in both of its formats. expected.json of
// each says what was saved: dtype, shape and SHA-256 of each tensor; those made by generate.py also
// what their objects are.
#include <algorithm>
#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/golden/golden_case.h"

namespace shardwright::exec {
namespace {

using Json = nlohmann::json;
using test::golden_cases;
using test::SoundGoldenCase;

class TorchSaveGolden : public SoundGoldenCase {
 protected:
  TorchSaveGolden() : SoundGoldenCase("torch_save") {}
  void expect_object(const std::string& name, const Json& wanted) {
    const plan::Catalog& catalog = checkpoint_->catalog();
    for (size_t i = 0; i < catalog.objects.size(); ++i) {
      if (catalog.object_name(i) != name) continue;
      const std::string type(catalog.texts.at(catalog.objects[i].content_type));
      EXPECT_EQ(type, wanted[0].get<std::string>()) << name;
      const bool is_pickle = type == "application/python-pickle";
      EXPECT_EQ(object_text(i).substr(0, is_pickle ? 2 : std::string::npos),
                is_pickle ? "\x80\x04" : wanted[1].get<std::string>())
          << name;
      return;
    }
    ADD_FAILURE() << "there is no object '" << name << "'";
  }
};

TEST_P(TorchSaveGolden, HoldsWhatWasSaved) {
  EXPECT_EQ(checkpoint_->opened().format_name(), "torch-save");
  const plan::Catalog& catalog = checkpoint_->catalog();
  ASSERT_EQ(catalog.tensors.size(), expected_["tensors"].size());
  for (const auto& [name, tensor] : expected_["tensors"].items()) {
    const Result<size_t> found = checkpoint_->find_tensor(name, -1);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(dtype_name(catalog.tensors[*found].dtype), tensor["dtype"].get<std::string>());
    const auto shape = catalog.shape(*found);
    EXPECT_EQ(Json(std::vector<int64_t>(shape.begin(), shape.end())), tensor["shape"]) << name;
  }
  expect_digests(*checkpoint_);
  ASSERT_EQ(catalog.objects.size(), expected_["objects"].size());
  for (const auto& [name, object] : expected_["objects"].items()) {
    if (object.is_array()) expect_object(name, object);
  }
}

TEST_P(TorchSaveGolden, IsWhole) {
  expect_whole();
}

INSTANTIATE_TEST_SUITE_P(All, TorchSaveGolden, testing::ValuesIn(golden_cases("torch_save")),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace shardwright::exec
