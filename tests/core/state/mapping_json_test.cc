// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/state/mapping.h"
#include "tests/support/expect_failure.h"

namespace shardwright {
namespace {

constexpr std::string_view kAll = R"({
  "schema": 1,
  "parameters": ["layers", "inner"],
  "prefixes": ["optimizer.state.*."],
  "rules": [
    {"match": "layers.#.fc1", "except": ["*.bias"], "optional": true, "steps": [
      {"split": {"axis": 0, "sizes": ["$inner", 4], "suffixes": ["_w", "_v"]}},
      {"insert_axis": {"axis": 0, "index": "{1}", "from": 0, "count": "$layers"}},
      {"rename": "layers.fc1"}]},
    {"match": "*.x", "steps": [{"concat": {"axis": -1, "index": 1, "count": 2}}]},
    {"match": "grouped", "steps": [{"split": {"axis": 0, "count": 2, "name": "g.{#}", "of": "tensor"}}]},
    {"match": "stack.*", "steps": [{"drop_axis": {"axis": 0, "name": "stack.{#}.{1}"}}]},
    {"match": "embedding", "steps": [{"pad": {"axis": 0, "size": 10, "real": 9}}]},
    {"match": "fused", "steps": [{"split": {"axis": 0, "count": 2, "of": "part"}}]}
  ]
})";

const std::vector<MappingParameter> kParameters{{"layers", 3}, {"inner", 4}};

