// SPDX-License-Identifier: Apache-2.0
//
// `shardwright remove`: what goes, what stays, and that nothing does without --apply.
#include <filesystem>
#include <map>

#include "tests/cli/program_fixture.h"

namespace shardwright::cli::test {
namespace {

class RemoveProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    sources_.push_back(source<uint8_t>("layers.10.weight", SHW_UINT8, {3}, {1, 2, 3}));
    save("native");
    ASSERT_EQ(run("convert native dcp --to torch-dcp --max-shard-size 1000").code, 0);
    ASSERT_EQ(run("convert native meg --to megatron --integrity sha256 --max-shard-size 1000").code,
              0);
  }

  std::map<std::string, std::string> files(const std::string& name) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path(name)))
      found[entry.path().filename()] = file_text(entry.path());
    found.erase(".lock");
    return found;
  }
};

TEST_F(RemoveProgram, SaysFirstWhatWouldGo) {
  const auto before = files("dcp");
  const Outcome outcome = run("remove dcp --prefix large");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "would remove large  ");
  EXPECT_HAS(outcome.out, "1 entry, and 1 file of ");
  EXPECT_HAS(outcome.out, "to remove: shardwright remove --apply --prefix large dcp");
  EXPECT_EQ(files("dcp"), before);
  const Json json = run_json("remove dcp --prefix la");
  EXPECT_EQ(json["applied"], false);
  EXPECT_EQ(json["files"], 1);
  EXPECT_EQ(json["removed"].size(), 4U) << "layers and large";
  EXPECT_EQ(files("dcp"), before);
}

TEST_F(RemoveProgram, TakesEntriesAndTheirFilesAndLeavesTheRest) {
  for (const std::string name : {"dcp", "meg"}) {
    Json digests = run_json("digest " + name);
    const size_t count = files(name).size();
    const Outcome outcome = run("remove " + name + " --prefix large --apply");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_HAS(outcome.out, "removed large  ");
    digests.erase("large");
    EXPECT_EQ(run_json("digest " + name), digests);
    EXPECT_EQ(files(name).size(), count - 1);
    const Json verified = run_json("verify --deep " + name);
    EXPECT_TRUE(verified["damage"].empty());
    EXPECT_EQ(verified["digests"], true);
    EXPECT_EQ(run("diff native " + name + " --no-values --json --no-objects").code, 1);
    const Outcome again = run("remove " + name + " --prefix large --apply");
    EXPECT_EQ(again.code, 2);
    EXPECT_HAS(again.err, "no entry");
  }
  const auto listed = Json::parse(files("meg").at("integrity.json"))["files"];
  for (const auto& [name, text] : files("meg"))
    EXPECT_EQ(listed.contains(name), name != "integrity.json") << name;
  EXPECT_EQ(listed.size() + 1, files("meg").size());
}

TEST_F(RemoveProgram, TakesWholePartsOfNamesWhereThatIsWanted) {
  EXPECT_EQ(run_json("remove dcp --prefix layers.1")["removed"].size(), 2U);
  EXPECT_EQ(run_json("remove dcp --prefix layers.1 --whole-parts")["removed"].size(), 1U);
  EXPECT_EQ(run_json("remove dcp --prefix layers. --whole-parts")["removed"].size(), 3U);
  EXPECT_EQ(run("remove dcp --prefix layer --whole-parts").code, 2);
  EXPECT_EQ(run("remove dcp --prefix blob --apply").code, 0);
  EXPECT_EQ(run_json("ls dcp")["objects"].size(), 1U);
  EXPECT_EQ(run("verify --deep dcp").code, 0);
}

TEST_F(RemoveProgram, RefusesWhatHasNoSuchIndex) {
  const auto before = run_json("digest native");
  const Outcome outcome = run("remove native --prefix large --apply");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_HAS(outcome.err, "torch-dcp and megatron");
  EXPECT_EQ(run_json("digest native"), before);
  EXPECT_EQ(run("remove nowhere --prefix a").code, 2);
  EXPECT_EQ(run("remove dcp").code, 2);
  EXPECT_EQ(run("remove dcp --prefix ''").code, 2);
}

}  // namespace
}  // namespace shardwright::cli::test
