// SPDX-License-Identifier: Apache-2.0
//
// `shardwright diff`: what is said of two checkpoints, and the exit status.
#include <filesystem>

#include "tests/cli/program_fixture.h"

namespace shardwright::cli::test {
namespace {

class DiffProgram : public Program {
 protected:
  Source& stored(const std::string& name) {
    for (Source& each : sources_)
      if (each.name == name) return each;
    throw std::out_of_range(name);
  }
};

TEST_F(DiffProgram, EqualCheckpointsAreEqualInAnyFormat) {
  ASSERT_EQ(run("convert ckpt other --to torch-dcp").code, 0);
  const Outcome outcome = run("diff ckpt other");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_HAS(outcome.out, "equal: 0 tensors differ, 6 are equal");
  const Json json = run_json("diff ckpt other");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["equal"], 6);
  EXPECT_TRUE(json["values"].empty());
  EXPECT_HAS(outcome.out, "0 objects differ, 2 are equal");
  EXPECT_EQ(json["objects"]["equal"], 2);
}

TEST_F(DiffProgram, ObjectsAreComparedByWhatTheySay) {
  objects_ = {{"config", "{ \"lr\" : 0.10 }", "application/json"},
              {"blob", std::string("\x00\xff\x10", 3), "application/octet-stream"}};
  save("same");
  EXPECT_EQ(run("diff ckpt same").code, 0);
  objects_ = {{"config", "{\"lr\":0.2}", "application/json"},
              {"blob", std::string("\x00\xff\x11", 3), "application/octet-stream"},
              {"more", "[123456789012345678901]", "application/json"}};
  save("other");
  const Outcome outcome = run("diff ckpt other");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_HAS(outcome.out, "object     blob    object, application/octet-stream, 3 B");
  EXPECT_HAS(outcome.out, "object     config  ");
  EXPECT_HAS(outcome.out, "only in B  more ");
  EXPECT_HAS(outcome.out,
             "different: 0 tensors differ, 6 are equal\n3 objects differ, 0 are equal");
  const Json json = run_json("diff ckpt other", 1)["objects"];
  EXPECT_EQ(json["only_in_a"], Json::array());
  EXPECT_EQ(json["only_in_b"], Json({"more"}));
  EXPECT_EQ(json["different"], Json({"blob", "config"}));
  EXPECT_EQ(run_json("diff other ckpt", 1)["objects"]["only_in_a"], Json({"more"}));
  EXPECT_EQ(run("diff ckpt other --no-objects").code, 0);
  EXPECT_TRUE(run_json("diff ckpt other --no-objects")["objects"].is_null());
  EXPECT_EQ(run("diff ckpt other 'layers.*'").code, 0);
  EXPECT_EQ(run("diff ckpt other blob").code, 1);
  EXPECT_EQ(run("diff ckpt other --no-values").code, 1) << "more";
  // Integers that fit no machine word are equal in all digits or not at all.
  objects_.back().text = "[123456789012345678902]";
  save("digits");
  EXPECT_EQ(run_json("diff other digits", 1)["objects"]["different"], Json({"more"}));
}

TEST_F(DiffProgram, NamesEveryDifferenceOnce) {
  stored("layers.1.weight").bytes[5] ^= 1;
  stored("large").shape = {30, 100};
  stored("odd[0]").dtype = SHW_FLOAT16;
  stored("step").name = "steps";
  save("other");
  const Outcome outcome = run("diff ckpt other");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_HAS(outcome.out, "only in A  step ");
  EXPECT_HAS(outcome.out, "only in B  steps ");
  EXPECT_HAS(outcome.out, "int32 [3000] in A, int32 [30, 100] in B");
  EXPECT_HAS(outcome.out, "bfloat16 [2] in A, float16 [2] in B");
  EXPECT_HAS(outcome.out, "values     layers.1.weight");
  EXPECT_HAS(outcome.out, "different: 5 tensors differ, 2 are equal");
  const Json json = run_json("diff ckpt other", 1);
  EXPECT_EQ(json["only_in_a"], Json({"step"}));
  EXPECT_EQ(json["only_in_b"], Json({"steps"}));
  EXPECT_EQ(json["values"], Json({"layers.1.weight"}));
  ASSERT_EQ(json["dtype_or_shape"].size(), 2U);
  EXPECT_EQ(json["dtype_or_shape"][0]["name"], "large");
  EXPECT_EQ(json["dtype_or_shape"][1]["b"]["dtype"], "float16");
}

TEST_F(DiffProgram, ComparesWhatIsAskedFor) {
  stored("layers.1.weight").bytes[5] ^= 1;
  save("other");
  EXPECT_EQ(run("diff ckpt other 'layers.0.*'").code, 0);
  EXPECT_EQ(run("diff ckpt other 'layers.*'").code, 1);
  const Outcome names = run("diff ckpt other --no-values");
  EXPECT_EQ(names.code, 0) << names.err;
  EXPECT_HAS(names.out, "values were not compared");
  EXPECT_EQ(run("diff ckpt other 'nothing.*'").code, 2);
}

TEST_F(DiffProgram, WhatCannotBeReadIsNoDifference) {
  EXPECT_EQ(run("diff ckpt nowhere").code, 2);
  EXPECT_EQ(run("diff ckpt").code, 2);
}

}  // namespace
}  // namespace shardwright::cli::test
