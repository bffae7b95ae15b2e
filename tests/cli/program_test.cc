// SPDX-License-Identifier: Apache-2.0
//
// The program over real checkpoints: what it prints, where, and its exit code.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/cli/program_fixture.h"

namespace shardwright::cli {
namespace {

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

TEST_F(Program, VerifySaysWhyAFileIsDamaged) {
  const std::string file = data_file("ckpt");
  const auto size = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, size - 1);
  const std::string reason = "the file has " + std::to_string(size - 1) +
                             " bytes, the manifest names " + std::to_string(size);
  const Outcome cut = run("verify ckpt");
  EXPECT_EQ(cut.code, 1);
  EXPECT_HAS(cut.out, reason);
  EXPECT_HAS(run_json("verify ckpt", 1)["damage"][0]["message"].get<std::string>(), reason);
  const Outcome read = run("digest ckpt");
  EXPECT_EQ(read.code, 1);
  EXPECT_EQ(read.err.find(reason), read.err.rfind(reason)) << "said once: " << read.err;
}

// What a user is told to do next must be possible, and must not be what just failed.
TEST_F(Program, HintsNameACommandThatHelps) {
  save("run/step-00000100");
  save("cut");
  std::filesystem::resize_file(data_file("cut"), 5000);
  std::filesystem::create_directory(path("empty"));
  std::ofstream(path("a.h5")) << "\x89HDF\r\n\x1a\n of another library";
  std::ofstream(path("cut.safetensors")) << std::string("\x09\0\0\0\0\0\0\0{}", 10);
  save("torn");
  damage(path("torn/manifest.shw"), 100);
  const std::string steps = "shardwright info RUN lists the steps of a run";
  const struct {
    std::string arguments, next;
  } rows[] = {
      {"show ckpt nope", "next: see names, dtypes and shapes: shardwright ls ckpt\n"},
      {"show ckpt 'large[1'", "next: see names, dtypes and shapes: shardwright ls ckpt\n"},
      {"show ckpt 'large[5000]'", "shardwright show ckpt 'large[0:4]'\n"},
      {"show ckpt 'step[1]'", "next: it has no dimensions: leave the slice out\n"},
      {"show cut large", "see all damage: shardwright verify --deep cut; then load an earlier"},
      {"digest cut", "see all damage: shardwright verify --deep cut; then load an earlier"},
      {"verify torn", "next: load an earlier step; " + steps},
      {"info torn", "next: load an earlier step; " + steps},
      {"gc torn", "next: load an earlier step; " + steps},
      {"ls empty", "next: give a directory that holds manifest.shw; " + steps},
      {"info nowhere", "next: give a directory that holds manifest.shw; " + steps},
      {"gc nowhere", "next: give a directory that holds manifest.shw; " + steps},
      {"gc run", "next: give a directory that holds manifest.shw; " + steps},
      {"ls ckpt/manifest.shw", "next: give a directory that holds manifest.shw; " + steps},
      {"verify run",
       "next: open one of its directories, such as 'run/step-00000100'; `shardwright info` lists"},
      {"info a.h5", "next: load it with the tool that wrote it, and save it with"},
      {"info cut.safetensors", "next: copy or download the file again"},
      {"plan show ckpt/manifest.shw", "next: check the file, or make it again: shardwright plan"},
      {"ls ckpt 'nope*'", "next: see the names: shardwright ls ckpt\n"},
      {"digest ckpt 'nope*'", "next: see the names: shardwright ls ckpt\n"},
      {"verify --depth ckpt", "next: shardwright verify --help\n"},
      {"plan load", "next: shardwright plan load --help\n"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = run(row.arguments);
    EXPECT_NE(outcome.code, 0) << row.arguments;
    EXPECT_EQ(outcome.out, "") << row.arguments;
    EXPECT_HAS(outcome.err, row.next);
  }
}

TEST_F(Program, UnknownCommandsAreNamedWithTheNearest) {
  const struct {
    std::string arguments, what, next;
  } rows[] = {
      {"verfy --deep ckpt", "there is no command verfy", "next: shardwright verify --deep ckpt\n"},
      {"Show ckpt 'w[0]'", "there is no command Show", "next: shardwright show ckpt 'w[0]'\n"},
      {"--threads 2 digests ckpt", "no command digests",
       "next: shardwright --threads 2 digest ckpt\n"},
      {"frobnicate ckpt", "there is no command frobnicate", "next: shardwright --help\n"},
      {"plan laod ckpt", "there is no command laod", "next: shardwright plan load ckpt\n"},
      {"plan", "no command was given", "next: shardwright plan --help\n"},
      {"", "no command was given", "next: shardwright --help\n"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = run(row.arguments);
    EXPECT_EQ(outcome.code, 2) << row.arguments;
    EXPECT_HAS(outcome.err, row.what);
    EXPECT_HAS(outcome.err, row.next);
  }
  EXPECT_HAS(run("plan lod").err, "the commands of shardwright plan are save, load, ");
}

TEST_F(Program, SharedOptionsStandBeforeOrBehindTheCommand) {
  EXPECT_EQ(run("--json info ckpt").out, run("info --json ckpt").out);
  EXPECT_EQ(run("--threads 1 --memory 8MiB digest ckpt").out, run("digest ckpt").out);
}

TEST_F(Program, EveryJsonButThatOfDigestHasASchema) {
  ASSERT_EQ(run("plan load ckpt --out a.shwp").code, 0);
  for (const std::string arguments :
       {"info ckpt", "ls ckpt", "tree ckpt", "show ckpt large", "show ckpt config",
        "show ckpt blob", "verify ckpt", "verify --deep ckpt", "gc ckpt", "version",
        "plan load ckpt", "plan save ckpt", "plan describe ckpt", "plan show a.shwp",
        "plan validate a.shwp", "plan diff a.shwp a.shwp"}) {
    EXPECT_EQ(run_json(arguments)["schema"], 1) << arguments;
  }
  const Json digests = run_json("digest ckpt");
  EXPECT_EQ(digests.size(), 6U) << "names only";
  for (const auto& [name, facts] : digests.items()) {
    EXPECT_EQ(facts.size(), 3U) << name;
    EXPECT_TRUE(facts["dtype"].is_string() && facts["shape"].is_array() &&
                facts["digest"].is_string())
        << name;
  }
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

TEST_F(Program, ConvertSavesAgainInAnotherFormat) {
  const Outcome made = run("convert ckpt copy --max-shard-size 100");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_HAS(made.out, "equal to the source");
  EXPECT_EQ(run("digest copy").out, run("digest ckpt").out);
  EXPECT_HAS(run("convert ckpt copy --max-shard-size 100").out, "was converted before");
  const Outcome other = run("convert ckpt copy");
  EXPECT_EQ(other.code, 2);
  EXPECT_HAS(other.err, "already");
  EXPECT_EQ(run("convert ckpt copy --overwrite --mem 64MiB").code, 0);
  const Outcome trusted = run("convert ckpt trusted --no-compare");
  EXPECT_EQ(trusted.code, 0) << trusted.err;
  EXPECT_EQ(trusted.out.find("equal to the source"), std::string::npos);
  EXPECT_EQ(run("convert ckpt file --to megatron").code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("file/common.pt")));
  EXPECT_EQ(run("convert ckpt object --to megatron --common object").code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("object/common.pt")));
  EXPECT_EQ(run("verify object --deep").code, 0);
  EXPECT_EQ(run("convert ckpt listed --to megatron --integrity sha256").code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("listed/integrity.json")));
  EXPECT_EQ(run("verify listed --deep").code, 0);
  const Outcome unlisted = run("convert ckpt unlisted --integrity sha256");
  EXPECT_EQ(unlisted.code, 2);
  EXPECT_HAS(unlisted.err, "integrity 'off'");
  const Outcome bytes = run("convert ckpt files --format safetensors");
  EXPECT_EQ(bytes.code, 0) << bytes.err;
  EXPECT_EQ(run("digest files").out, run("digest ckpt").out);
  EXPECT_EQ(run("show files blob").out, run("show ckpt blob").out);
  for (const char* inside : {"convert ckpt ckpt", "convert ckpt ckpt/below"})
    EXPECT_HAS(run(inside).err, "nothing is written into a source");
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

std::string golden(std::string_view path) {
  const char* const source = std::getenv("SHW_SOURCE_DIR");
  const std::string root = source != nullptr ? source : std::filesystem::current_path().string();
  return root + "/tests/golden/" + std::string(path);
}

TEST_F(Program, ScanListsWhatPicklesWouldCallAndRefusesWhatIsNotKnown) {
  const Outcome sound = run("scan " + golden("torch_dcp/dcp_nested_single/ckpt"));
  EXPECT_EQ(sound.code, 0) << sound.err;
  EXPECT_HAS(sound.out, "0 imports not known");
  const std::string unsafe = golden("torch_dcp/bad_dcp_malicious_metadata/ckpt");
  const Outcome found = run("scan " + unsafe);
  EXPECT_EQ(found.code, 4) << found.err;
  EXPECT_HAS(found.out, "UNKNOWN posix.system: called 1 time  (.metadata at 1329)");
  EXPECT_EQ(run("info " + unsafe).code, 4);
  const Json json = Json::parse(run("scan --json " + unsafe).out);
  EXPECT_EQ(json["unknown"], 1);
  EXPECT_EQ(json["globals"][0]["module"], "posix");
  EXPECT_EQ(json["globals"][0]["offset"], 1329);
  EXPECT_EQ(run("scan nowhere").code, 2);
  EXPECT_EQ(run("scan ckpt").code, 0) << "ours has no pickles";
  std::ofstream(path("cut.pkl"), std::ios::binary) << "\x80\x02]q";
  EXPECT_EQ(run("scan cut.pkl").code, 1);
}

TEST_F(Program, ScanWritesCleanMetadataBeside) {
  const std::string unsafe = golden("torch_dcp/bad_dcp_malicious_item/ckpt");
  const std::string before = file_text(unsafe + "/.metadata");
  const Outcome cleaned = run("scan " + unsafe + " --sanitize clean");
  EXPECT_EQ(cleaned.code, 4) << "of the original: " << cleaned.err;
  EXPECT_HAS(cleaned.out, "left out: razanne.1");
  EXPECT_EQ(file_text(unsafe + "/.metadata"), before);
  const Outcome alone = run("scan clean/.metadata");
  EXPECT_EQ(alone.code, 0) << alone.out;
  EXPECT_EQ(run("ls clean").code, 0);
  EXPECT_EQ(run("scan " + unsafe + " --sanitize clean").code, 2) << "nothing is written over";
}

TEST_F(Program, ChecksumsOfArchivesAreComparedByDigestsAndVerification) {
  std::filesystem::copy(golden("torch_dcp/dcp_sharded_tensor_w2/ckpt"), path("flipped"));
  const std::string file = path("flipped/__0_0.distcp");
  std::string bytes = file_text(file);
  bytes[bytes.find("archive/data/0") + 76] ^= 1;  // where the payload begins
  std::ofstream(file, std::ios::binary) << bytes;
  const Outcome digest = run("digest flipped");
  EXPECT_EQ(digest.code, 1) << digest.out;
  EXPECT_HAS(digest.err, "CRC-32");
  EXPECT_HAS(digest.err, "__0_0.distcp");
  const Outcome verified = run("verify --deep flipped");
  EXPECT_EQ(verified.code, 1) << verified.out;
  EXPECT_HAS(verified.out, "CRC-32");
}

TEST_F(Program, EveryCommandTakesFilesAndDirectoriesOfTorch) {
  for (const char* place : {"torch_dcp/dcp_nested_single/ckpt", "torch_dcp/dcp_rank_local_w2/ckpt",
                            "torch_dcp/dcp_zstd_w2/ckpt", "torch_save/pt_nested/value.pt"}) {
    for (const char* command :
         {"info", "ls", "tree", "verify", "verify --deep", "digest", "scan"}) {
      const Outcome outcome = run(std::string(command) + " " + golden(place));
      EXPECT_EQ(outcome.code, 0) << command << " " << place << ": " << outcome.err;
      EXPECT_NE(outcome.out, "") << command << " " << place;
    }
  }
}

}  // namespace
}  // namespace shardwright::cli
