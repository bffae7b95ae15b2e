// SPDX-License-Identifier: Apache-2.0
//
// The program over real checkpoints: what it prints, where, and its exit code.
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
namespace {

using Json = nlohmann::json;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// One tensor to be stored.
struct Source {
  std::string name;
  uint8_t code;
  uint8_t bits;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

template <typename T>
Source source(std::string name, uint8_t code, std::vector<int64_t> shape,
              const std::vector<T>& values) {
  Source result{std::move(name), code, sizeof(T) * 8, std::move(shape), {}};
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
    sources_ = {source<float>("layers.0.weight", SHW_DTYPE_FLOAT, {8, 6}, weight),
                source<float>("layers.1.weight", SHW_DTYPE_FLOAT, {8, 6}, weight),
                source<int32_t>("large", SHW_DTYPE_INT, {3000}, large),
                source<int64_t>("step", SHW_DTYPE_INT, {}, {42}),
                source<uint16_t>("odd[0]", SHW_DTYPE_BFLOAT, {2}, {0x3F80, 0x4000}),
                source<uint8_t>("bad\x1b[31mname\n", SHW_DTYPE_BOOL, {2}, {1, 0})};
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
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
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

 private:
  void add_tensors(shw_state* state) {
    Texts names;
    std::vector<shw_tensor> tensors;
    for (Source& each : sources_) {
      names.add(each.name);
      shw_tensor tensor = SHW_TENSOR_INIT;
      tensor.data = each.bytes.data();
      tensor.dtype_code = each.code;
      tensor.dtype_bits = each.bits;
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
    names.add("config");
    data.add("{\"lr\":0.1}");
    types.add("application/json");
    names.add("blob");
    data.add(std::string_view("\x00\xff\x10", 3));
    types.add("application/octet-stream");
    shw_object_batch batch = SHW_OBJECT_BATCH_INIT;
    batch.count = 2;
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

TEST_F(Program, InfoDescribesACheckpoint) {
  const Outcome outcome = run("info ckpt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "native, generation ");
  EXPECT_HAS(outcome.out, "by 1 rank");
  EXPECT_HAS(outcome.out, "6 in 6 chunks");
  EXPECT_HAS(outcome.out, "step = 100");
  const Json json = run_json("info ckpt");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["counts"]["tensors"], 6);
  EXPECT_EQ(json["metadata"]["step"], "100");
  EXPECT_FALSE(json.contains("tensors"));
}

TEST_F(Program, InfoListsTheStepsOfARun) {
  save("run/step-00000100");
  save("run/step-00000200");
  std::filesystem::resize_file(data_file("run/step-00000200"), 10);
  const Outcome outcome = run("info run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "step-00000100  whole, newest whole");
  EXPECT_HAS(outcome.out, "step-00000200  damaged");
  EXPECT_HAS(outcome.out, "newest whole step: step-00000100");
  const Json json = run_json("info run");
  EXPECT_EQ(json["newest_whole"], "step-00000100");
  EXPECT_EQ(json["steps"].size(), 2U);
}

TEST_F(Program, LsListsEntriesAndEscapesTheirNames) {
  const Outcome outcome = run("ls ckpt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "float32   [8, 6]");
  EXPECT_HAS(outcome.out, "bad\\x1b[31mname\\x0a");
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_HAS(outcome.out, "application/json");
  const Outcome some = run("ls ckpt 'layers.*'");
  EXPECT_EQ(std::count(some.out.begin(), some.out.end(), '\n'), 2);
  const Json json = run_json("ls ckpt");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["tensors"].size(), 6U);
  EXPECT_EQ(json["objects"].size(), 2U);
  EXPECT_EQ(json["tensors"][0]["name"], "bad\x1b[31mname\n") << "ascending by name";
  EXPECT_EQ(json["tensors"][2]["shape"], Json({8, 6}));
  EXPECT_EQ(json["tensors"][2]["bytes"], 192);
}

TEST_F(Program, TreeFoldsEqualLayers) {
  const Outcome outcome = run("tree ckpt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "{0..1}");
  EXPECT_EQ(run("tree --all ckpt").out.find("{0..1}"), std::string::npos);
  const Json json = run_json("tree ckpt --depth 1");
  EXPECT_EQ(json["entries"], 8);
  for (const Json& child : json["children"]) EXPECT_FALSE(child.contains("children"));
}

TEST_F(Program, ShowPrintsNumbersAsNumpyDoes) {
  EXPECT_EQ(run("show ckpt 'layers.0.weight[1:3, ::2]'").out,
            "layers.0.weight: float32 [8, 6], 192 B, slice [1:3, 0:5:2]\n"
            "[[1.5 2.  2.5]\n"
            " [3.  3.5 4. ]]\n");
  EXPECT_EQ(run("show ckpt step").out, "step: int64 [], 8 B\n42\n");
  EXPECT_EQ(run("show ckpt large").out,
            "large: int32 [3000], 11.72 KiB\n[   0    1    2 ... 2997 2998 2999]\n");
  EXPECT_EQ(run("show ckpt 'large[-2:]'").out,
            "large: int32 [3000], 11.72 KiB, slice [2998:3000]\n[2998 2999]\n");
}

TEST_F(Program, ShowPrefersTheLongestName) {
  EXPECT_HAS(run("show ckpt 'odd[0]'").out, "[1. 2.]");
  EXPECT_HAS(run("show ckpt 'odd[0][1]'").out, "slice [1]\n2.0\n");
  EXPECT_HAS(run("show ckpt 'odd[0]' --slice '[0]'").out, "slice [0]\n1.0\n");
}

TEST_F(Program, ShowGivesJsonAndObjects) {
  const Json json = run_json("show ckpt 'layers.0.weight[7, 4:]'");
  EXPECT_EQ(json["values"], Json({11.5, 11.75}));
  EXPECT_EQ(json["slice_shape"], Json({2}));
  EXPECT_EQ(json["shape"], Json({8, 6}));
  EXPECT_HAS(run("show ckpt config").out, "{\"lr\":0.1}");
  EXPECT_EQ(run_json("show ckpt config")["value"]["lr"], 0.1);
  EXPECT_HAS(run("show ckpt blob").out, "00 ff 10");
  EXPECT_EQ(run_json("show ckpt blob")["hex"], "00ff10");
}

TEST_F(Program, ShowExplainsWhatDoesNotFit) {
  const Outcome absent = run("show ckpt layers.0.weigth");
  EXPECT_EQ(absent.code, 2);
  EXPECT_HAS(absent.err, "error: cannot find the entry (NOT_FOUND)");
  EXPECT_HAS(absent.err, "layers.0.weight");
  EXPECT_EQ(absent.out, "");
  const Outcome slice = run("show ckpt 'layers.0.weight[9]'");
  EXPECT_EQ(slice.code, 2);
  EXPECT_HAS(slice.err, "index 9 is outside a dimension of 8");
  EXPECT_HAS(slice.err, "next: ");
}

TEST_F(Program, VerifyTellsWholeFromDamaged) {
  const Outcome structure = run("verify ckpt");
  EXPECT_EQ(structure.code, 0) << structure.err;
  EXPECT_HAS(structure.out, "payload not read");
  EXPECT_EQ(run("verify --deep ckpt").code, 0);
  EXPECT_EQ(run_json("verify --deep ckpt")["whole"], true);
  damage(data_file("ckpt"), 4096 + 10);
  EXPECT_EQ(run("verify ckpt").code, 0);
  const Outcome deep = run("verify --deep ckpt");
  EXPECT_EQ(deep.code, 1);
  EXPECT_HAS(deep.out, "damaged: 1 finding");
  const Json json = run_json("verify --deep ckpt", 1);
  EXPECT_EQ(json["whole"], false);
  ASSERT_EQ(json["damage"].size(), 1U);
  EXPECT_NE(json["damage"][0]["tensor"], "");
  EXPECT_HAS(json["damage"][0]["file"].get<std::string>(), "rank-00000.shw");
}

TEST_F(Program, ADamagedManifestIsDamage) {
  damage(path("ckpt/manifest.shw"), 100);
  for (const std::string command : {"info", "verify", "ls"}) {
    const Outcome outcome = run(command + " ckpt");
    EXPECT_EQ(outcome.code, 1) << command << outcome.err;
    EXPECT_HAS(outcome.err, "DATA_LOSS");
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(Program, DigestsAreEqualForEqualTensors) {
  save("other");
  const Outcome first = run("digest ckpt");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, run("digest other").out);
  const Json json = run_json("digest ckpt");
  ASSERT_TRUE(json.contains("layers.0.weight"));
  EXPECT_EQ(json["layers.0.weight"]["dtype"], "float32");
  EXPECT_EQ(json["layers.0.weight"]["shape"], Json({8, 6}));
  EXPECT_EQ(json["layers.0.weight"]["digest"], json["layers.1.weight"]["digest"]);
  EXPECT_EQ(json["layers.0.weight"]["digest"].get<std::string>().size(), 32U);
  const Json sha = run_json("digest ckpt --algorithm sha256");
  EXPECT_EQ(sha["step"]["digest"].get<std::string>().size(), 64U);
  // SHA-256 of the eight bytes of 42.
  EXPECT_EQ(sha["step"]["digest"],
            "ed049108bc18f2c64369e8d0ea42850bdd1a7d1dd340cfde716315579702a76c");
  EXPECT_EQ(run("digest ckpt --algorithm md5").code, 2);
}

TEST_F(Program, GcIsADryRunUntilToldOtherwise) {
  const std::string orphan = path("ckpt/0123456789abcdef0123456789abcdef");
  std::filesystem::create_directory(orphan);
  std::ofstream(orphan + "/rank-00000.shw") << "left behind";
  EXPECT_HAS(run("gc ckpt").out, "0 generations");
  const Outcome dry = run("gc ckpt --grace-hours 0");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_HAS(dry.out, "would remove 0123456789abcdef0123456789abcdef  11 B");
  EXPECT_HAS(dry.out, "shardwright gc --apply ckpt");
  EXPECT_TRUE(std::filesystem::exists(orphan));
  const Json json = run_json("gc ckpt --grace-hours 0 --apply");
  EXPECT_EQ(json["applied"], true);
  EXPECT_EQ(json["removed"].size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(orphan + "/rank-00000.shw"));
  EXPECT_EQ(run("verify --deep ckpt").code, 0);
}

TEST_F(Program, VersionSaysWhatWasBuilt) {
  EXPECT_HAS(run("version").out, std::string("shardwright ") + shw_version_string());
  const Json json = run_json("version");
  EXPECT_EQ(json["version"], shw_version_string());
  EXPECT_EQ(run("--version").out, std::string("shardwright ") + shw_version_string() + "\n");
}

TEST_F(Program, ErrorsHaveFourPartsOnStderr) {
  const Outcome outcome = run("info nowhere");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  for (const std::string part :
       {"error: cannot open the checkpoint (NOT_FOUND)", "where: nowhere", "cause: ", "next: "}) {
    EXPECT_HAS(outcome.err, part);
  }
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << "no colour off a terminal";
  EXPECT_EQ(run("frobnicate").code, 2);
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("info").code, 2);
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("verify --help").code, 0);
}

TEST_F(Program, RefusesLinksForSafety) {
  const std::string file = data_file("ckpt");
  std::filesystem::rename(file, path("elsewhere"));
  std::filesystem::create_symlink(path("elsewhere"), file);
  EXPECT_EQ(run("verify --deep ckpt").code, 4) << run("verify --deep ckpt").err;
}

TEST_F(Program, AnswersInAScriptWithFewThreadsAndLittleMemory) {
  EXPECT_EQ(run("digest ckpt --threads 1 --memory 8MiB").out, run("digest ckpt").out);
  EXPECT_EQ(run("digest ckpt --threads -1").code, 2);
  EXPECT_EQ(run("digest ckpt --memory lots").code, 2);
}

}  // namespace
}  // namespace shardwright::cli
