// SPDX-License-Identifier: Apache-2.0
//
// Mapping: what each step makes of an entry, which rule takes it, what is refused. The vectors are
// those of Megatron Core's own factories for the same shards.
#include "core/state/mapping.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "core/layout/flat_range.h"
#include "tests/support/expect_failure.h"

namespace shardwright {
namespace {

// "name[8, 3]/[2, 1] [0:4, 0:3] <- [0:4, 0:3]", one line per box.
std::string text_of(const MappedBox& box) {
  if (box.role == BoxRole::kLeftOut) return fmt::format("left out {}", box_text(box.source));
  return fmt::format("{}[{}]/[{}] {} <- {}", box.name, fmt::join(box.global_shape, ", "),
                     fmt::join(box.fragments, ", "), box_text(box.box),
                     box.role == BoxRole::kZeros ? "zeros" : box_text(box.source));
}

std::vector<std::string> texts_of(const Result<std::vector<MappedBox>>& boxes) {
  if (!boxes.ok()) return {boxes.status().to_string()};
  std::vector<std::string> texts;
  for (const MappedBox& box : *boxes) texts.push_back(text_of(box));
  return texts;
}

Mapping one_rule(std::string match, std::vector<MappingStep> steps) {
  auto mapping = Mapping::create({{std::move(match), {}, false, std::move(steps)}});
  EXPECT_TRUE(mapping.ok()) << mapping.status().to_string();
  return mapping.ok() ? *std::move(mapping) : Mapping();
}

Status refused(std::string match, std::vector<MappingStep> steps) {
  return Mapping::create(
             {{"other", {}, false, {}}, {std::move(match), {}, false, std::move(steps)}})
      .status();
}

// Keeps the shape that an entry borrows.
struct Entry {
  std::string name;
  Dims shape;
  Box box;
  Dims fragments = {};
  DType dtype = DType::kFloat32;

