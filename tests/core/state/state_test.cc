// SPDX-License-Identifier: Apache-2.0
//
// State: adding in bulk, what is refused, windows of pieces, cost.
#include "core/state/state.h"

#include <cstring>
#include <ctime>
#include <numeric>

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "core/tensor/strided_copy.h"

namespace shardwright {
namespace {

// Memory of a small local tensor: element i is i.
class LocalTensor {
 public:
  explicit LocalTensor(const Dims& shape, const Dims& strides = {}) : memory_(64) {
    std::iota(memory_.begin(), memory_.end(), 0);
    TensorArguments arguments;
    arguments.data = memory_.data();
    arguments.byte_size = memory_.size() * sizeof(int32_t);
    arguments.dtype = DType::kInt32;
    arguments.shape = shape;
    arguments.strides = strides;
    view_ = *make_tensor_view(arguments);
  }
  const TensorView& view() const { return view_; }

 private:
  std::vector<int32_t> memory_;
  TensorView view_;
};

std::vector<int32_t> gathered(const StridedWindow& window) {
  std::vector<int32_t> values(window_bytes(window) / sizeof(int32_t));
  gather(window, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

TensorEntry named(std::string name, std::string path = "") {
  static const LocalTensor local(Dims{2, 3});
  TensorEntry entry = plain_tensor_entry(std::move(name), local.view());
  entry.path = std::move(path);
  return entry;
}

ObjectEntry object(std::string name, std::string path = "") {
  return {std::move(name), std::move(path), EntryKind::kAuto, "application/json", {std::byte{'1'}}};
}

Status add(State& state, TensorEntry entry) {
  return state.add_tensors({std::move(entry)});
}

TEST(State, PlainEntryIsOnePieceThatCoversItsTensor) {
  const LocalTensor local(Dims{2, 3});
  const TensorEntry entry = plain_tensor_entry("w", local.view());
  EXPECT_EQ(entry.global_shape, (Dims{2, 3}));
  ASSERT_EQ(entry.pieces.size(), 1U);
  EXPECT_EQ(entry.pieces[0].box, whole_box(Dims{2, 3}));
  EXPECT_EQ(entry.kind, EntryKind::kAuto);
}

TEST(State, FindsEntriesByNameInOrder) {
  State state;
  ASSERT_TRUE(state.add_tensors({named("a"), named("b")}).ok());
  ASSERT_TRUE(state.add_tensors({named(std::string("c\0d", 3))}).ok());
  ASSERT_TRUE(state.add_objects({object("o")}).ok());
  EXPECT_EQ(state.find_tensor("b"), 1U);
  EXPECT_EQ(state.find_tensor(std::string_view("c\0d", 3)), 2U);
  EXPECT_EQ(state.find_tensor("c"), std::nullopt);
  EXPECT_EQ(state.find_tensor("o"), std::nullopt);
  EXPECT_EQ(state.find_object("o"), 0U);
  EXPECT_EQ(State().find_tensor("a"), std::nullopt);
}

TEST(State, DuplicateNamesGiveBothPathsAndChangeNothing) {
  State state;
  ASSERT_TRUE(add(state, named("a.0", R"(["a",0])")).ok());
  const Status status = state.add_tensors({named("b"), named("a.0", R"(["a","0"])")});
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_NE(status.message().find(R"(["a",0])"), std::string_view::npos) << status.to_string();
  EXPECT_NE(status.message().find(R"(["a","0"])"), std::string_view::npos) << status.to_string();
  EXPECT_EQ(status.detail("tensor"), "a.0");
  EXPECT_EQ(state.tensors().size(), 1U);
  EXPECT_EQ(state.find_tensor("b"), std::nullopt);
  EXPECT_EQ(state.find_tensor("a.0"), 0U);
  EXPECT_TRUE(add(state, named("b")).ok());
}

TEST(State, DuplicatesInsideTheFirstBatchChangeNothing) {
  State state;
  EXPECT_EQ(state.add_tensors({named("a"), named("b"), named("a")}).code(),
            StatusCode::kAlreadyExists);
  EXPECT_TRUE(state.tensors().empty());
  EXPECT_EQ(state.find_tensor("a"), std::nullopt);
}

TEST(State, TensorsAndObjectsShareTheNames) {
  State state;
  ASSERT_TRUE(add(state, named("a")).ok());
  ASSERT_TRUE(state.add_objects({object("o")}).ok());
  EXPECT_EQ(state.add_objects({object("a")}).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(add(state, named("o")).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(state.objects().size(), 1U);
}

TEST(State, RefusesBadNames) {
  State state;
  EXPECT_EQ(add(state, named("\xFF")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(add(state, named(std::string(kMaxNameBytes + 1, 'a'))).code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(add(state, named(std::string(kMaxNameBytes, 'a'))).ok());
  EXPECT_EQ(state.add_objects({object("\xFF")}).code(), StatusCode::kInvalidArgument);
}

TEST(State, ChecksThatThePathJoinsToTheNameAndKeepsItCanonical) {
  State state;
  EXPECT_EQ(add(state, named("a.1", R"(["a",2])")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(add(state, named("a.1", R"(["a",)")).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(add(state, named("a.1", R"([ "\u0061", [1] ])")).ok());
  EXPECT_EQ(state.tensors()[0].path, R"(["a",[1]])");
  EXPECT_EQ(state.add_objects({object("b", R"(["c"])")}).code(), StatusCode::kInvalidArgument);
}

TEST(State, RefusesBadObjects) {
  State state;
  ObjectEntry untyped = object("o");
  untyped.content_type = "";
  EXPECT_EQ(state.add_objects({untyped}).code(), StatusCode::kInvalidArgument);
  ObjectEntry garbled = object("o");
  garbled.content_type = "\xFF";
  EXPECT_EQ(state.add_objects({garbled}).code(), StatusCode::kInvalidArgument);
  ObjectEntry large = object("o");
  large.bytes.resize(kMaxObjectBytes + 1);
  const Status status = state.add_objects({std::move(large)});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.detail("resource"), "object_bytes");
  ObjectEntry kind = object("o");
  kind.kind = static_cast<EntryKind>(4);
  EXPECT_EQ(state.add_objects({kind}).code(), StatusCode::kInvalidArgument);
}

struct RefusedTensor {
  std::string_view what;
  std::function<void(TensorEntry&)> spoil;
  StatusCode code = StatusCode::kInvalidArgument;
};

TEST(State, RefusesBadTensors) {
  const std::vector<RefusedTensor> cases = {
      {"dtype", [](TensorEntry& e) { e.local.dtype = DType::kInvalid; }},
      {"no data", [](TensorEntry& e) { e.local.data = nullptr; }},
      {"unknown kind", [](TensorEntry& e) { e.kind = static_cast<EntryKind>(9); }},
      {"negative global shape", [](TensorEntry& e) { e.global_shape = {-2, 3}; }},
      {"global bytes overflow", [](TensorEntry& e) { e.global_shape = {int64_t{1} << 62, 1}; }},
      {"too many dimensions", [](TensorEntry& e) { e.global_shape = Dims(65, 1); }},
      {"rank of the box", [](TensorEntry& e) { e.pieces[0].box = {{0}, {2}}; }},
      {"box leaves the shape", [](TensorEntry& e) { e.pieces[0].box = {{1, 0}, {2, 3}}; },
       StatusCode::kOutOfRange},
      {"negative box", [](TensorEntry& e) { e.pieces[0].box = {{-1, 0}, {2, 3}}; }},
      {"offset beyond the local tensor",
       [](TensorEntry& e) { e.pieces[0].local_offset_elements = 1; }},
      {"negative local offset", [](TensorEntry& e) { e.pieces[0].local_offset_elements = -1; }},
      {"box larger than the local tensor", [](TensorEntry& e) { e.local.shape = {1, 3}; }},
  };
  for (const RefusedTensor& each : cases) {
    State state;
    TensorEntry entry = named("w");
    each.spoil(entry);
    const Status status = add(state, std::move(entry));
    EXPECT_EQ(status.code(), each.code) << each.what << ": " << status.to_string();
    EXPECT_EQ(status.detail("tensor"), "w") << each.what;
    EXPECT_TRUE(state.tensors().empty());
  }
}

TEST(State, OnePieceOfTheLocalShapeMayBeStrided) {
  const LocalTensor local(Dims{2, 3}, Dims{1, 2});
  TensorEntry entry = plain_tensor_entry("w", local.view());
  entry.global_shape = {4, 3};
  entry.pieces[0].box.offsets = {2, 0};
  State state;
  ASSERT_TRUE(add(state, std::move(entry)).ok());
  EXPECT_EQ(gathered(*state.piece_window(0, 0)), (std::vector<int32_t>{0, 2, 4, 1, 3, 5}));
}

TEST(State, RunsNeedAContiguousLocalTensor) {
  const LocalTensor strided(Dims{2, 3}, Dims{1, 2});
  TensorEntry entry = plain_tensor_entry("w", strided.view());
  entry.global_shape = {12};
  entry.pieces = {{{{8}, {3}}, 3}, {{{0}, {3}}, 0}};
  State state;
  EXPECT_EQ(add(state, entry).code(), StatusCode::kInvalidArgument);
  const LocalTensor dense(Dims{2, 3});
  entry.local = dense.view();
  ASSERT_TRUE(add(state, std::move(entry)).ok());
  EXPECT_EQ(gathered(*state.piece_window(0, 0)), (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(gathered(*state.piece_window(0, 1)), (std::vector<int32_t>{0, 1, 2}));
}

TEST(State, PiecesOfALocalTensorOfTheirDimensionsAreWindows) {
  const LocalTensor local(Dims{3, 4});
  TensorEntry entry = plain_tensor_entry("w", local.view());
  entry.global_shape = {9, 9};
  entry.pieces = {{{{4, 6}, {3, 2}}, 2}, {{{4, 0}, {3, 2}}, 0}};
  State state;
  ASSERT_TRUE(add(state, entry).ok());
  EXPECT_EQ(gathered(*state.piece_window(0, 0)), (std::vector<int32_t>{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(gathered(*state.piece_window(0, 1)), (std::vector<int32_t>{0, 1, 4, 5, 8, 9}));
  const LocalTensor strided(Dims{3, 4}, Dims{1, 3});
  entry.name = "strided";
  entry.local = strided.view();
  entry.pieces = {{{{0, 0}, {1, 1}}, 11}, {{{1, 0}, {2, 3}}, 4}};
  ASSERT_TRUE(add(state, entry).ok());
  EXPECT_EQ(gathered(*state.piece_window(1, 0)), (std::vector<int32_t>{11}));
  EXPECT_EQ(gathered(*state.piece_window(1, 1)), (std::vector<int32_t>{1, 4, 7, 2, 5, 8}));
}

TEST(State, WindowsMustLieInTheLocalTensor) {
  const LocalTensor local(Dims{3, 4});
  for (const int64_t offset : {-1, 3, 8, 12}) {  // of 2 x 2 elements
    TensorEntry entry = plain_tensor_entry("w", local.view());
    entry.global_shape = {9, 9};
    entry.pieces = {{{{0, 0}, {2, 2}}, offset}};
    State state;
    EXPECT_EQ(add(state, entry).code(), StatusCode::kInvalidArgument) << offset;
  }
}

TEST(State, LocalTensorMayLackLeadingExtentsOfOne) {
  const LocalTensor local(Dims{2, 3}, Dims{1, 2});
  TensorEntry entry = plain_tensor_entry("w", local.view());
  entry.global_shape = {4, 5, 2, 3};
  entry.pieces = {{{{3, 1, 0, 0}, {1, 1, 2, 3}}, 0}};
  State state;
  ASSERT_TRUE(add(state, entry).ok());
  EXPECT_EQ(state.piece_window(0, 0)->shape, (Dims{1, 1, 2, 3}));
  EXPECT_EQ(gathered(*state.piece_window(0, 0)), (std::vector<int32_t>{0, 2, 4, 1, 3, 5}));
}

TEST(State, PiecesComeInAnyOrderAndMayBeEmpty) {
  const LocalTensor local(Dims{7});
  TensorEntry entry = plain_tensor_entry("ragged", local.view());
  entry.global_shape = {6, 2};
  entry.pieces = {{{{5, 0}, {1, 1}}, 6},
                  {{{6, 0}, {0, 2}}, 0},
                  {{{0, 1}, {2, 1}}, 4},
                  {{{2, 0}, {2, 2}}, 0},
                  {{{3, 2}, {3, 0}}, 99}};
  State state;
  ASSERT_TRUE(add(state, entry).ok());
  ASSERT_EQ(state.tensors()[0].pieces.size(), 5U);
  for (size_t p = 0; p < 5; ++p) EXPECT_EQ(state.tensors()[0].pieces[p], entry.pieces[p]);
  EXPECT_EQ(gathered(*state.piece_window(0, 0)), (std::vector<int32_t>{6}));
  EXPECT_EQ(window_bytes(*state.piece_window(0, 1)), 0U);
  EXPECT_EQ(gathered(*state.piece_window(0, 2)), (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(gathered(*state.piece_window(0, 3)), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(state.piece_window(0, 4)->shape, (Dims{3, 0}));
}

TEST(State, PieceWindowHasTheShapeOfTheBox) {
  const LocalTensor local(Dims{12});
  TensorEntry entry = plain_tensor_entry("w", local.view());
  entry.global_shape = {10, 4};
  entry.pieces = {{{{2, 1}, {2, 3}}, 5}};
  State state;
  ASSERT_TRUE(add(state, std::move(entry)).ok());
  const StridedWindow window = *state.piece_window(0, 0);
  EXPECT_EQ(window.shape, (Dims{2, 3}));
  EXPECT_EQ(gathered(window), (std::vector<int32_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(state.piece_window(0, 1).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(state.piece_window(1, 0).status().code(), StatusCode::kOutOfRange);
}

TEST(State, EmptyPiecesAndRanksWithoutPiecesNeedNoMemory) {
  State state;
  TensorEntry empty = named("empty");
  empty.local = TensorView();
  empty.local.dtype = DType::kInt32;
  empty.local.shape = {0, 3};
  empty.pieces[0].box = {{2, 0}, {0, 3}};
  TensorEntry nothing = empty;
  nothing.name = "nothing";
  nothing.pieces.clear();
  ASSERT_TRUE(state.add_tensors({empty, nothing}).ok());
  EXPECT_EQ(window_bytes(*state.piece_window(0, 0)), 0U);
}

TEST(State, ScalarsHaveOneElement) {
  const LocalTensor local(Dims{});
  State state;
  ASSERT_TRUE(add(state, plain_tensor_entry("step", local.view())).ok());
  EXPECT_EQ(gathered(*state.piece_window(0, 0)), (std::vector<int32_t>{0}));
}

// A packed int4 tensor of 4 x 4 in 8 bytes, with one piece.
TensorEntry int4_entry(std::vector<uint8_t>& memory, const Box& box, int64_t local_offset) {
  TensorEntry entry;
  entry.name = "q";
  entry.local.data = reinterpret_cast<std::byte*>(memory.data());
  entry.local.dtype = DType::kInt4;
  entry.local.shape = {16};
  entry.global_shape = {4, 8};
  entry.pieces = {{box, local_offset}};
  return entry;
}

TEST(State, SubbytePiecesMustBeWholeBytes) {
  std::vector<uint8_t> memory = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE};
  State state;
  EXPECT_EQ(add(state, int4_entry(memory, {{0, 1}, {2, 4}}, 0)).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(add(state, int4_entry(memory, {{0, 2}, {2, 3}}, 0)).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(add(state, int4_entry(memory, {{0, 2}, {2, 4}}, 1)).code(), StatusCode::kUnimplemented);
  TensorEntry scalar = int4_entry(memory, {{}, {}}, 0);
  scalar.global_shape = {};
  EXPECT_EQ(add(state, scalar).code(), StatusCode::kUnimplemented);
  ASSERT_TRUE(add(state, int4_entry(memory, {{0, 2}, {2, 4}}, 4)).ok());
  const StridedWindow window = *state.piece_window(0, 0);
  std::vector<std::byte> bytes(window_bytes(window));
  gather(window, 0, bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), memory.data() + 2, 4), 0);
  EXPECT_EQ(bytes.size(), 4U);
}

TEST(State, RowsOfSubbyteWindowsMustBeWholeBytes) {
  std::vector<uint8_t> memory = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE};
  const auto windows = [&](const Dims& local, const Box& box, int64_t offset) {
    TensorEntry entry = int4_entry(memory, box, offset);
    entry.local.shape = local;
    return entry;
  };
  State state;
  EXPECT_EQ(add(state, windows({5, 3}, {{0, 0}, {2, 2}}, 0)).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(add(state, windows({4, 4}, {{0, 0}, {2, 2}}, 1)).code(), StatusCode::kUnimplemented);
  ASSERT_TRUE(add(state, windows({4, 4}, {{0, 0}, {2, 2}}, 6)).ok());
  const StridedWindow window = *state.piece_window(0, 0);
  std::vector<std::byte> bytes(window_bytes(window));
  gather(window, 0, bytes);
  EXPECT_EQ(bytes, (std::vector<std::byte>{std::byte{0x76}, std::byte{0xBA}}));
}

TEST(State, ReplaceObjectStoresBytesAndType) {
  State state;
  ASSERT_TRUE(state.add_objects({object("o")}).ok());
  state.replace_object(0, "application/octet-stream", {std::byte{7}, std::byte{8}});
  EXPECT_EQ(state.objects()[0].content_type, "application/octet-stream");
  EXPECT_EQ(state.objects()[0].bytes.size(), 2U);
  EXPECT_EQ(state.objects()[0].name, "o");
}

TEST(State, KeepaliveGoesWithTheState) {
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owner;
  {
    State state;
    state.add_keepalive(std::move(owner));
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(EntryKind, HasNames) {
  EXPECT_EQ(entry_kind_name(EntryKind::kAuto), "auto");
  EXPECT_EQ(entry_kind_name(EntryKind::kReplicated), "replicated");
  EXPECT_EQ(entry_kind_name(EntryKind::kSharded), "sharded");
  EXPECT_EQ(entry_kind_name(EntryKind::kRankLocal), "rank_local");
}

std::vector<TensorEntry> many_entries(size_t count) {
  std::vector<TensorEntry> entries(count);
  for (size_t i = 0; i < count; ++i)
    entries[i] = named("layers." + std::to_string(i) + ".attention.weight");
  return entries;
}

int64_t add_cost_ns(const std::vector<TensorEntry>& entries) {
  State state;
  const std::clock_t begin = std::clock();  // of this process: a busy machine does not count
  EXPECT_TRUE(state.add_tensors(entries).ok());
  return static_cast<int64_t>(std::clock() - begin) * (1000000000 / CLOCKS_PER_SEC);
}

// Best of a few rounds: 8 times the entries may cost at most 24 times the time, far below quadratic
// (64).
TEST(State, CostOfAddingGrowsLinearly) {
  int64_t small = INT64_MAX;
  int64_t large = INT64_MAX;
  for (int round = 0; round < 4; ++round) {
    small = std::min(small, add_cost_ns(many_entries(12500)));
    large = std::min(large, add_cost_ns(many_entries(100000)));
  }
  EXPECT_LT(large, small * 24) << "12,500 entries: " << small << " ns, 100,000 entries: " << large
                               << " ns";
  RecordProperty("add_100000_ns", std::to_string(large));
}

TEST(State, ManyBatchesStayFindable) {
  State state;
  std::vector<TensorEntry> entries = many_entries(3000);
  for (TensorEntry& entry : entries) ASSERT_TRUE(add(state, entry).ok());
  for (size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(state.find_tensor(entries[i].name), i);
}

}  // namespace
}  // namespace shardwright
