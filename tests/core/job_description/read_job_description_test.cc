// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/job_description/job_description.h"
#include "tests/core/plan/world.h"

namespace shardwright::job_description {
namespace {

namespace test = plan::test;

JobDescription read(const std::string& text) {
  Result<JobDescription> job = read_job_description(text);
  EXPECT_TRUE(job.ok()) << job.status().to_string();
  return job.ok() ? *std::move(job) : JobDescription();
}

std::vector<Box> boxes(const JobDescription& job, size_t tensor, int32_t rank) {
  Result<std::vector<Box>> held = held_boxes(job, job.tensors[tensor], rank);
  EXPECT_TRUE(held.ok()) << held.status().to_string();
  return held.ok() ? *held : std::vector<Box>();
}

// A description with one mesh dp=2 x tp=2 and these members behind it.
std::string with_mesh(const std::string& members) {
  return "{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {\"dp\": 2, \"tp\": 2}}},\n" + members +
         "}";
}

TEST(ReadJobDescription, GivesEachRankItsBoxes) {
  const JobDescription job = read(with_mesh(R"json("tensors": [
    {"name": "w", "dtype": "float32", "shape": [4, 6], "placements": {"tp": "Shard(1)"}},
    {"name": "v", "dtype": "float32", "shape": [4, 6], "placements": ["Shard(0)", "S(-1)"]},
    {"name": "b", "dtype": "bfloat16", "shape": [3]},
    {"name": "t", "dtype": "bfloat16", "shape": [8, 2], "tensor_map": [[1, 0], -1]}],
    "objects": [{"name": "step", "bytes": 8}])json"));
  EXPECT_EQ(job.rank_count, 4);
  ASSERT_EQ(job.tensors.size(), 4U);
  EXPECT_EQ(boxes(job, 3, 2), std::vector<Box>{test::box({4, 0}, {2, 2})});
  EXPECT_EQ(boxes(job, 0, 1), std::vector<Box>{test::box({0, 3}, {4, 3})});
  EXPECT_EQ(boxes(job, 0, 2), std::vector<Box>{test::box({0, 0}, {4, 3})});
  EXPECT_EQ(boxes(job, 1, 3), std::vector<Box>{test::box({2, 3}, {2, 3})});
  EXPECT_EQ(boxes(job, 2, 3), std::vector<Box>{whole_box(Dims{3})});
  EXPECT_EQ(job.tensors[0].kind, EntryKind::kSharded);
  EXPECT_EQ(job.tensors[2].kind, EntryKind::kReplicated);
  EXPECT_EQ(job.objects[0].size_bytes, 8U);
}

TEST(ReadJobDescription, RepeatsEntriesAndSpreadsThemOverAnAxis) {
  const JobDescription job = read(R"json({"schema": 1,
    "meshes": {"m": {"axes": {"pp": 2, "tp": 2}}},
    "tensors": [{"name": "l.{layer}.{{e}}.{expert}", "repeat": {"layer": {"from": 4, "count": 3}, "expert": 2},
      "at": {"pp": "layer"}, "dtype": "int8", "shape": [4], "placements": {"tp": "Shard(0)"}}]})json");
  ASSERT_EQ(job.tensors.size(), 6U);
  EXPECT_EQ(job.tensors[0].name, "l.4.{e}.0");
  EXPECT_EQ(job.tensors[5].name, "l.6.{e}.1");
  // Three layers over two stages: the first has two.
  for (size_t t = 0; t < 6; ++t) {
    const int32_t stage = t < 4 ? 0 : 1;
    EXPECT_EQ(boxes(job, t, 2 * stage + 1), std::vector<Box>{test::box({2}, {2})}) << t;
    EXPECT_TRUE(boxes(job, t, 2 * (1 - stage)).empty()) << t;
  }
}

TEST(ReadJobDescription, TakesRanksBoxesAndFixedCoordinates) {
  const JobDescription job = read(R"json({"schema": 1, "ranks": 8,
    "meshes": {"m": {"axes": {"a": 2, "b": 2}, "ranks": {"from": 1, "count": 4, "step": 2}}},
    "tensors": [
      {"name": "tied", "dtype": "int8", "shape": [4], "at": {"a": 0}, "placements": {"b": "Shard(0)"}},
      {"name": "tied", "dtype": "int8", "shape": [4], "at": {"a": 1}, "placements": {"b": "Shard(0)"}},
      {"name": "rng", "dtype": "uint8", "shape": [16], "kind": "rank_local", "ranks": [0, 7]},
      {"name": "odd", "dtype": "int8", "shape": [4, 2],
       "boxes": [{"offsets": [0, 0], "sizes": [1, 2], "ranks": [6]},
                 {"offsets": [1, 0], "sizes": [3, 2], "ranks": [2, 0]}]}]})json");
  EXPECT_EQ(job.rank_count, 8);
  EXPECT_EQ(boxes(job, 0, 3), std::vector<Box>{test::box({2}, {2})});
  EXPECT_EQ(boxes(job, 1, 5), std::vector<Box>{test::box({0}, {2})});
  EXPECT_EQ(boxes(job, 2, 7), std::vector<Box>{whole_box(Dims{16})});
  EXPECT_TRUE(boxes(job, 2, 1).empty());
  EXPECT_EQ(boxes(job, 3, 2), std::vector<Box>{test::box({1, 0}, {3, 2})});
}