  std::vector<std::string> through(const Mapping& mapping) const {
    return texts_of(mapping.apply({name, dtype, shape, fragments, box}));
  }
};

using Lines = std::vector<std::string>;

TEST(Mapping, NamesThatNoRuleMatchesPass) {
  const Entry entry{"a.w", {8, 3}, {{4, 0}, {4, 3}}};
  const Lines same{"a.w[8, 3]/[2, 1] [4:8, 0:3] <- [0:4, 0:3]"};
  EXPECT_EQ(entry.through(Mapping()), same);
  EXPECT_EQ(entry.through(one_rule("b.w", {RenameStep{"c"}})), same);
  EXPECT_EQ(entry.through(one_rule("a.w", {})), same);
  EXPECT_EQ((Entry{"s", {}, {}}.through(Mapping())), Lines{"s[]/[] [] <- []"});
}

TEST(Mapping, HalvesOfOneNameDoubleTheFragments) {
  const Mapping mapping = one_rule("*.fc1.weight", {SplitStep{.axis = 0, .count = 2}});
  // Rank 1 of 2: [W_1; V_1] of a tensor of 8 rows; W_1 is fragment 1 of 4, V_1 fragment 3.
  EXPECT_EQ((Entry{"l.fc1.weight", {8, 3}, {{4, 0}, {4, 3}}}.through(mapping)),
            (Lines{"l.fc1.weight[8, 3]/[4, 1] [2:4, 0:3] <- [0:2, 0:3]",
                   "l.fc1.weight[8, 3]/[4, 1] [6:8, 0:3] <- [2:4, 0:3]"}));
  // One rank.
  EXPECT_EQ((Entry{"l.fc1.weight", {4, 3}, {{0, 0}, {4, 3}}}.through(mapping)),
            (Lines{"l.fc1.weight[4, 3]/[2, 1] [0:2, 0:3] <- [0:2, 0:3]",
                   "l.fc1.weight[4, 3]/[2, 1] [2:4, 0:3] <- [2:4, 0:3]"}));
}

TEST(Mapping, HalvesOfNamesOfTheirOwn) {
  const Mapping mapping =
      one_rule("*.fc1.weight", {SplitStep{.axis = -2, .suffixes = {"_w", "_v"}}});
  EXPECT_EQ((Entry{"l.fc1.weight", {8, 3}, {{4, 0}, {4, 3}}}.through(mapping)),
            (Lines{"l.fc1.weight_w[4, 3]/[2, 1] [2:4, 0:3] <- [0:2, 0:3]",
                   "l.fc1.weight_v[4, 3]/[2, 1] [2:4, 0:3] <- [2:4, 0:3]"}));
}

TEST(Mapping, BoxThatIsNoPartOfTheGridIsCutByTheFragmentsThatAreSaid) {
  const Mapping mapping = one_rule("w", {SplitStep{.axis = 0, .count = 2}});
  // Rows 3 to 6 of a tensor whose parts of 4 rows are [W; V]: of the first its last row of V, of
  // the second W and one row of V.
  EXPECT_EQ(
      (Entry{"w", {8}, {{3}, {4}}, {2}}.through(mapping)),
      (Lines{"w[8]/[4] [2:4] <- [1:3]", "w[8]/[4] [5:6] <- [0:1]", "w[8]/[4] [6:7] <- [3:4]"}));
  EXPECT_EQ((Entry{"w", {8}, {{3}, {4}}}.through(mapping))[0].substr(0, 16), "INVALID_ARGUMENT");
  EXPECT_FAILURE(mapping.apply({"w", DType::kInt8, Dims{8}, Dims{3}, {{0}, {4}}}).status(),
                 StatusCode::kInvalidArgument, "3 equal parts", "'w'");
  EXPECT_FAILURE(mapping.apply({"w", DType::kInt8, Dims{8}, Dims{4, 1}, {{0}, {4}}}).status(),
                 StatusCode::kInvalidArgument, "2 fragments for 1 axes");
}

TEST(Mapping, ListedSizesGiveEachPartOfTheGridItsShare) {
  const Mapping mapping = one_rule(
      "*.in_proj.weight",
      {SplitStep{
          .axis = 0, .sizes = {8, 8, 2, 2, 4}, .suffixes = {".z", ".x", ".B", ".C", ".dt"}}});
  EXPECT_EQ((Entry{"m.in_proj.weight", {24, 5}, {{12, 0}, {12, 5}}}.through(mapping)),
            (Lines{"m.in_proj.weight.z[8, 5]/[2, 1] [4:8, 0:5] <- [0:4, 0:5]",
                   "m.in_proj.weight.x[8, 5]/[2, 1] [4:8, 0:5] <- [4:8, 0:5]",
                   "m.in_proj.weight.B[2, 5]/[2, 1] [1:2, 0:5] <- [8:9, 0:5]",
                   "m.in_proj.weight.C[2, 5]/[2, 1] [1:2, 0:5] <- [9:10, 0:5]",
                   "m.in_proj.weight.dt[4, 5]/[2, 1] [2:4, 0:5] <- [10:12, 0:5]"}));
  EXPECT_FAILURE(
      mapping.apply({"m.in_proj.weight", DType::kInt8, Dims{24}, {}, {{18}, {6}}}).status(),
      StatusCode::kInvalidArgument, "rule 1 ('*.in_proj.weight')", "split.sizes", "2 elements",
      "4 equal shares");
  EXPECT_FAILURE(
      mapping.apply({"m.in_proj.weight", DType::kInt8, Dims{26}, {}, {{0}, {26}}}).status(),
      StatusCode::kInvalidArgument, "split.sizes", "24", "26");
}

TEST(Mapping, GroupedExpertsBecomeSequentialAndBack) {
  const Mapping apart = one_rule(
      "*.experts.weight1",
      {SplitStep{
          .axis = 0, .count = 4, .name = "{1}.experts.{#}.fc1.weight", .whole_tensor = true}});
  // Experts 2 and 3 of 4.
  EXPECT_EQ((Entry{"l.experts.weight1", {8, 3}, {{4, 0}, {4, 3}}}.through(apart)),
            (Lines{"l.experts.2.fc1.weight[2, 3]/[1, 1] [0:2, 0:3] <- [0:2, 0:3]",
                   "l.experts.3.fc1.weight[2, 3]/[1, 1] [0:2, 0:3] <- [2:4, 0:3]"}));
  // A part of an expert.
  EXPECT_EQ((Entry{"l.experts.weight1", {8, 3}, {{1, 0}, {1, 3}}}.through(apart)),
            (Lines{"l.experts.0.fc1.weight[2, 3]/[2, 1] [1:2, 0:3] <- [0:1, 0:3]"}));
  const Mapping together = one_rule(
      "*.experts.#.fc1.weight",
      {ConcatStep{.axis = 0, .index = {2}, .count = 4}, RenameStep{"{1}.experts.weight1"}});
  EXPECT_EQ((Entry{"l.experts.3.fc1.weight", {2, 3}, {{0, 0}, {2, 3}}}.through(together)),
            (Lines{"l.experts.weight1[8, 3]/[4, 1] [6:8, 0:3] <- [0:2, 0:3]"}));
}

TEST(Mapping, ConcatOfListedSizes) {
  const Mapping mapping = one_rule(
      "*.x", {ConcatStep{.axis = 0, .index = {0, 1}, .sizes = {8, 6, 2}}, RenameStep{"{1}"}});
  EXPECT_EQ((Entry{"p.x", {6}, {{3}, {3}}}.through(mapping)),
            (Lines{"p[16]/[0] [11:14] <- [0:3]"}));
  EXPECT_FAILURE(mapping.apply({"p.x", DType::kInt8, Dims{7}, {}, {{0}, {7}}}).status(),
                 StatusCode::kInvalidArgument, "concat.sizes", "part 1 has 6", "7");
}

TEST(Mapping, NumberOfTheNameBecomesAnAxis) {
  const Mapping mapping = one_rule(
      "decoder.layers.#.*",
      {InsertAxisStep{.axis = 0, .index = {1}, .count = 12}, RenameStep{"decoder.layers.{2}"}});
  EXPECT_EQ((Entry{"decoder.layers.7.fc2.w", {4, 6}, {{0, 3}, {4, 3}}}.through(mapping)),
            (Lines{"decoder.layers.fc2.w[12, 4, 6]/[12, 1, 2] [7:8, 0:4, 3:6] <- [0:4, 0:3]"}));
  EXPECT_FAILURE(
      mapping.apply({"decoder.layers.12.w", DType::kInt8, Dims{4}, {}, {{0}, {4}}}).status(),
      StatusCode::kOutOfRange, "rule 1", "insert_axis.index", "12 is not below 12",
      "'decoder.layers.12.w'");
  const auto boxes =
      mapping.apply({"decoder.layers.7.w", DType::kInt8, Dims{4, 6}, {}, {{0, 0}, {4, 6}}});
  EXPECT_EQ(boxes->at(0).axes, (Dims{-1, 0, 1}));
}

TEST(Mapping, NumbersOfNamesMayBeginAnywhere) {
  // Expert 1 of the four that begin with expert 4.
  const Mapping mapping = one_rule(
      "e.#.w", {InsertAxisStep{.axis = 0, .index = {1, 4}, .count = 6}, RenameStep{"e.w"}});
  EXPECT_EQ((Entry{"e.1.w", {3}, {{0}, {3}}}.through(mapping)),
            (Lines{"e.w[6, 3]/[6, 1] [5:6, 0:3] <- [0:3]"}));
  EXPECT_FAILURE(mapping.apply({"e.2.w", DType::kInt8, Dims{3}, {}, {{0}, {3}}}).status(),
                 StatusCode::kOutOfRange, "2 + 4 is not below 6");
}

TEST(Mapping, AxisBecomesANumberOfTheName) {
  const Mapping mapping =
      one_rule("decoder.layers.*", {DropAxisStep{.axis = 0, .name = "decoder.layers.{#}.{1}"}});
  EXPECT_EQ((Entry{"decoder.layers.w", {4, 6}, {{2, 0}, {2, 6}}}.through(mapping)),
            (Lines{"decoder.layers.2.w[6]/[1] [0:6] <- [0:1, 0:6]",
                   "decoder.layers.3.w[6]/[1] [0:6] <- [1:2, 0:6]"}));
}

TEST(Mapping, StepsFollowEachOther) {
  // SwiGLU inside of a stack of layers, the halves along what is axis 1 then.
  const Mapping mapping = one_rule(
      "layers.#.fc1", {InsertAxisStep{.axis = 0, .index = {1}, .count = 3},
                       SplitStep{.axis = 1, .suffixes = {"_w", "_v"}}, RenameStep{"layers.fc1"}});
  EXPECT_EQ((Entry{"layers.2.fc1", {8}, {{4}, {4}}}.through(mapping)),
            (Lines{"layers.fc1_w[3, 4]/[3, 2] [2:3, 2:4] <- [0:2]",
                   "layers.fc1_v[3, 4]/[3, 2] [2:3, 2:4] <- [2:4]"}));
}

TEST(Mapping, PaddingIsNotStored) {
  const Mapping mapping = one_rule("*.word_embeddings.weight", {PadStep{.axis = 0, .size = 10}});
  EXPECT_EQ((Entry{"e.word_embeddings.weight", {16, 2}, {{8, 0}, {8, 2}}}.through(mapping)),
            (Lines{"e.word_embeddings.weight[10, 2]/[0, 1] [8:10, 0:2] <- [0:2, 0:2]",
                   "left out [2:8, 0:2]"}));
  EXPECT_EQ((Entry{"e.word_embeddings.weight", {16, 2}, {{12, 0}, {4, 2}}}.through(mapping)),
            (Lines{"left out [0:4, 0:2]"}));
  EXPECT_EQ((Entry{"e.word_embeddings.weight", {10, 2}, {{5, 0}, {5, 2}}}.through(mapping)),
            (Lines{"e.word_embeddings.weight[10, 2]/[2, 1] [5:10, 0:2] <- [0:5, 0:2]"}));
}

TEST(Mapping, PaddingThatNobodyHasIsZerosOfWhoHoldsTheEnd) {
  const Mapping mapping = one_rule("w", {PadStep{.axis = 0, .size = 10, .real = 7}});
  EXPECT_EQ((Entry{"w", {8, 2}, {{0, 0}, {4, 2}}}.through(mapping)),
            (Lines{"w[10, 2]/[0, 1] [0:4, 0:2] <- [0:4, 0:2]"}));
  EXPECT_EQ(
      (Entry{"w", {8, 2}, {{4, 1}, {4, 1}}}.through(mapping)),
      (Lines{"w[10, 2]/[0, 2] [4:8, 1:2] <- [0:4, 0:1]", "w[10, 2]/[0, 2] [8:10, 1:2] <- zeros"}));
  // Later steps take zeros along, and no step what is left out.
  const Mapping layers =
      one_rule("#.w", {PadStep{.axis = 1, .size = 3, .real = 2}, PadStep{.axis = 0, .size = 4},
                       InsertAxisStep{.axis = 0, .index = {1}, .count = 5}, RenameStep{"w"}});
  EXPECT_EQ((Entry{"2.w", {6, 2}, {{0, 0}, {6, 2}}}.through(layers)),
            (Lines{"w[5, 4, 3]/[5, 1, 0] [2:3, 0:4, 0:2] <- [0:4, 0:2]", "left out [4:6, 0:2]",
                   "w[5, 4, 3]/[5, 1, 0] [2:3, 0:4, 2:3] <- zeros"}));
}

TEST(Mapping, PaddingCutsNothingReal) {
  const auto failure = [](PadStep step) {
    return one_rule("w", {step}).apply({"w", DType::kInt8, Dims{8}, {}, {{0}, {4}}}).status();
  };
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_FAILURE(failure({.size = 9}), code, "'w'", "rule 1", "pad.size", "8 of 9 elements",
                 "\"real\" says how many");
  EXPECT_FAILURE(failure({.size = 10, .real = 9}), code, "pad.real",
                 "8 of 9 elements that are no padding");
  EXPECT_TRUE(failure({.size = 10, .real = 8}).ok());
  EXPECT_FAILURE(refused("w", {PadStep{.size = 4, .real = 5}}), code, "rule 2", "pad.real",
                 "5 of 4");
  EXPECT_FAILURE(refused("w", {PadStep{.size = 4, .real = -1}}), code, "pad.real", "-1 of 4");
}

TEST(Mapping, RulesHoldBehindPrefixes) {
  const auto mapping = Mapping::create(
      {{"layers.#.w",
        {},
        false,
        {InsertAxisStep{.axis = 0, .index = {1}, .count = 2}, RenameStep{"layers.w"}}}},
      {"optimizer.state.*."});
  ASSERT_TRUE(mapping.ok()) << mapping.status().to_string();
  EXPECT_EQ((Entry{"optimizer.state.exp_avg.layers.1.w", {4}, {{0}, {4}}}.through(*mapping)),
            (Lines{"optimizer.state.exp_avg.layers.w[2, 4]/[2, 1] [1:2, 0:4] <- [0:4]"}));
  EXPECT_EQ((Entry{"optimizer.state.exp_avg.other", {4}, {{0}, {4}}}.through(*mapping)),
            (Lines{"optimizer.state.exp_avg.other[4]/[1] [0:4] <- [0:4]"}));
}

TEST(Mapping, ExceptionsAndOverlaps) {
  const std::vector<MappingRule> rules{{"layers.#.*", {"*.fc1"}, false, {}},
                                       {"*.fc1", {}, false, {}},
                                       {"embedding", {}, true, {}},
                                       {"layers.1.*", {}, false, {}}};
  const auto mapping = Mapping::create(rules);
  ASSERT_TRUE(mapping.ok());
  EXPECT_EQ(**mapping->rule_of("layers.0.fc1"), 1U);
  EXPECT_EQ(**mapping->rule_of("layers.0.fc2"), 0U);
  EXPECT_EQ(*mapping->rule_of("head"), std::nullopt);
  EXPECT_FAILURE(mapping->rule_of("layers.1.fc2").status(), StatusCode::kInvalidArgument,
                 "rule 1 ('layers.#.*')", "rule 4 ('layers.1.*')", "'layers.1.fc2'");
  EXPECT_FAILURE(mapping->apply({"layers.1.fc2", DType::kInt8, Dims{4}, {}, {{0}, {4}}}).status(),
                 StatusCode::kInvalidArgument, "rule 4");
  const std::vector<std::string_view> names{"layers.0.fc2", "head"};
  EXPECT_FAILURE(mapping->check_used(names), StatusCode::kInvalidArgument, "rule 2 ('*.fc1')",
                 "rule 4", "match none of 2 entries", "\"optional\"");
  const std::vector<std::string_view> enough{"layers.0.fc2", "layers.2.fc1", "layers.1.fc1"};
  EXPECT_FAILURE(mapping->check_used(enough), StatusCode::kInvalidArgument, "both match");
  EXPECT_EQ(mapping->check_used(names).detail("rule"), "2,4");
}

TEST(Mapping, WrongRulesNameRuleAndMember) {
  const auto wrong = [](std::vector<MappingStep> steps) {
    return refused("a.#.*", std::move(steps));
  };
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_FAILURE(refused("", {}), code, "rule 2", "match");
  EXPECT_FAILURE(wrong({SplitStep{}}), code, "rule 2 ('a.#.*')", "split.count");
  EXPECT_FAILURE(wrong({SplitStep{.count = 3, .sizes = {1, 2}}}), code, "split.count", "2 sizes");
  EXPECT_FAILURE(wrong({SplitStep{.count = -1}}), code, "split.count", "-1");
  EXPECT_FAILURE(wrong({SplitStep{.sizes = {1, 0}}}), code, "split.sizes", "0 is not positive");
  EXPECT_FAILURE(wrong({SplitStep{.sizes = {INT64_MAX, INT64_MAX}}}), code, "split.sizes", "large");
  EXPECT_FAILURE(wrong({SplitStep{.count = 2, .suffixes = {"a"}}}), code, "split.suffixes");
  EXPECT_FAILURE(wrong({SplitStep{.suffixes = {"a", "a"}}}), code, "split.suffixes", "same");
  EXPECT_FAILURE(wrong({SplitStep{.suffixes = {"a", "\xFF"}}}), code, "split.suffixes", "UTF-8");
  EXPECT_FAILURE(wrong({SplitStep{.suffixes = {"a", "b"}, .name = "{#}"}}), code, "split.name");
  EXPECT_FAILURE(wrong({SplitStep{.count = 2, .name = "x"}}), code, "split.name", "{#}");
  EXPECT_FAILURE(wrong({SplitStep{.count = 2, .whole_tensor = true}}), code, "split.of");
  EXPECT_FAILURE(wrong({ConcatStep{}}), code, "concat.count");
  EXPECT_FAILURE(wrong({ConcatStep{.index = {2}, .count = 2}}), code, "concat.index", "capture 2");
  EXPECT_FAILURE(wrong({ConcatStep{.index = {3}, .count = 2}}), code, "concat.index", "capture 3");
  EXPECT_FAILURE(wrong({ConcatStep{.index = {0, -1}, .count = 2}}), code, "concat.index");
  EXPECT_FAILURE(wrong({RenameStep{"{3}"}}), code, "rename", "'{3}'");
  EXPECT_FAILURE(wrong({InsertAxisStep{}}), code, "insert_axis.count");
  EXPECT_FAILURE(wrong({DropAxisStep{}}), code, "drop_axis.name");
  EXPECT_FAILURE(wrong({PadStep{}}), code, "pad.size");
}

TEST(Mapping, WrongEntriesNameRuleMemberAndEntry) {
  const auto failure = [](MappingStep step) {
    return one_rule("w#", {std::move(step)})
        .apply({"w5", DType::kInt8, Dims{9, 2}, {}, {{0, 0}, {9, 2}}})
        .status();
  };
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_FAILURE(failure(SplitStep{.axis = 2, .count = 3}), code, "split.axis", "no axis 2",
                 "'w5'");
  EXPECT_FAILURE(failure(SplitStep{.axis = -3, .count = 3}), code, "split.axis", "no axis -3");
  EXPECT_FAILURE(failure(SplitStep{.count = 2}), code, "split.count", "9 elements are not 2 equal");
  EXPECT_FAILURE(failure(ConcatStep{.index = {1}, .count = 5}), StatusCode::kOutOfRange,
                 "concat.index", "5 is not below 5");
  EXPECT_FAILURE(failure(ConcatStep{.count = INT64_MAX}), code, "concat.count", "too long");
  EXPECT_FAILURE(failure(InsertAxisStep{.axis = 4, .count = 1}), code, "insert_axis.axis");
  EXPECT_FAILURE(failure(DropAxisStep{.axis = 2, .name = "{#}"}), code, "drop_axis.axis");
  EXPECT_FAILURE(failure(PadStep{.axis = 2, .size = 1}), code, "pad.axis");
  EXPECT_FAILURE(failure(RenameStep{std::string(kMaxNameBytes + 1, 'x')}), code, "the limit");
  EXPECT_FAILURE(Mapping().apply({"w", DType::kInt8, Dims{4}, {}, {{2}, {3}}}).status(),
                 StatusCode::kOutOfRange, "'w'");
  EXPECT_FAILURE(one_rule("w", {SplitStep{.count = 2}})
                     .apply({"w", DType::kFloat4E2m1fn, Dims{6}, {}, {{0}, {6}}})
                     .status(),
                 StatusCode::kUnimplemented, "'w'");
}

// Where each element of a box goes, in its row-major order.
Lines places_of(const Mapping& mapping, const Entry& entry) {
  const Box& box = entry.box;
  Lines places(static_cast<size_t>(box_element_count(box)));
  const auto parts = mapping.apply({entry.name, entry.dtype, entry.shape, entry.fragments, box});
  EXPECT_TRUE(parts.ok()) << parts.status().to_string();
  for (const MappedBox& part : *parts) {
    for (int64_t row = 0; row < part.source.sizes[0]; ++row) {
      for (int64_t column = 0; column < part.source.sizes[1]; ++column) {
        const int64_t at =
            (part.source.offsets[0] + row) * box.sizes[1] + part.source.offsets[1] + column;
        std::string& place = places.at(static_cast<size_t>(at));
        EXPECT_EQ(place, "") << "two parts hold element " << at;
        place = fmt::format("{} {} {}", part.name, part.box.offsets[0] + row,
                            part.box.offsets[1] + column);
      }
    }
  }
  return places;
}

// As the ranks of a distributed optimizer hold them.
TEST(Mapping, FlatRangesOfAShardGoWhereTheShardGoes) {
  const Mapping mapping = one_rule("fc1", {SplitStep{.axis = 0, .suffixes = {"_w", "_v"}}});
  const Box shard{{6, 0}, {6, 5}};
  const Dims shape{12, 5};
  const Dims fragments{2, 1};
  const Lines whole = places_of(mapping, {"fc1", shape, shard, fragments});
  EXPECT_EQ(whole.at(0), "fc1_w 3 0");
  EXPECT_EQ(whole.at(29), "fc1_v 5 4");
  for (int64_t begin = 0; begin < 30; ++begin) {
    for (int64_t end = begin; end <= 30; ++end) {
      Lines held;
      std::vector<Piece> pieces;
      append_flat_range(shard, {begin, end - begin}, &pieces);
      for (const Piece& piece : pieces) {
        const Lines more = places_of(mapping, {"fc1", shape, piece.box, fragments});
        held.insert(held.end(), more.begin(), more.end());
      }
      EXPECT_EQ(held, Lines(whole.begin() + begin, whole.begin() + end)) << begin << " to " << end;
    }
  }
}

TEST(Mapping, EmptyBoxIsNothing) {
  EXPECT_EQ((Entry{"w", {8}, {{8}, {0}}}.through(one_rule("w", {SplitStep{.count = 2}}))), Lines{});
}

// Whatever the grid, the parts of all ranks tile the targets, and each element of an entry goes to
// one place.
TEST(Mapping, PartsOfAllRanksTileTheTarget) {
  const Mapping mapping = one_rule("w", {SplitStep{.sizes = {12, 24, 12}}});
  for (const int64_t ranks : {1, 2, 3, 4, 6, 12}) {
    std::vector<int> hits(48, 0);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t local = 48 / ranks;
      const auto boxes =
          mapping.apply({"w", DType::kInt8, Dims{48}, {}, {{rank * local}, {local}}});
      ASSERT_TRUE(boxes.ok()) << boxes.status().to_string();
      std::vector<int> taken(static_cast<size_t>(local), 0);
      for (const MappedBox& box : *boxes) {
        for (int64_t i = 0; i < box.box.sizes[0]; ++i) {
          ++hits[static_cast<size_t>(box.box.offsets[0] + i)];
          ++taken[static_cast<size_t>(box.source.offsets[0] + i)];
        }
      }
      EXPECT_EQ(std::accumulate(taken.begin(), taken.end(), 0), local);
      EXPECT_EQ(*std::ranges::max_element(taken), 1);
    }
    EXPECT_EQ(hits, std::vector<int>(48, 1)) << ranks;
  }
}

}  // namespace
}  // namespace shardwright
