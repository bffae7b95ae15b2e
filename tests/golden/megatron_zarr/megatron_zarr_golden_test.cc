// SPDX-License-Identifier: Apache-2.0
//
// A directory that the zarr backend of megatron-core 0.10.0 wrote on two ranks, with tensor
// parallelism: expected.json says what was saved. It is read by conversions, and by nothing else.
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/exec/convert.h"
#include "tests/golden/golden_case.h"
#include "tests/support/expect_failure.h"

namespace shardwright::exec {
namespace {

using Json = nlohmann::json;

class MegatronZarrGolden : public test::SoundGoldenCase {
 protected:
  MegatronZarrGolden() : SoundGoldenCase("megatron_zarr") {}
  void SetUp() override {
    const auto opened = Checkpoint::open_to_convert(*runtime_, location());
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    checkpoint_ = *opened;
  }
  Result<Report> convert_to(const std::string& format) {
    const auto writing = Runtime::create({});
    ConvertOptions options;
    options.format = format;
    return convert(*runtime_, **writing, location(), {made_, format}, options, CallContext());
  }

  std::shared_ptr<storage::Storage> made_ = storage::make_memory_storage();
};

TEST_P(MegatronZarrGolden, IsNotOpened) {
  const Status status = open().status();
  EXPECT_FAILURE(status, StatusCode::kUnimplemented, "'zarr'");
  EXPECT_NE(status.detail("hint").find("shardwright convert"), std::string::npos);
}

TEST_P(MegatronZarrGolden, HoldsTheTensorsThatWereSaved) {
  const plan::Catalog& catalog = checkpoint_->catalog();
  ASSERT_EQ(catalog.tensors.size(), expected_["tensors"].size());
  for (const auto& [name, tensor] : expected_["tensors"].items()) {
    const Result<size_t> found = checkpoint_->find_tensor(name, -1);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    const plan::TensorRecord& record = catalog.tensors[*found];
    EXPECT_EQ(dtype_name(record.dtype), tensor["dtype"].get<std::string>());
    const auto shape = catalog.shape(*found);
    EXPECT_EQ(Json(std::vector<int64_t>(shape.begin(), shape.end())), tensor["shape"]) << name;
    if (!tensor.contains("chunk_shape")) continue;
    const Dims chunk = catalog.chunk_box(record.chunk_begin).sizes;
    EXPECT_EQ(Json(std::vector<int64_t>(chunk.begin(), chunk.end())), tensor["chunk_shape"])
        << name;
  }
  expect_digests(*checkpoint_);
}

TEST_P(MegatronZarrGolden, HoldsTheObjectsAndTheCommonState) {
  const plan::Catalog& catalog = checkpoint_->catalog();
  std::set<std::string> names;
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    const std::string name(catalog.object_name(i));
    names.insert(name);
    if (name == "rng_state/shard_0.1_1.2") {
      EXPECT_EQ(object_text(i), R"([[{"seed":8,"state":{"$tuple":[3,{"$tuple":[1,2]},null]}}]])");
    }
    if (name == "common.iteration") {
      EXPECT_EQ(object_text(i), "100");
    }
  }
  for (const auto& [name, value] : expected_["objects"].items())
    EXPECT_TRUE(names.contains(name)) << name;
  for (const char* name : {"common.iteration", "common.args.lr", "common.scheduler.steps"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_TRUE(checkpoint_->opened().notes().empty());
}

TEST_P(MegatronZarrGolden, BecomesACheckpointOfEachFormat) {
  for (const std::string format : {"native", "torch-dcp", "megatron", "safetensors"}) {
    const auto report = convert_to(format);
    ASSERT_TRUE(report.ok()) << format << ": " << report.status().to_string();
    const auto made = Checkpoint::open(*runtime_, {made_, format});
    ASSERT_TRUE(made.ok()) << format << ": " << made.status().to_string();
    EXPECT_EQ((*made)->catalog().tensors.size(), expected_["tensors"].size()) << format;
    // Objects that are text are metadata of safetensors files.
    const size_t kept = format == "safetensors" ? 2 : checkpoint_->catalog().objects.size();
    EXPECT_EQ((*made)->catalog().objects.size(), kept) << format;
    expect_digests(**made);
    EXPECT_TRUE((*made)->verify(true, CallContext()).ok());
    const auto again = convert_to(format);
    ASSERT_TRUE(again.ok()) << format << ": " << again.status().to_string();
    EXPECT_NE(again->notes.front().find("was converted before"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(All, MegatronZarrGolden,
                         testing::ValuesIn(test::golden_cases("megatron_zarr")),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace shardwright::exec