TEST(ReadJobDescription, TakesTensorMapsAgainstAnyOrderOfAxes) {
  const auto boxes_of = [](const std::string& map) {
    const JobDescription job = read(with_mesh(
        R"json("tensors": [{"name": "w", "dtype": "int8", "shape": [8, 4], "tensor_map": )json" +
        map + "}]"));
    std::vector<Box> held;
    for (int32_t rank = 0; rank < 4; ++rank) held.push_back(boxes(job, 0, rank).at(0));
    return held;
  };
  const auto rows = [](int64_t first) { return test::box({first, 0}, {2, 4}); };
  const std::vector<Box> outer_dp{rows(0), rows(2), rows(4), rows(6)};
  const std::vector<Box> outer_tp{rows(0), rows(4), rows(2), rows(6)};
  EXPECT_EQ(boxes_of("[[1, 0], -1]"), outer_dp);
  EXPECT_EQ(boxes_of(R"([["dp", "tp"], "None"])"), outer_dp);
  EXPECT_EQ(boxes_of("[[0, 1], -1]"), outer_tp);
  EXPECT_EQ(boxes_of(R"([["tp", -1, "dp"], []])"), outer_tp);
  EXPECT_EQ(boxes_of(R"({"axes": ["tp", "dp"], "map": [[1, 0], -1]})"), outer_tp);
  EXPECT_EQ(boxes_of(R"({"map": [[1, 0], -1]})"), outer_dp);
  // dp cuts the columns in both, whatever its number is.
  const std::vector<Box> columns{test::box({0, 0}, {8, 2}), test::box({0, 0}, {8, 2}),
                                 test::box({0, 2}, {8, 2}), test::box({0, 2}, {8, 2})};
  EXPECT_EQ(boxes_of("[-1, 1]"), columns);
  EXPECT_EQ(boxes_of(R"({"axes": ["tp", "dp"], "map": [-1, 0]})"), columns);
  EXPECT_EQ(boxes_of(R"({"axes": ["dp"], "map": [-1, 0]})"), columns);
}

