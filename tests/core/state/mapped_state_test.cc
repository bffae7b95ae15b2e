// SPDX-License-Identifier: Apache-2.0
//
// States as a mapping stores them: what their pieces are and whose memory they see.
#include "core/state/mapped_state.h"

#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/layout/flat_range.h"
#include "core/tensor/strided_copy.h"
#include "tests/support/expect_failure.h"
#include "tests/support/no_memory.h"

namespace shardwright {
namespace {

// Memory of some tensors of a host: element i of all is i.
class Host {
 public:
  Host() : memory_(256) { std::iota(memory_.begin(), memory_.end(), 0); }

  TensorEntry entry(std::string name, const Dims& shape, size_t first, const Dims& global = {},
                    const Dims& offsets = {}, const Dims& strides = {}) {
    TensorArguments arguments;
    arguments.data = memory_.data() + first;
    arguments.byte_size = (memory_.size() - first) * sizeof(int32_t);
    arguments.dtype = DType::kInt32;
    arguments.shape = shape;
    arguments.strides = strides;
    TensorEntry made = plain_tensor_entry(std::move(name), *make_tensor_view(arguments));
    if (!global.empty()) {
      made.global_shape = global;
      made.pieces = {{{offsets, shape}, 0}};
    }
    return made;
  }
  int32_t* at(size_t element) { return memory_.data() + element; }

