// SPDX-License-Identifier: Apache-2.0
//
// Reshards of the checkpoints in tests/golden/megatron_reshard, and a look at what they made.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/reshard/reshard.h"
#include "core/storage/backends.h"
#include "tests/golden/golden_case.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::reshard::test {

class GoldenReshard : public testing::Test {
 protected:
  format::Location source(const std::string& name) {
    const auto path = exec::test::golden_directory("megatron_reshard") / name / "ckpt";
    return {storage::make_posix_storage(path), "", path.string(), path.string()};
  }
  format::Location target(const std::string& name = "target") {
    const auto path = std::filesystem::path(directory_.path()) / name;
    return {storage::make_posix_storage(path), "", path.string(), path.string()};
  }
  Result<exec::Report> run(const std::string& name, const ReshardOptions& options,
                           const std::string& to = "target") {
    return reshard(*reading_, *writing_, source(name), target(to), options, exec::CallContext());
  }
  // Of what an earlier run made.
  Result<exec::Report> run_again(const std::string& from, const ReshardOptions& options,
                                 const std::string& to) {
    return reshard(*reading_, *writing_, target(from), target(to), options, exec::CallContext());
  }
  std::shared_ptr<const exec::Checkpoint> opened(const format::Location& place) {
    auto checkpoint = exec::Checkpoint::open(*reading_, place);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().to_string();
    return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
  }
  bool is_there(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::path(directory_.path()) / name);
  }
  // Packed elements of a box.
  static std::vector<std::byte> read(const exec::Checkpoint& from, size_t tensor, const Box& box) {
    exec::BoxRead read;
    read.tensor = tensor;
    read.box = box;
    read.target.dtype = from.catalog().tensors[tensor].dtype;
    read.target.shape = box.sizes;
    std::vector<std::byte> bytes(static_cast<size_t>(
        box_element_count(box) * static_cast<int64_t>(dtype_bits(read.target.dtype)) / 8));
    read.target.data = bytes.data();
    const auto done = from.read_boxes({&read, 1}, {}, exec::CallContext());
    EXPECT_TRUE(done.ok()) << done.status().to_string();
    return bytes;
  }
  static ReshardOptions to_shape(int64_t tensor, int64_t pipeline = 0, int64_t expert = 0) {
    ReshardOptions options;
    options.target.shape = {tensor, pipeline, expert, 1};
    return options;
  }
  void expect_digests(const std::string& name, const std::string& to = "target") {
    std::ifstream stream(exec::test::golden_directory("megatron_reshard") / name / "digests.json");
    const auto expected = nlohmann::json::parse(stream);
    const auto made = exec::Checkpoint::open(*reading_, target(to));
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    EXPECT_EQ((*made)->catalog().tensors.size(), expected.size());
    for (const auto& [tensor, said] : expected.items()) {
      const auto number = (*made)->find_tensor(tensor, -1);
      ASSERT_TRUE(number.ok()) << number.status().to_string();
      const auto digest = (*made)->tensor_digest(*number, integrity::TensorDigestAlgorithm::kXxh3,
                                                 exec::CallContext());
      ASSERT_TRUE(digest.ok()) << digest.status().to_string();
      EXPECT_EQ(to_hex(*digest), said["digest"].get<std::string>()) << tensor;
    }
  }
  std::string text_of(const std::string& object, const std::string& to = "target") {
    const auto made = exec::Checkpoint::open(*reading_, target(to));
    const auto number = (*made)->find_object(object, -1);
    if (!number.ok()) return "absent";
    const auto bytes = (*made)->read_object(*number, {});
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }

  shardwright::test::TemporaryDirectory directory_;
  std::unique_ptr<exec::Runtime> reading_ = std::move(*exec::Runtime::create({}));
  std::unique_ptr<exec::Runtime> writing_ = std::move(*exec::Runtime::create({}));
};

}  // namespace shardwright::reshard::test