TEST(ReadJobDescription, CountsTheAxesOfAMapAmongThoseThatAtLeaves) {
  const JobDescription job =
      read(R"json({"schema": 1, "meshes": {"m": {"axes": {"pp": 2, "dp": 2, "tp": 2}}},
    "tensors": [
      {"name": "w", "dtype": "int8", "shape": [4], "at": {"dp": 1}, "tensor_map": [1]},
      {"name": "v", "dtype": "int8", "shape": [4], "at": {"pp": 0, "dp": 1, "tp": 1}, "tensor_map": [-1]}]})json");
  EXPECT_EQ(boxes(job, 0, 2), std::vector<Box>{test::box({0}, {2})});
  EXPECT_EQ(boxes(job, 0, 7), std::vector<Box>{test::box({2}, {2})});
  EXPECT_EQ(boxes(job, 1, 3), std::vector<Box>{whole_box(Dims{4})});
  EXPECT_TRUE(boxes(job, 0, 0).empty());
}

TEST(ReadJobDescription, SaysThatInterleavedAxesAreNotSupportedAndWhere) {
  const auto refused = [](const std::string& axes, const std::string& map) {
    return read_job_description(
               "{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {" + axes +
               "}}},\n\"tensors\": [{\"name\": \"w\", \"dtype\": \"int8\", \"shape\": [4], "
               "\"tensor_map\": " +
               map + "}]}")
        .status();
  };
  const std::string interleaved = "\"dp\": 2, \"interleaved_parallel\": 2";
  EXPECT_FAILURE(refused(interleaved, "[1]"), StatusCode::kUnimplemented, "line 2, column 72",
                 "axis 'interleaved_parallel'");
  EXPECT_FAILURE(refused("\"dp\": 2", "[\"interleaved_parallel\"]"), StatusCode::kUnimplemented,
                 "line 2, column 73", "axis 'interleaved_parallel'");
  const Status named =
      refused("\"dp\": 2", "{\"axes\": [\"dp\", \"interleaved_parallel\"], \"map\": [1]}");
  EXPECT_EQ(named.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(named.detail("line"), "2");
  EXPECT_EQ(named.detail("column"), "88");
  EXPECT_TRUE(read_job_description(
                  "{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {" + interleaved +
                  "}}}, \"tensors\": [{\"name\": \"w\", \"dtype\": \"int8\", \"shape\": [4],"
                  " \"placements\": {\"dp\": \"Shard(0)\"}}]}")
                  .ok());
}

struct Mistake {
  std::string text;
  std::string_view place;
  std::string_view what;
};

void expect_refused(const std::vector<Mistake>& mistakes) {
  for (const Mistake& each : mistakes) {
    EXPECT_FAILURE(read_job_description(each.text).status(), StatusCode::kInvalidArgument,
                   each.place, each.what);
  }
}

TEST(ReadJobDescription, SaysWhatIsWrongWithMeshesAndWhere) {
  expect_refused({
      {"[]", "line 1, column 1", "a description must be an object, this is a list"},
      {"{}", "line 1, column 1", "needs \"schema\": 1"},
      {"{\"schema\": 1.5}", "line 1, column 12", "'schema' must be an integer"},
      {"{\"schema\": 1}", "line 1, column 1", "needs 'meshes' or 'ranks'"},
      {"{\"schema\": 1,\n \"tensor\": []}", "line 2, column 2", "did you mean 'tensors'?"},
      {"{\"schema\": 1, \"ranks\": 0}", "line 1, column 24", "'ranks' is 0"},
      {"{\"schema\": 1, \"meshes\": {\"m\": {}}}", "line 1, column 31", "needs 'axes'"},
      {"{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {\"a\": 0}}}}", "column 46", "is 0"},
      {"{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {\"a\": 1048576, \"b\": 2}}}}", "column 60",
       "more than 1048576 ranks"},
      {"{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {\"a\": 2}, \"ranks\": [1, 1]}}}",
       "line 1, column 59", "rank 1 is listed twice"},
      {"{\"schema\": 1, \"meshes\": {\"m\": {\"axes\": {\"a\": 2}, \"ranks\": [1]}}}",
       "line 1, column 59", "1 ranks are listed for a mesh of 2"},
      {"{\"schema\": 1, \"ranks\": 1, \"meshes\": {\"m\": {\"axes\": {\"a\": 2}}}}",
       "line 1, column 24", "a mesh names rank 1"},
  });
}

TEST(ReadJobDescription, SaysWhatIsWrongWithEntriesAndWhere) {
  const std::string tensor = R"json({"name": "w", "dtype": "int8", "shape": [4])json";
  expect_refused({
      {with_mesh("\"tensors\": [{}]"), "line 2, column 13", "a tensor needs 'dtype'"},
      {with_mesh("\"tensors\": [{\"name\": \"w\", \"dtype\": \"float33\", \"shape\": []}]"),
       "line 2, column 36", "nearest: float32"},
      {with_mesh("\"tensors\": [{\"name\": \"w\", \"dtype\": \"int8\", \"shape\": [-1]}]"),
       "line 2, column 54", "'shape' is -1"},
      {with_mesh("\"tensors\": [{\"name\": \"w\", \"dtype\": \"int64\", \"shape\": "
                 "[9223372036854775807, 9]}]"),
       "line 2, column 54", ""},
      {with_mesh("\"tensors\": [" + tensor + ", \"placement\": {}}]"), "line 2, column 58",
       "did you mean 'placements'?"},
      {with_mesh("\"tensors\": [" + tensor + ", \"placements\": {\"pp\": \"Shard(0)\"}}]"),
       "line 2, column 73", "no axis 'pp'; its axes are 'dp', 'tp'"},
      {with_mesh("\"tensors\": [" + tensor + ", \"placements\": {\"tp\": \"Shard(1)\"}}]"),
       "line 2, column 79", "dimension 1 of a tensor of 1 dimensions"},
      {with_mesh("\"tensors\": [" + tensor + ", \"placements\": {\"tp\": \"Shard(x)\"}}]"),
       "line 2, column 79", "'Shard(x)' is no placement"},
      {with_mesh("\"tensors\": [" + tensor + ", \"placements\": [\"R\"]}]"), "line 2, column 72",
       "1 placements for 2 axes"},
      {with_mesh("\"tensors\": [" + tensor + ", \"mesh\": \"n\"}]"), "line 2, column 66",
       "there is no mesh 'n'; nearest: 'm'"},
      {with_mesh("\"tensors\": [" + tensor + ", \"at\": {\"dp\": 2}}]"), "line 2, column 71",
       "a coordinate is 2"},
      {with_mesh("\"tensors\": [" + tensor +
                 ", \"at\": {\"dp\": 1}, \"placements\": {\"dp\": \"Shard(0)\"}}]"),
       "line 2, column 96", "fixed by 'at'"},
      {with_mesh("\"tensors\": [" + tensor + ", \"kind\": \"sharp\"}]"), "line 2, column 66",
       "'sharp' is no kind"},
      {with_mesh("\"tensors\": [" + tensor + "}, " + tensor + "}]"), "line 2, column 59",
       "rank 0 already holds another entry named 'w'"},
      {with_mesh("\"tensors\": [" + tensor + "}], \"objects\": [{\"name\": \"w\", \"bytes\": 1}]"),
       "line 2, column 72", "the name of a tensor and of an object"},
      {with_mesh("\"tensors\": [" + tensor + ", \"repeat\": {\"i\": 2}}]"), "line 2, column 22",
       "does not use the variable 'i'"},
      {with_mesh("\"tensors\": [" + tensor + ", \"ranks\": [0, 4]}]"), "line 2, column 67",
       "rank 4 is outside a job of 4 ranks"},
      {with_mesh("\"tensors\": [" + tensor +
                 ", \"boxes\": [{\"offsets\": [2], \"sizes\": [3], \"ranks\": [0]}]}]"),
       "line 2, column 68", "3 elements from 2 of 4"},
      {with_mesh("\"tensors\": [" + tensor + ", \"tensor_map\": [0, 1]}]"), "line 2, column 72",
       "a map of 2 entries for a tensor of 1 dimensions"},
      {with_mesh("\"tensors\": [" + tensor + ", \"tensor_map\": [2]}]"), "line 2, column 73",
       "an axis of the map is 2"},
      {with_mesh("\"tensors\": [" + tensor + ", \"tensor_map\": [[1, 1]]}]"), "line 2, column 77",
       "axis 'dp' cuts twice"},
      {with_mesh("\"tensors\": [" + tensor + ", \"tensor_map\": [\"pp\"]}]"), "line 2, column 73",
       "no axis 'pp' that a map could use; it has 'dp', 'tp'"},
      {with_mesh("\"tensors\": [" + tensor + ", \"tensor_map\": {\"axes\": [\"tp\"]}}]"),
       "line 2, column 72", "needs 'map'"},
      {with_mesh("\"tensors\": [" + tensor +
                 ", \"tensor_map\": {\"axes\": [\"tp\", \"tp\"], \"map\": [0]}}]"),
       "line 2, column 88", "axis 'tp' is listed twice"},
      {with_mesh("\"tensors\": [" + tensor +
                 ", \"tensor_map\": {\"axes\": [\"tp\"], \"map\": [1]}}]"),
       "line 2, column 97", "an axis of the map is 1"},
      {with_mesh("\"tensors\": [" + tensor + ", \"tensor_map\": {\"maps\": [0]}}]"),
       "line 2, column 73", "did you mean 'map'?"},
      {with_mesh("\"tensors\": [" + tensor + ", \"tensor_map\": [0.5]}]"), "line 2, column 73",
       "must be an integer"},
      {with_mesh("\"tensors\": [" + tensor + ", \"tensor_map\": [0], \"placements\": {}}]"),
       "line 2, column 58", "'tensor_map' cannot stand beside 'placements'"},
      {with_mesh("\"objects\": [{\"name\": \"o\", \"bytes\": -1}]"), "line 2, column 36",
       "'bytes' is -1"},
      {with_mesh("\"rules\": [{\"placements\": {}}]"), "line 2, column 11", "needs 'match'"},
  });
}

TEST(ReadJobDescription, BoundsTheRanksOfRepeatedBoxes) {
  const std::string text = R"json({"schema": 1, "ranks": 1048576, "tensors": [
    {"name": "w{i}", "repeat": {"i": 17}, "dtype": "int8", "shape": [4],
     "boxes": [{"offsets": [0], "sizes": [4], "ranks": {"count": 1048576}}]}]})json";
  EXPECT_FAILURE(read_job_description(text).status(), StatusCode::kInvalidArgument, "line 3",
                 "list more than 16777216 ranks");
}

