// SPDX-License-Identifier: Apache-2.0
//
// `shardwright convert` of a directory that Megatron-core's zarr backend wrote, which no other
// command reads.
#include <filesystem>
#include <fstream>

#include "tests/cli/program_fixture.h"

namespace shardwright::cli::test {
namespace {

class ConvertZarrProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("old/metadata.json", R"({"sharded_backend": "zarr", "sharded_backend_version": 1})");
    write("old/w/.zarray",
          R"({"zarr_format": 2, "shape": [3], "chunks": [2], "dtype": "<f4", "order": "C",)"
          R"( "compressor": null, "filters": null, "fill_value": null})");
    write("old/w/0", std::string("\0\0\x80\x3f\0\0\0\x40", 8));
    write("old/w/1", std::string("\0\0\x40\x40\xff\xff\xff\xff", 8));
  }
  void write(const std::string& name, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
};

TEST_F(ConvertZarrProgram, SavesItInEachFormat) {
  for (const std::string format : {"native", "torch-dcp", "megatron", "safetensors"}) {
    const Outcome made = run("convert old " + format + " --to " + format);
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_HAS(made.out, "1 tensor of 12 B in 1 file");
    EXPECT_HAS(run("show " + format + " w").out, "3");
    EXPECT_EQ(run("digest " + format).out, run("digest native").out);
  }
  EXPECT_EQ(run("diff native safetensors").code, 0);
}

TEST_F(ConvertZarrProgram, OtherCommandsSayWhatToDo) {
  for (const char* command : {"info", "ls", "verify", "digest"}) {
    const Outcome refused = run(std::string(command) + " old");
    EXPECT_NE(refused.code, 0) << command;
    EXPECT_HAS(refused.err, "shardwright convert");
  }
}

TEST_F(ConvertZarrProgram, NamesTheChunkThatIsDamaged) {
  write("old/w/1", "short");
  const Outcome refused = run("convert old new");
  EXPECT_NE(refused.code, 0);
  EXPECT_HAS(refused.err, "w/1");
  EXPECT_FALSE(std::filesystem::exists(path("new/manifest.shw")));
}

}  // namespace
}  // namespace shardwright::cli::test
