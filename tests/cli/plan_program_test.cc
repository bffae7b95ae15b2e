// SPDX-License-Identifier: Apache-2.0
//
// shardwright plan: estimates of descriptions and checkpoints, plan buffers as files.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/cli/program_fixture.h"

namespace shardwright::cli {
namespace {

class PlanProgram : public Program {
 protected:
  std::string written(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
    return name;
  }
  // Two ranks that each hold half of a tensor; its name has markup in it.
  std::string halves() {
    return written("halves.json", R"json({"schema": 1, "meshes": {"m": {"axes": {"dp": 2}}},
      "tensors": [{"name": "<b>&\"w'", "dtype": "float32", "shape": [8, 1024],
                   "placements": {"dp": "Shard(0)"}}],
      "objects": [{"name": "step", "bytes": 8}]})json");
  }
  std::string onto_four() {
    return written("four.json", R"json({"schema": 1, "meshes": {"m": {"axes": {"tp": 4}}},
      "rules": [{"match": "layers.*", "placements": {"tp": "Shard(1)"}}, {"match": "*"}]})json");
  }
  // Quoted: the tree may lie in a path with a space.
  static std::string example(const std::string& name) {
    const char* source = std::getenv("SHW_SOURCE_DIR");
    return "'" + std::string(source == nullptr ? "." : source) + "/examples/meshes/" + name +
           ".json'";
  }
};

TEST_F(PlanProgram, EstimatesASave) {
  const Outcome outcome = run("plan save " + halves() + " --bandwidth 1MB --per-rank");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "save of 2 ranks: 1 tensor in 2 chunks, 1 object, 32.01 KiB in 2 files");
  EXPECT_HAS(outcome.out, "bytes written");
  EXPECT_HAS(outcome.out, "time: 0.02 s, limited by the busiest rank at 1.0 MB/s");
  EXPECT_HAS(outcome.out, "[8, 1024]");
  const Json json = run_json("plan save " + halves());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["command"], "save");
  EXPECT_EQ(json["stored"]["bytes"], 32776);
  EXPECT_EQ(json["per_rank"]["writes"], Json({2, 1}));
  EXPECT_EQ(json["time"], nullptr);
  EXPECT_EQ(json["tensors"][0]["chunks"], 2);
  EXPECT_EQ(json, run_json("plan save " + halves() + " --html page.html"));
}

TEST_F(PlanProgram, EstimatesALoadOfARealCheckpoint) {
  const Json json = run_json("plan load ckpt --to " + onto_four());
  EXPECT_EQ(json["command"], "load");
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["stored"]["tensors"], 6);
  // Each rank needs columns of two tensors of 192 bytes, whose chunks have one digest.
  EXPECT_EQ(json["held_bytes"]["total"], 4 * (12000 + 8 + 4 + 2 + 10 + 3) + 2 * 192);
  // Six columns on four ranks: three ranks have two of them, which are 64 bytes.
  EXPECT_EQ(json["over_bytes"]["total"], 2 * 3 * (192 - 64));
  const Json shared = run_json("plan load ckpt --ranks-per-node 4 --to " + onto_four());
  EXPECT_EQ(shared["held_bytes"], json["held_bytes"]);
  EXPECT_LT(shared["bytes"]["total"], json["bytes"]["total"]);
  EXPECT_GT(shared["shared_bytes"]["total"], 0);
  EXPECT_EQ(json["shared_bytes"]["total"], 0);
  EXPECT_HAS(run("plan load ckpt --ranks-per-node 4 --to " + onto_four()).out, "from its machine");
  EXPECT_EQ(shared["exchange"], "off");
  EXPECT_EQ(shared["received_bytes"]["total"], 0);
  EXPECT_NE(run("plan load ckpt --ranks-per-node 65").code, 0);
  EXPECT_NE(run("plan save ckpt --ranks-per-node 4").code, 0);
  const Outcome own = run("plan load ckpt --measure . --measure-size 1MiB");
  EXPECT_EQ(own.code, 0) << own.err;
  EXPECT_HAS(own.out, "(measured here with one rank)");
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
    EXPECT_EQ(entry.path().filename().string().find("probe"), std::string::npos) << entry.path();
}