TEST(ReadJobDescription, NamesTheVersionThatANewerSchemaNeeds) {
  const Status status = read_job_description("{\"schema\": 2, \"unknown\": 1}").status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.detail("needed_version"), "2");
}

TEST(ReadJobDescription, WrittenDescriptionsReadBackEqual) {
  const JobDescription job = read(with_mesh(R"json("description": "d", "tensors": [
    {"name": "w.{i}", "repeat": {"i": 3}, "dtype": "float32", "shape": [4, 6],
     "at": {"dp": 1}, "placements": {"tp": "Shard(1)"}},
    {"name": "odd", "dtype": "int8", "shape": [4],
     "boxes": [{"offsets": [0], "sizes": [4], "ranks": {"from": 0, "count": 4}}]},
    {"name": "mapped", "dtype": "int8", "shape": [8, 3], "tensor_map": [["tp", "dp"], -1]},
    {"name": "nested", "dtype": "int8", "shape": [8, 3], "tensor_map": [["dp", "tp"], -1]},
    {"name": "rng", "dtype": "uint8", "shape": [2], "kind": "rank_local"}],
    "objects": [{"name": "step", "bytes": 8, "ranks": [3]}],
    "rules": [{"match": "w*", "placements": {"dp": "Shard(0)"}}])json"));
  const std::string text = job_description_json(job);
  const JobDescription again = read(text);
  EXPECT_EQ(job_description_json(again), text);
  ASSERT_EQ(again.tensors.size(), job.tensors.size());
  for (size_t t = 0; t < job.tensors.size(); ++t) {
    EXPECT_EQ(again.tensors[t].name, job.tensors[t].name);
    for (int32_t r = 0; r < job.rank_count; ++r)
      EXPECT_EQ(boxes(again, t, r), boxes(job, t, r)) << text;
  }
}

