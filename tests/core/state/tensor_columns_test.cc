// SPDX-License-Identifier: Apache-2.0
//
// TensorColumns gives back what was appended, whatever shape an entry has, and forgets what is
// taken back.
#include "core/state/tensor_columns.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

std::byte memory[64];

// Entries of every form of record: plain, strided, on a device, in boxes, without pieces, scalar.
std::vector<TensorEntry> entries_of_every_form() {
  TensorEntry plain = plain_tensor_entry("plain", TensorView{memory, DType::kInt32, {2, 3}, {}});
  TensorEntry strided = plain;
  strided.name = "strided";
  strided.local.strides = {1, 2};
  strided.kind = EntryKind::kRankLocal;
  TensorEntry placed = strided;
  placed.name = "placed";
  placed.path = R"(["placed"])";
  placed.local.device_type = static_cast<int32_t>(DeviceType::kCuda);
  placed.local.device_id = 3;
  placed.local.stream = ~uint64_t{0} - 1;
  placed.local.read_only = true;
  TensorEntry boxes = plain;
  boxes.name = "boxes";
  boxes.kind = EntryKind::kSharded;
  boxes.global_shape = {4, 6};
  boxes.pieces = {{{{0, 1}, {1, 3}}, 0}, {{{3, 2}, {1, 3}}, 3}};
  boxes.layout = *Layout::create({{2}, {}, {}}, {{PlacementKind::kShard, 0, 0}});
  TensorEntry nothing = boxes;
  nothing.name = "nothing";
  nothing.pieces.clear();
  nothing.layout = nullptr;
  TensorEntry shifted = plain;  // one piece of the local shape that is not the global tensor
  shifted.name = "shifted";
  shifted.path = R"(["shifted"])";
  shifted.global_shape = {4, 3};
  shifted.pieces = {{{{2, 0}, {2, 3}}, 0}};
  const TensorEntry scalar =
      plain_tensor_entry("scalar", TensorView{memory, DType::kFloat64, {}, {}});
  return {plain, strided, placed, boxes, nothing, shifted, scalar};
}

TensorRef reference_to(const TensorEntry& entry, PieceBuffer* buffer) {
  return {entry.name,   entry.path,         entry.kind,
          entry.local,  entry.global_shape, buffer->assign(entry.global_shape.size(), entry.pieces),
          &entry.layout};
}

void append_all(const std::vector<TensorEntry>& entries, TensorColumns* columns) {
  PieceBuffer buffer;
  for (const TensorEntry& entry : entries)
    columns->append(reference_to(entry, &buffer), entry.path);
}

void expect_equal(const TensorRef& found, const TensorEntry& entry) {
  SCOPED_TRACE(entry.name);
  EXPECT_EQ(found.layout == nullptr ? nullptr : *found.layout, entry.layout);
  EXPECT_EQ(found.name, entry.name);
  EXPECT_EQ(found.path, entry.path);
  EXPECT_EQ(found.kind, entry.kind);
  EXPECT_EQ(found.local.data, entry.local.data);
  EXPECT_EQ(found.local.dtype, entry.local.dtype);
  EXPECT_TRUE(std::ranges::equal(found.local.shape, entry.local.shape));
  EXPECT_TRUE(std::ranges::equal(found.local.strides, entry.local.strides));
  EXPECT_EQ(found.local.device_type, entry.local.device_type);
  EXPECT_EQ(found.local.device_id, entry.local.device_id);
  EXPECT_EQ(found.local.stream, entry.local.stream);
  EXPECT_EQ(found.local.read_only, entry.local.read_only);
  EXPECT_TRUE(std::ranges::equal(found.global_shape, entry.global_shape));
  ASSERT_EQ(found.pieces.size(), entry.pieces.size());
  for (size_t p = 0; p < entry.pieces.size(); ++p) {
    EXPECT_EQ(found.pieces[p].box, entry.pieces[p].box);
    EXPECT_EQ(found.pieces.local_offset(p), entry.pieces[p].local_offset_elements);
  }
}

TEST(TensorColumns, GiveBackEntriesOfEveryForm) {
  const std::vector<TensorEntry> entries = entries_of_every_form();
  TensorColumns columns;
  append_all(entries, &columns);
  ASSERT_EQ(columns.size(), entries.size());
  size_t index = 0;
  for (const TensorRef found : columns) expect_equal(found, entries[index++]);
}

TEST(TensorColumns, NamesAndPathsEndWithANulThatDoesNotCount) {
  TensorColumns columns;
  append_all(entries_of_every_form(), &columns);
  for (const TensorRef found : columns) {
    EXPECT_EQ(found.name.data()[found.name.size()], '\0');
    EXPECT_EQ(found.path.data()[found.path.size()], '\0');
  }
}

TEST(TensorColumns, TakeBackLeavesWhatWasThereBefore) {
  const std::vector<TensorEntry> entries = entries_of_every_form();
  for (size_t kept = 0; kept <= entries.size(); ++kept) {
    const std::vector<TensorEntry> first(entries.begin(),
                                         entries.begin() + static_cast<std::ptrdiff_t>(kept));
    TensorColumns columns;
    append_all(first, &columns);
    const TensorColumns::Mark mark = columns.mark();
    append_all(entries, &columns);
    columns.take_back(mark);
    ASSERT_EQ(columns.size(), kept);
    append_all(entries, &columns);
    for (size_t i = 0; i < kept; ++i) expect_equal(columns[i], entries[i]);
    for (size_t i = 0; i < entries.size(); ++i) expect_equal(columns[kept + i], entries[i]);
  }
}

TEST(TensorColumns, CoversWholeLooksAtSizesOnly) {
  TensorColumns columns;
  append_all(entries_of_every_form(), &columns);
  const std::vector<bool> whole = {true, true, true, false, false, false, true};
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(covers_whole(columns[i]), whole[i]) << i;
}

}  // namespace
}  // namespace shardwright
