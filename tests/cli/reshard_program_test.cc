// SPDX-License-Identifier: Apache-2.0
//
// `shardwright reshard` over a checkpoint that megatron-core wrote.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/cli/program_fixture.h"

namespace shardwright::cli::test {
namespace {

std::string golden() {
  const char* const source = std::getenv("SHW_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) +
         "/tests/golden/megatron_reshard/gpt_tp2dp2_bf16/ckpt";
}

class ReshardProgram : public Program {
 protected:
  const std::string source_ = std::filesystem::absolute(golden());
};

TEST_F(ReshardProgram, SaysWhatItMade) {
  const Outcome made = run("reshard '" + source_ + "' copy --tp 1 --dp 2");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_HAS(made.out, "52 tensors");
  EXPECT_HAS(made.out, "tp 1 pp 1 ep 1, from tp 2 pp 1 ep 1");
  EXPECT_HAS(run("ls copy").out, "optimizer.state.exp_avg.output_layer.weight");
  EXPECT_HAS(run("reshard '" + source_ + "' copy --tp 1 --dp 2").out, "was converted before");
}

TEST_F(ReshardProgram, ADryRunWritesNothing) {
  const Json json = run_json("reshard '" + source_ + "' copy --tp 1 --dry-run");
  EXPECT_EQ(json["tensors"], 52);
  EXPECT_FALSE(std::filesystem::exists(path("copy")));
}

TEST_F(ReshardProgram, TakesAJobAndAMapFromFiles) {
  std::ofstream(path("job.json")) << R"({"tensor_model_parallel_size": 4})";
  const Outcome made = run("reshard '" + source_ + "' copy --to job.json");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_HAS(made.out, "tp 4");
  std::ofstream(path("map.json")) << R"({"buckets": 1})";
  const Outcome wrong = run("reshard '" + source_ + "' other --tp 1 --map map.json");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_HAS(wrong.err, "'buckets' must be a list");
  EXPECT_HAS(run("reshard '" + source_ + "' other --to nowhere.json").err, "nowhere.json");
}

TEST_F(ReshardProgram, StoresUnderTheRulesOfAMap) {
  std::ofstream(path("map.json")) << R"({"mapping": {"schema": 1, "rules": [
    {"match": "output_layer.weight", "steps": [{"pad": {"axis": 0, "size": 192, "real": 128}}]}]}})";
  const Outcome made = run("reshard '" + source_ + "' copy --tp 1 --map map.json");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_HAS(run("ls copy").out, "192");
  std::ofstream(path("idle.json")) << R"({"mapping": {"schema": 1, "rules": [{"match": "no"}]}})";
  const Outcome idle = run("reshard '" + source_ + "' other --tp 1 --map idle.json");
  EXPECT_EQ(idle.code, 2);
  EXPECT_HAS(idle.err, "rule 1 ('no')");
  EXPECT_HAS(idle.err, "next: change rule 1 of the mapping");
  EXPECT_FALSE(std::filesystem::exists(path("other")));
}

TEST_F(ReshardProgram, MakesBucketsForAnotherShape) {
  const std::string call =
      "reshard '" + source_ + "' copy --tp 1 --dp 2 --optimizer dp_reshardable";
  const Outcome unknown = run(call);
  EXPECT_NE(unknown.code, 0);
  EXPECT_HAS(unknown.err, "bucket_size");
  std::ofstream(path("map.json")) << R"({"bucket_size": null})";
  const Outcome made = run(call + " --map map.json");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_HAS(made.out, "1 buckets were made");
  EXPECT_HAS(run("ls copy").out, "bucket_idx_0.exp_avg");
}

TEST_F(ReshardProgram, SharesOutStagesAsIsSaid) {
  std::ofstream(path("map.json")) << R"({"bucket_size": null})";
  const std::string call = "reshard --tp 1 --optimizer dp_reshardable --map map.json";
  const Outcome made = run(call + " --pipeline-layers 2,0 '" + source_ + "' copy");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_HAS(made.out, "pp 2");
  const Outcome wrong = run(call + " --pipeline-layers 2,2 --etp 1 '" + source_ + "' other");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_HAS(wrong.err, "4 layers (2, 2), and the model 2");
  EXPECT_HAS(wrong.err, "next: say how many layers each stage has");
  EXPECT_NE(run(call + " --pipeline-layers 2,x '" + source_ + "' other").code, 0);
}

TEST_F(ReshardProgram, SaysWhatDoesNotFit) {
  const Outcome odd = run("reshard '" + source_ + "' copy --tp 3");
  EXPECT_EQ(odd.code, 2);
  EXPECT_HAS(odd.err, "3 tensor-parallel ranks");
  EXPECT_HAS(run("reshard ckpt copy --tp 1").err, "only those of Megatron");
}

}  // namespace
}  // namespace shardwright::cli::test