TEST(LayOut, TakesTensorsFromOneJobAndTheMeshFromAnother) {
  const JobDescription source = read(R"json({"schema": 1, "ranks": 2, "tensors": [
    {"name": "a.norm", "dtype": "int8", "shape": [4]},
    {"name": "a.w", "dtype": "int8", "shape": [4, 2], "ranks": [1]},
    {"name": "rng", "dtype": "int8", "shape": [1], "kind": "rank_local"}],
    "objects": [{"name": "step", "bytes": 8}, {"name": "own", "bytes": 3, "kind": "rank_local", "ranks": [1]}]})json");
  const JobDescription target = read(R"json({"schema": 1, "meshes": {"m": {"axes": {"tp": 4}}},
    "rules": [{"match": "*norm"}, {"match": "*", "placements": {"tp": "Shard(0)"}}]})json");
  const Result<JobDescription> made = lay_out(source, target);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(made->rank_count, 4);
  ASSERT_EQ(made->tensors.size(), 3U);
  EXPECT_EQ(boxes(*made, 0, 3), std::vector<Box>{whole_box(Dims{4})});
  EXPECT_EQ(boxes(*made, 1, 3), std::vector<Box>{test::box({3, 0}, {1, 2})});
  EXPECT_FALSE(boxes(*made, 2, 1).empty());
  EXPECT_TRUE(boxes(*made, 2, 2).empty()) << "rank 2 had none to load";
  ASSERT_EQ(made->objects.size(), 2U);
  EXPECT_EQ(layout_ranks(*made->layouts[made->objects[1].layout].layout), std::vector<int32_t>{1});
}

