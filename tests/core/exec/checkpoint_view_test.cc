// SPDX-License-Identifier: Apache-2.0
//
// Views of a checkpoint: tensors of zeros and of boxes in other dimensions or in a row, read whole
// and in parts.
#include "core/exec/checkpoint_view.h"

#include <cstring>
#include <numeric>

#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/support/expect_failure.h"

namespace shardwright::exec::test {
namespace {

class View : public testing::Test {
 protected:
  View() {
    grid_ = {"grid", DType::kFloat32, {4, 6}, std::vector<std::byte>(96)};
    std::vector<float> values(24);
    std::iota(values.begin(), values.end(), 1.0F);
    std::memcpy(grid_.bytes.data(), values.data(), grid_.bytes.size());
    add_whole(&held_, grid_, true);
    fixture_.save_one(held_);
    stored_ = fixture_.open();
  }

  Result<std::shared_ptr<const Checkpoint>> view_of(Dims shape, std::vector<ViewPiece> pieces) {
    ViewContents contents;
    ViewTensor tensor;
    tensor.name = "made";
    tensor.shape = std::move(shape);
    tensor.pieces = std::move(pieces);
    contents.tensors.push_back(std::move(tensor));
    contents.identity = "test";
    return make_view(fixture_.runtime(), stored_, std::move(contents));
  }
  static std::vector<float> read(const Checkpoint& from, const Box& box) {
    std::vector<float> values(static_cast<size_t>(box_element_count(box)), -1.0F);
    BoxRead read;
    read.box = box;
    read.target.data = reinterpret_cast<std::byte*>(values.data());
    read.target.dtype = DType::kFloat32;
    read.target.shape = box.sizes;
    const auto done = from.read_boxes({&read, 1}, {}, CallContext());
    EXPECT_TRUE(done.ok()) << done.status().to_string();
    return values;
  }
  using Floats = std::vector<float>;

  Dense grid_;
  Holding held_;
  CheckpointFixture fixture_;
  std::shared_ptr<const Checkpoint> stored_;
};

TEST_F(View, HasZerosBesideWhatIsStored) {
  const auto view =
      view_of({4, 8}, {{{{0, 0}, {4, 6}}, 0, {0, 0}}, {{{0, 6}, {4, 2}}, ViewPiece::kZeros}});
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_EQ(read(**view, {{1, 4}, {2, 4}}), (Floats{11, 12, 0, 0, 17, 18, 0, 0}));
  EXPECT_EQ(read(**view, {{3, 6}, {1, 2}}), (Floats{0, 0}));
}

TEST_F(View, HasElementsOfBoxesInARow) {
  // Zeros, the first two columns, then a row, as parameters lie in a bucket.
  const auto view = view_of({16}, {{{{0}, {2}}, ViewPiece::kZeros},
                                   {{{2}, {8}}, 0, {0, 0}, {4, 2}},
                                   {{{10}, {6}}, 0, {2, 0}, {1, 6}}});
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_EQ(read(**view, whole_box(Dims{16})),
            (Floats{0, 0, 1, 2, 7, 8, 13, 14, 19, 20, 13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(read(**view, {{3}, {9}}), (Floats{2, 7, 8, 13, 14, 19, 20, 13, 14}));
}

TEST_F(View, MayHaveOtherDimensionsOfOne) {
  const auto inserted = view_of({4, 1, 6}, {{{{0, 0, 0}, {4, 1, 6}}, 0, {0, 0}, {4, 6}}});
  ASSERT_TRUE(inserted.ok()) << inserted.status().to_string();
  EXPECT_EQ(read(**inserted, {{1, 0, 2}, {2, 1, 2}}), (Floats{9, 10, 15, 16}));
  const auto dropped = view_of({6}, {{{{0}, {6}}, 0, {2, 0}, {1, 6}}});
  ASSERT_TRUE(dropped.ok()) << dropped.status().to_string();
  EXPECT_EQ(read(**dropped, {{2}, {3}}), (Floats{15, 16, 17}));
}

TEST_F(View, IsReadThroughAnotherOne) {
  ViewContents contents;
  contents.tensors.push_back(tensor_as_stored(stored_->catalog(), 0));
  contents.identity = "first";
  stored_ = *make_view(fixture_.runtime(), stored_, std::move(contents));
  const auto view = view_of({8}, {{{{0}, {8}}, 0, {0, 4}, {4, 2}}});
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_EQ(read(**view, {{1}, {4}}), (Floats{6, 11, 12, 17}));
}

// Halves of columns that lie one behind the other in a tensor of one dimension, as in a bucket.
TEST_F(View, HasColumnsOfARunThroughAnotherView) {
  ViewContents contents;
  ViewTensor flat;
  flat.name = "flat";
  flat.shape = {24};
  flat.pieces = {{{{0}, {24}}, 0, {0, 0}, {4, 6}}};
  contents.tensors = {flat};
  contents.identity = "flat";
  stored_ = *make_view(fixture_.runtime(), stored_, std::move(contents));
  ViewContents halves;
  ViewTensor half;
  half.name = "halves";
  half.shape = {4, 3};
  half.pieces = {{{{0, 0}, {4, 3}}, 0, {0}}};
  halves.tensors = {half};
  half.name = "others";
  half.pieces = {{{{0, 0}, {4, 3}}, 0, {12}}};
  halves.tensors.push_back(half);
  halves.identity = "halves";
  stored_ = *make_view(fixture_.runtime(), stored_, std::move(halves));
  const auto view = view_of({4, 6}, {{{{0, 0}, {4, 3}}, 0, {0, 0}}, {{{0, 3}, {4, 3}}, 1, {0, 0}}});
  ASSERT_TRUE(view.ok()) << view.status().to_string();
  EXPECT_EQ(read(**view, {{0, 1}, {2, 4}}), (Floats{2, 3, 13, 14, 5, 6, 16, 17}));
}

TEST_F(View, RefusesPiecesThatDoNotFit) {
  EXPECT_FAILURE(view_of({4, 6}, {{{{0, 0}, {4, 6}}, ViewPiece::kZeros}}).status(),
                 StatusCode::kInvalidArgument, "made", "nothing of it is stored");
  EXPECT_FAILURE(view_of({8}, {{{{0}, {8}}, 0, {0, 0}, {4, 3}}}).status(),
                 StatusCode::kInvalidArgument, "made", "other sizes");
  EXPECT_FAILURE(view_of({2, 4}, {{{{0, 0}, {2, 4}}, 0, {0, 0}, {4, 2}}}).status(),
                 StatusCode::kInvalidArgument, "other sizes");
  EXPECT_FAILURE(view_of({8}, {{{{0}, {8}}, 0, {1, 0}, {4, 2}}}).status(),
                 StatusCode::kInvalidArgument, "made");
  EXPECT_FAILURE(view_of({4, 8}, {{{{0, 0}, {4, 6}}, 0, {0, 0}}}).status(),
                 StatusCode::kInvalidArgument, "made");
}

}  // namespace
}  // namespace shardwright::exec::test