 private:
  std::vector<int32_t> memory_;
};

std::shared_ptr<State> state_of(const std::vector<TensorEntry>& entries,
                                std::vector<ObjectEntry> objects = {}) {
  auto state = std::make_shared<State>();
  EXPECT_TRUE(state->add_tensors(entries).ok());
  EXPECT_TRUE(state->add_objects(std::move(objects)).ok());
  return state;
}

Mapping mapping_of(std::vector<MappingRule> rules) {
  return *Mapping::create(std::move(rules));
}

// "name[8, 3] sharded: [0:2, 0:3] = 0 1 2 3 4 5", a line per piece.
std::vector<std::string> lines_of(const State& state) {
  std::vector<std::string> lines;
  for (size_t t = 0; t < state.tensors().size(); ++t) {
    const TensorRef entry = state.tensors()[t];
    for (size_t p = 0; p < entry.pieces.size(); ++p) {
      const auto window = state.piece_window(t, p);
      if (!window.ok()) return {window.status().to_string()};
      std::vector<int32_t> values(window_bytes(*window) / sizeof(int32_t));
      gather(*window, 0, std::as_writable_bytes(std::span(values)));
      lines.push_back(fmt::format("{}[{}] {}: {} = {}", entry.name,
                                  fmt::join(entry.global_shape, ", "), entry_kind_name(entry.kind),
                                  box_text(entry.pieces[p].box), fmt::join(values, " ")));
    }
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(MappedState, PiecesOfOneTensorLieInTheMemoryOfSeveralEntries) {
  Host host;
  const auto from = state_of({host.entry("layers.1.w", {2, 2}, 0), host.entry("norm", {2}, 4),
                              host.entry("layers.0.w", {2, 2}, 100)});
  const auto mapped = map_state(
      from, mapping_of(
                {{"layers.#.w",
                  {},
                  false,
                  {InsertAxisStep{.axis = 0, .index = {1}, .count = 3}, RenameStep{"layers.w"}}}}));
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  EXPECT_EQ(
      lines_of(**mapped),
      (Lines{"norm[2] auto: [0:2] = 4 5", "layers.w[3, 2, 2] sharded: [1:2, 0:2, 0:2] = 0 1 2 3",
             "layers.w[3, 2, 2] sharded: [0:1, 0:2, 0:2] = 100 101 102 103"}));
  // Views, not copies.
  *host.at(101) = -7;
  EXPECT_EQ(lines_of(**mapped).at(2),
            "layers.w[3, 2, 2] sharded: [0:1, 0:2, 0:2] = 100 -7 102 103");
}

TEST(MappedState, PartsOfAStridedTensorKeepItsStrides) {
  Host host;
  // Columns of a matrix of 4 x 10: a transposed view.
  const auto from = state_of({host.entry("w", {4, 4}, 0, {8, 4}, {4, 0}, {1, 10})});
  const auto mapped =
      map_state(from, mapping_of({{"w", {}, false, {SplitStep{.axis = 0, .count = 2}}}}));
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  EXPECT_EQ(lines_of(**mapped), (Lines{"w[8, 4] sharded: [2:4, 0:4] = 0 10 20 30 1 11 21 31",
                                       "w[8, 4] sharded: [6:8, 0:4] = 2 12 22 32 3 13 23 33"}));
  const auto inner = map_state(
      from, mapping_of({{"w", {}, false, {SplitStep{.axis = 1, .suffixes = {"a", "b"}}}}}));
  ASSERT_TRUE(inner.ok()) << inner.status().to_string();
  EXPECT_EQ(lines_of(**inner), (Lines{"wa[8, 2] sharded: [4:8, 0:2] = 0 10 1 11 2 12 3 13",
                                      "wb[8, 2] sharded: [4:8, 0:2] = 20 30 21 31 22 32 23 33"}));
}

// A rank of a distributed optimizer holds a run of the elements of one of two parts of [W; V].
TEST(MappedState, FlatRangesAreSplitAsTheirPartIs) {
  Host host;
  TensorEntry entry = host.entry("w", {9}, 0);
  entry.global_shape = {8, 3};
  entry.pieces = *flat_range_pieces({{4, 0}, {4, 3}}, {2, 9});
  const auto halves = mapping_of({{"w", {}, false, {SplitStep{.suffixes = {"_w", "_v"}}}}});
  EXPECT_FAILURE(map_state(state_of({entry}), halves).status(), StatusCode::kInvalidArgument,
                 "split.axis", "'w'", "say into how many");
  entry.fragments = {2, 1};
  const auto mapped = map_state(state_of({entry}), halves);
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  EXPECT_EQ(
      lines_of(**mapped),
      (Lines{"w_w[4, 3] sharded: [2:3, 2:3] = 0", "w_w[4, 3] sharded: [3:4, 0:3] = 1 2 3",
             "w_v[4, 3] sharded: [2:3, 0:3] = 4 5 6", "w_v[4, 3] sharded: [3:4, 0:2] = 7 8"}));
  EXPECT_EQ(Dims((*mapped)->tensors()[0].fragments), (Dims{2, 1}));
}

// Whole rows of a part would pass for an equal part of the tensor.
TEST(MappedState, ARunOfElementsTellsNoGrid) {
  Host host;
  TensorEntry entry = host.entry("w", {6}, 0);
  entry.global_shape = {8, 3};
  entry.pieces = {{{{4, 0}, {2, 3}}, 0}};
  const auto halves = mapping_of({{"w", {}, false, {SplitStep{.suffixes = {"_w", "_v"}}}}});
  EXPECT_FAILURE(map_state(state_of({entry}), halves).status(), StatusCode::kInvalidArgument,
                 "split.axis", "none of equal parts");
  entry.fragments = {2, 1};
  const auto mapped = map_state(state_of({entry}), halves);
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  EXPECT_EQ(lines_of(**mapped), (Lines{"w_w[4, 3] sharded: [2:4, 0:3] = 0 1 2 3 4 5"}));
}

TEST(MappedState, FragmentsAreKeptAndChecked) {
  Host host;
  TensorEntry whole = host.entry("a", {4, 2}, 0);
  whole.fragments = {2, 0};
  TensorEntry part = host.entry("b", {2}, 8, {6}, {2});
  part.fragments = {3};
  const auto from = state_of({whole, part, host.entry("c", {2}, 10)});
  EXPECT_EQ(Dims(from->tensors()[0].fragments), (Dims{2, 0}));
  EXPECT_EQ(Dims(from->tensors()[1].fragments), (Dims{3}));
  EXPECT_TRUE(from->tensors()[2].fragments.empty());
  // The whole [W0; V0; W1; V1] of two ranks.
  const auto mapped =
      map_state(from, mapping_of({{"a", {}, false, {SplitStep{.suffixes = {"_w", "_v"}}}}}));
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  EXPECT_EQ(lines_of(**mapped),
            (Lines{"b[6] auto: [2:4] = 8 9", "c[2] auto: [0:2] = 10 11",
                   "a_w[2, 2] sharded: [0:1, 0:2] = 0 1", "a_w[2, 2] sharded: [1:2, 0:2] = 4 5",
                   "a_v[2, 2] sharded: [0:1, 0:2] = 2 3", "a_v[2, 2] sharded: [1:2, 0:2] = 6 7"}));
  EXPECT_EQ(Dims((*mapped)->tensors()[0].fragments), (Dims{3}));
  const auto refused = [&](Dims fragments) {
    part.fragments = std::move(fragments);
    return State().add_tensors({part});
  };
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_FAILURE(refused({4}), code, "'b'", "axis 0 of 6 elements", "4 equal parts");
  EXPECT_FAILURE(refused({-1}), code, "'b'", "-1 equal parts");
  EXPECT_FAILURE(refused({3, 1}), code, "'b'", "2 fragments for 1 axes");
}

TEST(MappedState, PaddingIsZerosBesideTheEntryOrPartOfIt) {
  Host host;
  const auto from = state_of({host.entry("long", {4, 2}, 0), host.entry("short", {2, 2}, 8)});
  const auto mapped =
      map_state(from, mapping_of({{"long", {}, false, {PadStep{.axis = 0, .size = 3}}},
                                  {"short",
                                   {},
                                   false,
                                   {PadStep{.axis = 1, .size = 3, .real = 2},
                                    InsertAxisStep{.axis = -1, .index = {}, .count = 1}}}}));
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  EXPECT_EQ(lines_of(**mapped), (Lines{"long[3, 2] auto: [0:3, 0:2] = 0 1 2 3 4 5",
                                       "short[2, 3, 1] sharded: [0:2, 0:2, 0:1] = 8 9 10 11",
                                       "short[2, 3, 1] sharded: [0:2, 2:3, 0:1] = 0 0"}));
  const auto& zeroed = (*mapped)->zeroed();
  ASSERT_EQ(zeroed.size(), 2U);
  EXPECT_EQ(zeroed[0].name, "long");
  EXPECT_EQ(zeroed[0].memory.data, reinterpret_cast<std::byte*>(host.at(6)));
  EXPECT_EQ(zeroed[0].memory.shape, (Dims{1, 2}));
  EXPECT_EQ(zeroed[1].name, "short");
  EXPECT_EQ(zeroed[1].memory.data, memory_of_piece((*mapped)->tensors()[1], 1).data);
  // A state that is made of it loads into the same memory.
  const auto again = map_state(*mapped, mapping_of({{"*", {}, false, {RenameStep{"m.{1}"}}}}));
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ((*again)->zeroed().size(), 2U);
  EXPECT_EQ(lines_of(**again).back(), "m.short[2, 3, 1] sharded: [0:2, 2:3, 0:1] = 0 0");
}

TEST(MappedState, PaddingOfMemoryElsewhereIsRefused) {
  Host host;
  TensorEntry entry = host.entry("w", {2}, 0);
  entry.local.device_type = 2;
  const std::vector<MappingRule> rules{
      {"w", {}, false, {PadStep{.axis = 0, .size = 3, .real = 2}}}};
  EXPECT_FAILURE(map_state(state_of({entry}), mapping_of(rules)).status(),
                 StatusCode::kUnimplemented, "'w'", "on a device");
}

TEST(MappedState, PaddingThatNoMemoryHoldsIsRefused) {
  SHW_SKIP_WITHOUT_OWN_OPERATORS();
  Host host;
  const TensorEntry entry = host.entry("w", {2}, 0);
  EXPECT_FAILURE(
      map_state(state_of({entry}),
                mapping_of({{"w", {}, false, {PadStep{.size = int64_t{1} << 60, .real = 2}}}}))
          .status(),
      StatusCode::kResourceExhausted, "'w'", "padding");
}

TEST(MappedState, ObjectsAreCellsOfInsertedAxes) {
  Host host;
  const ObjectEntry state{
      "layers.2.extra", "", EntryKind::kAuto, "application/json", {std::byte{'1'}}};
  const ObjectEntry other{"step", "", EntryKind::kAuto, "application/json", {std::byte{'2'}}};
  const auto from = state_of({}, {state, other});
  const MappingStep insert = InsertAxisStep{.axis = 0, .index = {1}, .count = 4};
  const auto mapped =
      map_state(from, mapping_of({{"layers.#.*", {}, false, {insert, RenameStep{"layers.{2}"}}}}));
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  EXPECT_EQ((*mapped)->objects()[0].name, "layers.extra/shard_2_4");
  EXPECT_EQ((*mapped)->objects()[1].name, "step");
  EXPECT_FAILURE(
      map_state(from, mapping_of({{"step", {}, false, {SplitStep{.axis = 0, .count = 2}}}}))
          .status(),
      StatusCode::kInvalidArgument, "split.axis", "'step'");
}

TEST(MappedState, EntriesThatDoNotFitTogetherAreNamed) {
  Host host;
  const std::vector<MappingRule> rules{
      {"e#.w", {}, false, {ConcatStep{.axis = 0, .index = {1}, .count = 2}, RenameStep{"e.w"}}}};
  const auto of = [&](const std::vector<TensorEntry>& entries) {
    return map_state(state_of(entries), mapping_of(rules)).status();
  };
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_FAILURE(of({host.entry("e0.w", {2}, 0), host.entry("e1.w", {3}, 0)}), code, "'e0.w'",
                 "'e1.w'", "'e.w'", "shape");
  TensorEntry other = host.entry("e1.w", {2}, 0);
  other.local.dtype = DType::kFloat32;
  EXPECT_FAILURE(of({host.entry("e0.w", {2}, 0), other}), code, "dtype");
  other = host.entry("e1.w", {2}, 0);
  other.replica = true;
  EXPECT_FAILURE(of({host.entry("e0.w", {2}, 0), other}), code, "which rank saves");
  other.replica = false;
  other.kind = EntryKind::kSharded;
  EXPECT_FAILURE(of({host.entry("e0.w", {2}, 0), other}), code, "kind");
  EXPECT_FAILURE(of({host.entry("e0.w", {2}, 0), host.entry("e.w", {2}, 0)}),
                 StatusCode::kAlreadyExists, "'e.w'");
  EXPECT_FAILURE(of({host.entry("w", {2}, 0)}), code, "rule 1 ('e#.w')", "matches none");
}

TEST(MappedState, WholeTensorsStayWhatTheyAre) {
  Host host;
  TensorEntry local = host.entry("a", {2}, 0);
  local.kind = EntryKind::kRankLocal;
  const auto from = state_of({local, host.entry("b", {2}, 2)});
  const auto mapped = map_state(from, mapping_of({{"*", {}, false, {RenameStep{"m.{1}"}}}}));
  ASSERT_TRUE(mapped.ok()) << mapped.status().to_string();
  EXPECT_EQ(lines_of(**mapped),
            (Lines{"m.a[2] rank_local: [0:2] = 0 1", "m.b[2] auto: [0:2] = 2 3"}));
}

TEST(MappedState, KeepsTheOtherStateAlive) {
  Host host;
  auto owner = std::make_shared<int>(1);
  auto from = state_of({host.entry("w", {2}, 0)});
  from->add_keepalive(owner);
  auto mapped = *map_state(from, mapping_of({{"w", {}, false, {RenameStep{"v"}}}}));
  from.reset();
  EXPECT_EQ(owner.use_count(), 2);
  mapped.reset();
  EXPECT_EQ(owner.use_count(), 1);
}

// What reaches the memory of a device.
class NoAccess final : public WindowAccess {
 public:
  std::string_view name() const override { return "none"; }
  Status gather(const StridedWindow&, uint64_t, std::span<std::byte>) override { return {}; }
  Status scatter(std::span<const std::byte>, const StridedWindow&, uint64_t) override { return {}; }
};

TEST(MappedState, HasTheAccessesOfTheOther) {
  Host host;
  TensorEntry replica = host.entry("a", {2}, 0);
  replica.replica = true;
  const auto from = state_of({replica, host.entry("w", {2}, 2)});
  const auto access = std::make_shared<NoAccess>();
  from->add_access({2, 1, access});
  from->add_access({2, 1, std::make_shared<NoAccess>()});  // there is one
  const auto mapped = *map_state(from, mapping_of({{"w", {}, false, {RenameStep{"v"}}}}));
  const auto mine = *without_replicas(from);
  for (const State* each : {static_cast<const State*>(from.get()),
                            static_cast<const State*>(mapped.get()), mine.get()}) {
    TensorSpan there;
    there.device_type = 2;
    there.device_id = 1;
    EXPECT_EQ(each->access_to(there), access.get());
    there.device_id = 0;
    EXPECT_EQ(each->access_to(there), nullptr);
  }
}

TEST(MappedState, ReplicasAreLeftOut) {
  Host host;
  TensorEntry replica = host.entry("a", {2}, 0);
  replica.replica = true;
  ObjectEntry object{"o", "", EntryKind::kAuto, "application/json", {std::byte{'1'}}};
  object.replica = true;
  const auto from = state_of({replica, host.entry("b", {2}, 2)}, {object});
  const auto mine = without_replicas(from);
  ASSERT_TRUE(mine.ok());
  EXPECT_EQ(lines_of(**mine), (Lines{"b[2] auto: [0:2] = 2 3"}));
  EXPECT_TRUE((*mine)->objects().empty());
  EXPECT_EQ(*without_replicas(*mine), *mine);
  EXPECT_TRUE(from->tensors().has_replicas());
}

}  // namespace
}  // namespace shardwright