TEST(LayOut, RefusesWhatDoesNotFit) {
  const JobDescription source = read(
      R"json({"schema": 1, "ranks": 1, "tensors": [{"name": "weight", "dtype": "int8", "shape": [4]}]})json");
  const auto status = [&](const std::string& tensors) {
    return lay_out(source, read("{\"schema\": 1, \"ranks\": 1, " + tensors + "}")).status();
  };
  EXPECT_FAILURE(status("\"tensors\": []"), StatusCode::kInvalidArgument, "'weight'", "rules");
  EXPECT_FAILURE(
      status(R"json("tensors": [{"name": "weigth", "dtype": "int8", "shape": [4]}])json"),
      StatusCode::kNotFound, "'weigth' is wanted and not stored", "weight");
  EXPECT_FAILURE(
      status(R"json("tensors": [{"name": "weight", "dtype": "int8", "shape": [5]}])json"),
      StatusCode::kInvalidArgument, "shape [4]", "[5]");
  EXPECT_FAILURE(
      status(R"json("tensors": [{"name": "weight", "dtype": "uint8", "shape": [4]}])json"),
      StatusCode::kInvalidArgument, "dtype int8", "uint8");
  EXPECT_FAILURE(status(R"json("meshes": {"m": {"axes": {"a": 1}}},
      "rules": [{"match": "*", "placements": {"a": "Shard(1)"}}])json"),
                 StatusCode::kInvalidArgument, "'weight'", "rule '*'");
}

}  // namespace
}  // namespace shardwright::job_description
