// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests that run the program: a checkpoint "ckpt" of six tensors and two objects in
// a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/handles.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::cli {

using Json = nlohmann::json;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// One tensor to be stored.
struct Source {
  std::string name;
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

struct StoredObject {
  std::string name;
  std::string text;
  std::string content_type;
};

template <typename T>
Source source(std::string name, int32_t dtype, std::vector<int64_t> shape,
              const std::vector<T>& values) {
  Source result{std::move(name), dtype, std::move(shape), {}};
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  result.bytes.assign(bytes, bytes + values.size() * sizeof(T));
  return result;
}

// Texts back to back with their offsets, as the batches want them.
struct Texts {
  std::string blob;
  std::vector<uint64_t> offsets{0};
  void add(std::string_view text) {
    blob += text;
    offsets.push_back(blob.size());
  }
};

class Program : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<float> weight(8 * 6);
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i) / 4;
    std::vector<int32_t> large(3000);
    for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<int32_t>(i);
    sources_ = {source<float>("layers.0.weight", SHW_FLOAT32, {8, 6}, weight),
                source<float>("layers.1.weight", SHW_FLOAT32, {8, 6}, weight),
                source<int32_t>("large", SHW_INT32, {3000}, large),
                source<int64_t>("step", SHW_INT64, {}, {42}),
                source<uint16_t>("odd[0]", SHW_BFLOAT16, {2}, {0x3F80, 0x4000}),
                source<uint8_t>("bad\x1b[31mname\n", SHW_BOOL, {2}, {1, 0})};
    save("ckpt");
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  void save(const std::string& name) {
    Context context = made_by<shw_context, shw_context_release>(
        [](shw_context** out, shw_error** error) {
          return shw_context_create(nullptr, out, error);
        },
        "", "");
    using State = Owner<shw_state, shw_state_release>;
    State state = made_by<shw_state, shw_state_release>(
        [](shw_state** out, shw_error** error) { return shw_state_create(out, error); }, "", "");
    add_tensors(state.get());
    add_objects(state.get());
    Texts metadata;
    metadata.add("step");
    metadata.add("100");
    shw_save_options options = SHW_SAVE_OPTIONS_INIT;
    options.metadata = metadata.blob.data();
    options.metadata_offsets = metadata.offsets.data();
    options.metadata_count = 1;
    const Report report = made_by<shw_report, shw_report_release>(
        [&](shw_report** out, shw_error** error) {
          return shw_save(context.get(), state.get(), nullptr, path(name).c_str(), nullptr,
                          &options, out, error);
        },
        "", "");
  }

  // Runs the program with a shell line behind its name.
  Outcome run(const std::string& arguments, const std::string& environment = "") {
    const std::string out = path("stdout");
    const std::string err = path("stderr");
    const std::string line = "cd " + directory_.path() + " && " + environment +
                             " '" SHW_CLI_PROGRAM "' " + arguments + " >" + out + " 2>" + err;
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, file_text(out), file_text(err)};
  }

  Json run_json(const std::string& arguments, int code = 0) {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.code, code) << outcome.err;
    Json json = Json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << outcome.out;
    return json;
  }

  std::string data_file(const std::string& name) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path(name))) {
      if (entry.path().filename() == "rank-00000.shw") return entry.path();
    }
    return "";
  }

  void damage(const std::string& file, int64_t offset) {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekg(offset);
    const auto byte = static_cast<char>(stream.get() ^ 0x40);
    stream.seekp(offset);
    stream.put(byte);
  }

  shardwright::test::TemporaryDirectory directory_;
  std::vector<Source> sources_;
  std::vector<StoredObject> objects_ = {
      {"config", "{\"lr\":0.1}", "application/json"},
      {"blob", std::string("\x00\xff\x10", 3), "application/octet-stream"}};

 private:
  void add_tensors(shw_state* state) {
    Texts names;
    std::vector<shw_tensor> tensors;
    for (Source& each : sources_) {
      names.add(each.name);
      shw_tensor tensor = SHW_TENSOR_INIT;
      tensor.data = each.bytes.data();
      tensor.dtype = each.dtype;
      tensor.ndim = static_cast<int32_t>(each.shape.size());
      tensor.shape = each.shape.data();
      tensors.push_back(tensor);
    }
    shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
    batch.count = tensors.size();
    batch.names = names.blob.data();
    batch.name_offsets = names.offsets.data();
    batch.tensors = tensors.data();
    shw_error* error = nullptr;
    const shw_status status = shw_state_add_tensors(state, &batch, &error);
    require(status, Error(error), "", "");
  }

  void add_objects(shw_state* state) {
    Texts names;
    Texts data;
    Texts types;
    for (const StoredObject& object : objects_) {
      names.add(object.name);
      data.add(object.text);
      types.add(object.content_type);
    }
    shw_object_batch batch = SHW_OBJECT_BATCH_INIT;
    batch.count = objects_.size();
    batch.names = names.blob.data();
    batch.name_offsets = names.offsets.data();
    batch.data = data.blob.data();
    batch.data_offsets = data.offsets.data();
    batch.content_types = types.blob.data();
    batch.content_type_offsets = types.offsets.data();
    shw_error* error = nullptr;
    const shw_status status = shw_state_add_objects(state, &batch, &error);
    require(status, Error(error), "", "");
  }
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace shardwright::cli