TEST(MappingJson, ReadsEveryMember) {
  const auto mapping = Mapping::parse(kAll, kParameters);
  ASSERT_TRUE(mapping.ok()) << mapping.status().to_string();
  ASSERT_EQ(mapping->rules().size(), 6U);
  const MappingRule& first = mapping->rules()[0];
  EXPECT_EQ(first.match, "layers.#.fc1");
  EXPECT_EQ(first.except, std::vector<std::string>{"*.bias"});
  EXPECT_TRUE(first.optional);
  EXPECT_FALSE(mapping->rules()[1].optional);
  const auto& split = std::get<SplitStep>(first.steps.at(0));
  EXPECT_EQ(split.sizes, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(split.suffixes, (std::vector<std::string>{"_w", "_v"}));
  EXPECT_FALSE(split.whole_tensor);
  const auto& insert = std::get<InsertAxisStep>(first.steps.at(1));
  EXPECT_EQ(insert.index.capture, 1U);
  EXPECT_EQ(insert.count, 3);
  const auto& concat = std::get<ConcatStep>(mapping->rules()[1].steps.at(0));
  EXPECT_EQ(concat.axis, -1);
  EXPECT_EQ(concat.index.capture, 0U);
  EXPECT_EQ(concat.index.value, 1);
  EXPECT_TRUE(std::get<SplitStep>(mapping->rules()[2].steps.at(0)).whole_tensor);
  EXPECT_EQ(std::get<DropAxisStep>(mapping->rules()[3].steps.at(0)).name, "stack.{#}.{1}");
  EXPECT_EQ(std::get<PadStep>(mapping->rules()[4].steps.at(0)).size, 10);
  EXPECT_EQ(std::get<PadStep>(mapping->rules()[4].steps.at(0)).real, 9);
  const auto boxes = mapping->apply(
      {"optimizer.state.exp_avg.layers.2.fc1", DType::kFloat32, Dims{8}, {}, {{4}, {4}}});
  ASSERT_TRUE(boxes.ok()) << boxes.status().to_string();
  EXPECT_EQ(boxes->at(1).name, "optimizer.state.exp_avg.layers.fc1_v");
}

Status parsed(std::string rules) {
  return Mapping::parse(R"({"schema": 1, "parameters": ["n"], "rules": )" + std::move(rules) + "}")
      .status();
}

TEST(MappingJson, ErrorsNameLineRuleAndMember) {
  const auto code = StatusCode::kInvalidArgument;
  const auto step = [](std::string text) {
    return parsed(R"([{"match": "a"}, {"match": "b.#", "steps": [)" + std::move(text) + "]}]");
  };
  EXPECT_FAILURE(parsed("3"), code, "line 1", "rules: is not a list");
  EXPECT_FAILURE(parsed("[3]"), code, "rule 1: the rule: is not an object");
  EXPECT_FAILURE(parsed("[{}]"), code, "rule 1: match: is missing");
  EXPECT_FAILURE(parsed(R"([{"match": 1}])"), code, "rule 1: match: is not a text");
  EXPECT_FAILURE(parsed(R"([{"match": "a", "else": 1}])"), code, "'else' is no key of rule 1; did",
                 "(all keys: match, except, optional, steps)");
  EXPECT_FAILURE(parsed(R"([{"match": "a", "except": "b"}])"), code, "except: is not a list");
  EXPECT_FAILURE(parsed(R"([{"match": "a", "optional": 1}])"), code, "optional: is not true or");
  EXPECT_FAILURE(step("3"), code, "rule 2: steps");
  EXPECT_FAILURE(step(R"({"rename": "a", "pad": {}})"), code, "rule 2: steps", "one member");
  EXPECT_FAILURE(step(R"({"rotate": {}})"), code, "rule 2: there is no step 'rotate'", "drop_axis");
  EXPECT_FAILURE(step(R"({"rename": 1})"), code, "rule 2: rename: is not a text");
  EXPECT_FAILURE(step(R"({"split": {"axis": "x"}})"), code, "rule 2: split.axis");
  EXPECT_FAILURE(step(R"({"split": {"axis": 1e9}})"), code, "rule 2: split.axis");
  EXPECT_FAILURE(step(R"({"split": {"axis": 9999999999}})"), code, "split.axis: is out of range");
  EXPECT_FAILURE(step(R"({"split": {}})"), code, "rule 2: split.axis: is missing");
  EXPECT_FAILURE(step(R"({"split": {"axis": 0, "of": "shard"}})"), code, "rule 2: split.of");
  EXPECT_FAILURE(step(R"({"split": {"axis": 0, "sizes": [1, "x"]}})"), code, "split.sizes");
  EXPECT_FAILURE(step(R"({"split": {"axis": 0, "siezs": 1}})"), code, "line 1, column",
                 "'siezs' is no key of split of rule 2; did you mean 'sizes'? (all keys: axis, ");
  EXPECT_EQ(step(R"({"split": {"axis": 0, "siezs": 1}})").detail("parameter"), "siezs");
  EXPECT_FAILURE(step(R"({"concat": {"axis": 0, "index": "{x}", "count": 2}})"), code,
                 "concat.index");
  EXPECT_FAILURE(step(R"({"concat": {"axis": 0, "index": "{", "count": 2}})"), code,
                 "concat.index");
  EXPECT_FAILURE(step(R"({"concat": {"axis": 0, "index": 1, "from": 1, "count": 2}})"), code,
                 "concat.from");
  EXPECT_FAILURE(step(R"({"pad": {"axis": 0, "size": "$m"}})"), code, "pad.size", "'m'",
                 "\"parameters\"");
  EXPECT_FAILURE(step(R"({"pad": {"axis": 0, "size": "$n"}})"), code, "pad.size", "not given");
  EXPECT_FAILURE(step(R"({"pad": {"axis": 0, "size": 4, "real": 0}})"), code, "pad.real",
                 "0 is not positive");
  // What is wrong once the rules are put together.
  EXPECT_FAILURE(step(R"({"insert_axis": {"axis": 0, "index": "{2}", "count": 2}})"), code,
                 "rule 2 ('b.#')", "insert_axis.index");
}

TEST(MappingJson, DocumentIsChecked) {
  EXPECT_FAILURE(Mapping::parse("[]").status(), StatusCode::kInvalidArgument, "an object");
  EXPECT_FAILURE(Mapping::parse(R"({"scheme": 1})").status(), StatusCode::kInvalidArgument,
                 "'scheme' is no key of the mapping; did you mean 'schema'?");
  EXPECT_FAILURE(Mapping::parse("{").status(), StatusCode::kInvalidArgument, "line 1");
  EXPECT_FAILURE(Mapping::parse("{}").status(), StatusCode::kInvalidArgument, "schema");
  EXPECT_FAILURE(Mapping::parse(R"({"schema": 1})").status(), StatusCode::kInvalidArgument,
                 "rules");
  EXPECT_FAILURE(Mapping::parse(R"({"schema": 2, "rules": []})").status(),
                 StatusCode::kUnimplemented, "schema 2");
  EXPECT_FAILURE(Mapping::parse(kAll).status(), StatusCode::kInvalidArgument, "line 7", "'inner'");
  const std::vector<MappingParameter> more{{"layers", 3}, {"inner", 4}, {"heads", 1}};
  EXPECT_FAILURE(Mapping::parse(kAll, more).status(), StatusCode::kInvalidArgument, "'heads'",
                 "layers, inner");
  EXPECT_TRUE(Mapping::parse(R"({"schema": 1, "rules": []})")->empty());
}

}  // namespace
}  // namespace shardwright
