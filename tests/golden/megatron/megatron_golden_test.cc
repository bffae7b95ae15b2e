// SPDX-License-Identifier: Apache-2.0
//
// Directories that megatron-core 0.12.3, 0.16.1 and 0.19.2 wrote: expected.json of each says what
// was saved, the common state included. Copies of them are damaged file by file.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/format/format.h"
#include "core/format/torch_dcp/item_archive.h"
#include "tests/golden/golden_case.h"
#include "tests/support/expect_failure.h"

namespace shardwright::exec {
namespace {

using Json = nlohmann::json;
using test::golden_cases;
using test::golden_directory;
using test::SoundGoldenCase;

// The ends of an encoded value, as entries of a file of torch.save are named. Empty containers and
// what has no JSON are ends, too, with null.
void add_ends(const Json& value, const std::string& name, Json* ends) {
  const std::string type = value["type"];
  const bool is_dict = type == "dict";
  if ((is_dict || type == "list" || type == "tuple") && !value["items"].empty()) {
    size_t number = 0;
    for (const Json& item : value["items"]) {
      const std::string key =
          is_dict ? item[0]["value"].get<std::string>() : std::to_string(number++);
      add_ends(is_dict ? item[1] : item, name + "." + key, ends);
    }
    return;
  }
  (*ends)[name] = type == "int" || type == "str" ? value["value"] : Json();
}

class MegatronGolden : public SoundGoldenCase {
 protected:
  MegatronGolden() : SoundGoldenCase("megatron") {}
};

TEST_P(MegatronGolden, HoldsTheTensorsThatWereSaved) {
  EXPECT_EQ(checkpoint_->opened().format_name(), "megatron");
  const plan::Catalog& catalog = checkpoint_->catalog();
  ASSERT_EQ(catalog.tensors.size(), expected_["tensors"].size());
  for (const auto& [name, tensor] : expected_["tensors"].items()) {
    const Result<size_t> found = checkpoint_->find_tensor(name, -1);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(dtype_name(catalog.tensors[*found].dtype), tensor["dtype"].get<std::string>());
    const bool is_flat = expected_.contains("flattened") && expected_["flattened"].contains(name);
    const Json whole = is_flat ? expected_["flattened"][name] : Json();
    const Json shape(
        std::vector<int64_t>(catalog.shape(*found).begin(), catalog.shape(*found).end()));
    EXPECT_EQ(shape, is_flat ? whole["original_shape"] : tensor["shape"]) << name;
    const auto digest = sha256(*checkpoint_, name);
    ASSERT_TRUE(digest.ok()) << digest.status().to_string();
    const Json& listed = is_flat ? whole["original_sha256"] : tensor["sha256"];
    EXPECT_EQ(*digest, listed.get<std::string>()) << name;
  }
}

TEST_P(MegatronGolden, HoldsTheCommonStateAsEntries) {
  Json ends = Json::object();
  if (expected_["common_in"] == "common.pt") add_ends(expected_["common"], "common", &ends);
  const plan::Catalog& catalog = checkpoint_->catalog();
  EXPECT_EQ(catalog.objects.size(), expected_["objects"].size() + ends.size());
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    const std::string name(catalog.object_name(i));
    EXPECT_TRUE(ends.contains(name) || expected_["objects"].contains(name)) << name;
    const std::string text = object_text(i);
    if (!ends.contains(name) || ends[name].is_null()) continue;
    const Json& end = ends[name];
    EXPECT_EQ(end.is_string() && Json::parse(text).is_number() ? Json(text) : Json::parse(text),
              end)
        << name;
  }
}

TEST_P(MegatronGolden, IsWhole) {
  expect_whole();
}

TEST_P(MegatronGolden, OpensFromWhatAnotherRankRead) {
  const format::FormatTable table;
  const auto path = directory_ / expected_["path"].get<std::string>();
  const format::Location location{storage::make_posix_storage(path), ""};
  format::StoredMetadata metadata;
  const auto first = table.open(location, &metadata);
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  const auto second = table.open_shared(location, metadata);
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_EQ((*first)->identity(), (*second)->identity());
  EXPECT_EQ((*first)->catalog().objects.size(), (*second)->catalog().objects.size());
  metadata.bytes.resize(metadata.bytes.size() - 1);
  EXPECT_EQ(table.open_shared(location, metadata).status().code(), StatusCode::kDataLoss);
}

INSTANTIATE_TEST_SUITE_P(All, MegatronGolden, testing::ValuesIn(golden_cases("megatron")),
                         [](const auto& each) { return each.param; });

// A copy of the directory by 0.16 that may be damaged.
class DamagedMegatron : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& file :
         std::filesystem::directory_iterator(golden_directory("megatron") / "mc16_tp2_w2/ckpt")) {
      std::ifstream stream(file.path(), std::ios::binary);
      put(file.path().filename(), {std::istreambuf_iterator<char>(stream), {}});
    }
  }
  void put(const std::string& name, const std::string& bytes) {
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreateVisible;
    const std::string key = "c/" + name;
    ASSERT_TRUE(storage_->remove(key).ok());
    const auto object = storage_->open(key, options);
    ASSERT_TRUE(object.ok()) << object.status().to_string();
    ASSERT_TRUE((*object)->write_at(0, std::as_bytes(std::span(bytes))).ok());
    ASSERT_TRUE((*object)->close().ok());
  }
  auto open() { return format::FormatTable().open({storage_, "c"}); }
  void expect_refused(std::string_view file, StatusCode code) {
    const Status status = open().status();
    EXPECT_EQ(status.code(), code) << status.to_string();
    EXPECT_EQ(status.detail("file"), file) << status.to_string();
  }

  std::shared_ptr<storage::Storage> storage_ = storage::make_memory_storage();
};