TEST_F(PlanProgram, EstimatesALoadWhoseNodesExchangeBlocks) {
  const std::string four = "plan load ckpt --to " + onto_four() + " --ranks-per-node 2";
  const std::string command = four + " --exchange always";
  const Json json = run_json(command);
  EXPECT_EQ(json["exchange"], "always");
  // Of all bytes that ranks get, each is read once; one copy goes over the network.
  const Json one_node = run_json("plan load ckpt --ranks-per-node 4 --to " + onto_four());
  EXPECT_EQ(json["bytes"]["total"], one_node["bytes"]["total"]);
  EXPECT_GT(json["received_bytes"]["total"], 12000) << "what all want";
  EXPECT_EQ(json["received_bytes"]["total"], json["sent_bytes"]["total"]);
  EXPECT_EQ(json["per_rank"]["received_bytes"].size(), 4U);
  EXPECT_EQ(run_json(four)["bytes"]["total"],
            json["bytes"]["total"].get<uint64_t>() + json["sent_bytes"]["total"].get<uint64_t>());
  const Outcome shown = run(command + " --per-rank --html page.html");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_HAS(shown.out, "from other machines");
  EXPECT_HAS(shown.out, "sent to them");
  EXPECT_HAS(shown.out, "received");
  std::ifstream file(path("page.html"));
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_HAS(page, "Sent between machines");
  EXPECT_HAS(page, "from other machines");
  const Outcome alone = run("plan load ckpt --exchange always");
  EXPECT_NE(alone.code, 0);
  EXPECT_HAS(alone.err, "exchange");
  EXPECT_HAS(alone.err, "ranks_per_node");
  EXPECT_EQ(run("plan load ckpt --ranks-per-node 2 --exchange auto").code, 2);
  EXPECT_EQ(run("plan save ckpt --exchange always").code, 2);
}

TEST_F(PlanProgram, DescribesACheckpointSoThatItCanBeRead) {
  const Outcome outcome = run("plan describe ckpt");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json described = Json::parse(outcome.out);
  EXPECT_EQ(described["schema"], 1);
  EXPECT_EQ(described["tensors"].size(), 6U);
  Json of_text = run_json("plan save " + written("described.json", outcome.out));
  Json of_checkpoint = run_json("plan save ckpt");
  EXPECT_EQ(of_text, of_checkpoint);
  EXPECT_EQ(run("plan save - < described.json").code, 0);
}

TEST_F(PlanProgram, SaysWhereADescriptionIsWrong) {
  const Outcome outcome =
      run("plan save " + written("bad.json", "{\"schema\": 1, \"ranks\": 2,\n  \"tensor\": []}"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_HAS(outcome.err, "error: cannot read the description (INVALID_ARGUMENT)");
  EXPECT_HAS(outcome.err, "where: bad.json");
  EXPECT_HAS(outcome.err, "line 2, column 3: 'tensor' is no key of a description; did you mean");
  EXPECT_EQ(run("plan save nowhere.json").code, 2);
  EXPECT_EQ(run("plan load ckpt --to nowhere.json").code, 2);
  EXPECT_EQ(run("plan save ckpt --owner somebody").code, 2);
  EXPECT_EQ(run("plan").code, 2);
}

TEST_F(PlanProgram, KeepsPlansAsFiles) {
  const Outcome saved = run("plan save " + halves() + " --out a.shwp");
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_HAS(saved.out, "shardwright plan show a.shwp");
  const Outcome shown = run("plan show a.shwp");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_HAS(shown.out, "kind            merged_save");
  EXPECT_HAS(shown.out, "offsets=[4,0]");
  EXPECT_HAS(run("plan show a.shwp --limit 1").out, "at most 1 are shown (--limit)");
  EXPECT_EQ(run_json("plan show a.shwp")["chunks"].size(), 2U);
  EXPECT_EQ(run("plan validate a.shwp").out, "valid\n");
  EXPECT_EQ(run_json("plan validate a.shwp")["valid"], true);
  EXPECT_EQ(run("plan diff a.shwp a.shwp").out, "the plans do the same\n");
}

TEST_F(PlanProgram, KeepsTheLoadPlansOfAllRanks) {
  const Outcome saved = run("plan load ckpt --to " + onto_four() + " --out loads.shwp");
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_HAS(saved.out, "shardwright plan show loads.shwp");
  const Json estimate = run_json("plan load ckpt --to four.json");
  const Json shown = run_json("plan show loads.shwp");
  EXPECT_EQ(shown["kind"], "several");
  ASSERT_EQ(shown["plans"].size(), 4U);
  const std::string generation = run_json("info ckpt")["generation"];
  for (size_t rank = 0; rank < 4; ++rank) {
    const Json& plan = shown["plans"][rank];
    EXPECT_EQ(plan["kind"], "load");
    EXPECT_EQ(plan["rank"], rank);
    EXPECT_EQ(plan["generation"], generation);
    EXPECT_EQ(plan["reads"].size() + plan["objects"].size(),
              estimate["per_rank"]["reads"][rank].get<size_t>());
  }
  EXPECT_HAS(run("plan show loads.shwp --limit 1").out, "--- load of rank 3\n");
  EXPECT_EQ(run("plan validate loads.shwp").out, "valid\n");
  EXPECT_EQ(run("plan diff loads.shwp loads.shwp").out, "the plans do the same\n");
}

TEST_F(PlanProgram, TellsLoadPlansApart) {
  const std::string one = written("one.json", R"json({"schema": 1, "ranks": 1,
    "rules": [{"match": "*"}]})json");
  ASSERT_EQ(run("plan load ckpt --to " + one + " --out one.shwp").code, 0);
  ASSERT_EQ(run("plan load ckpt --to " + onto_four() + " --out four.shwp").code, 0);
  EXPECT_EQ(run_json("plan show one.shwp")["kind"], "load") << "a single plan is shown as itself";
  Outcome outcome = run("plan diff one.shwp four.shwp");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_HAS(outcome.out, "plans: 1 and 4\n");
  EXPECT_HAS(outcome.out, "reads: only the first has entry");
  std::string bytes = file_text(path("four.shwp"));
  written("cut.shwp", bytes.substr(0, bytes.size() - 9));
  outcome = run("plan validate cut.shwp");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_HAS(outcome.out, "plan 3: ");
  EXPECT_HAS(outcome.out, "1 finding\n");
  EXPECT_EQ(run("plan show cut.shwp").code, 1);
  EXPECT_EQ(run("plan load ckpt --out missing/loads.shwp").code, 2);
}

TEST_F(PlanProgram, TellsPlansApart) {
  ASSERT_EQ(run("plan save " + example("hsdp") + " --out a.shwp").code, 0);
  ASSERT_EQ(run("plan save " + example("hsdp") + " --owner lowest_rank --out b.shwp").code, 0);
  const Outcome outcome = run("plan diff a.shwp b.shwp --limit 3");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_HAS(outcome.out, "chunks: ");
  EXPECT_HAS(outcome.out, ", writer: ");
  EXPECT_HAS(outcome.out, " differences\n");
  const Json json = run_json("plan diff a.shwp b.shwp", 1);
  EXPECT_EQ(json["equal"], false);
  EXPECT_GT(json["differences"].size(), 3U);
}

TEST_F(PlanProgram, FindsDamageInAPlan) {
  ASSERT_EQ(run("plan save " + halves() + " --out a.shwp").code, 0);
  std::string bytes = file_text(path("a.shwp"));
  written("short.shwp", bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(run("plan show short.shwp").code, 1);
  const Outcome outcome = run("plan validate short.shwp");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_HAS(outcome.out, "finding");
  written("text.shwp", "no plan");
  EXPECT_EQ(run_json("plan validate text.shwp", 1)["valid"], false);
}

TEST_F(PlanProgram, WritesAPageThatNeedsNothingElse) {
  const Outcome outcome = run("plan save " + halves() + " --html page.html");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "page: page.html");
  const std::string page = file_text(path("page.html"));
  EXPECT_HAS(page, "&lt;b&gt;&amp;&quot;w&#39;");
  EXPECT_HAS(page, "<title>rank 0</title>");
  EXPECT_HAS(page, "<title>rank 1</title>");
  EXPECT_HAS(page, "dimension 0 down: 2 parts");
  for (const std::string foreign :
       {"<b>&\"", "http:", "https:", "<script", "<link", "<img", "@import", "url("}) {
    EXPECT_EQ(page.find(foreign), std::string::npos) << foreign;
  }
  EXPECT_EQ(run("plan save " + halves() + " --html missing/page.html").code, 2);
  EXPECT_FALSE(std::filesystem::exists(path("missing")));
}

TEST_F(PlanProgram, EveryExampleIsEstimated) {
  for (const std::string name : {"fsdp", "hsdp", "tp_pp_dp", "moe"}) {
    const Outcome outcome = run("plan save " + example(name) + " --html " + name + ".html");
    EXPECT_EQ(outcome.code, 0) << name << outcome.err;
    EXPECT_LT(std::filesystem::file_size(path(name + ".html")), uint64_t{2} << 20) << name;
  }
  const Outcome outcome = run("plan load " + example("fsdp") + " --to " + example("inference"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_HAS(outcome.out, "load of 8 ranks");
}

}  // namespace
}  // namespace shardwright::cli