TEST_F(DamagedMegatron, ADeepVerificationComparesWhatIsListed) {
  const auto runtime = std::move(*Runtime::create({}));
  const auto damage = [&](bool deep) {
    const auto checkpoint = Checkpoint::open(*runtime, {storage_, "c"});
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().to_string();
    return (*checkpoint)->find_damage(deep, CallContext())->damage;
  };
  EXPECT_TRUE(damage(true).empty());
  put("integrity.json", R"({"algorithm":"sha256","files":{"common.pt":")" + std::string(64, '0') +
                            R"(","gone":")" + std::string(64, '1') + R"("}})");
  EXPECT_TRUE(damage(false).empty());
  const auto found = damage(true);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].file, "common.pt");
  EXPECT_EQ(found[1].file, "gone");
}

TEST_F(DamagedMegatron, NamesTheFileThatIsNotThere) {
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(storage_->remove("c/common.pt").ok());
  expect_refused("common.pt", StatusCode::kDataLoss);
  ASSERT_TRUE(storage_->remove("c/.metadata").ok());
  expect_refused(".metadata", StatusCode::kDataLoss);
}

TEST_F(DamagedMegatron, NamesTheFileThatIsNoneOfItsKind) {
  put("metadata.json", std::string(70000, ' ') + "{}");
  expect_refused("metadata.json", StatusCode::kDataLoss);
  put("metadata.json", R"({"sharded_backend":"zarr","sharded_backend_version":1})");
  expect_refused("metadata.json", StatusCode::kUnimplemented);
}

TEST_F(DamagedMegatron, WithoutItsMarkerIsIncompleteAndOpensAsTorchDcp) {
  ASSERT_TRUE(storage_->remove("c/metadata.json").ok());
  const Status incomplete = open().status();
  EXPECT_EQ(incomplete.code(), StatusCode::kNotFound);
  EXPECT_NE(incomplete.message().find("incomplete"), std::string::npos) << incomplete.message();
  EXPECT_NE(incomplete.detail("hint").find("--as torch_dcp"), std::string::npos);
  const auto data = format::FormatTable().open({storage_, "c"}, nullptr, "torch-dcp");
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  EXPECT_EQ((*data)->format_name(), "torch-dcp");
}

TEST_F(DamagedMegatron, OpensAsTorchDcpBesideItsMarkerWhereThatIsAskedFor) {
  const auto data = format::FormatTable().open({storage_, "c"}, nullptr, "torch-dcp");
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  EXPECT_EQ((*data)->format_name(), "torch-dcp");
  EXPECT_LT((*data)->catalog().objects.size(), (*open())->catalog().objects.size());
}

// A pickle whose value is what os.system gives: it is given as a pickle, and nobody runs it.
TEST_F(DamagedMegatron, NeverRunsWhatACommonFileSays) {
  constexpr char kCalls[] =
      "\x80\x02}X\x04\x00\x00\x00"
      "argscposix\nsystem\nX\x0e\x00\x00\x00touch hostile_\x85Rs.";
  const std::string_view pickle(kCalls, sizeof(kCalls) - 1);
  const auto archive = format::torch_dcp::wrap_value(format::torch_dcp::Framing::kStock,
                                                     std::as_bytes(std::span(pickle)));
  ASSERT_TRUE(archive.ok());
  put("common.pt", {reinterpret_cast<const char*>(archive->data()), archive->size()});
  const auto opened = open();
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const plan::Catalog& catalog = (*opened)->catalog();
  bool found = false;
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    if (catalog.object_name(i) != "common.args") continue;
    found = true;
    EXPECT_EQ(catalog.texts.at(catalog.objects[i].content_type), "application/python-pickle");
  }
  EXPECT_TRUE(found);
  EXPECT_FALSE(std::filesystem::exists("hostile_"));
}

TEST_F(DamagedMegatron, RefusesACommonFileThatIsDamaged) {
  put("common.pt", "PK\x03\x04 and no more");
  expect_refused("common.pt", StatusCode::kDataLoss);
}

TEST_F(DamagedMegatron, SeesThatTheMarkerWasReplaced) {
  const auto opened = open();
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE((*opened)->check_manifest().ok());
  put("metadata.json", R"({"sharded_backend":"torch_dist","sharded_backend_version":1})");
  EXPECT_EQ((*opened)->check_manifest().code(), StatusCode::kAborted);
  ASSERT_TRUE(storage_->remove("c/metadata.json").ok());
  EXPECT_EQ((*opened)->check_manifest().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace shardwright::exec
