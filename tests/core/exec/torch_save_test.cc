// SPDX-License-Identifier: Apache-2.0
//
// A format whose tensors may be views across their storage, through everything that reads: large
// ones beside packed ones on a real file system, ranks with boxes of them, verification,
// conversion.
#include <gtest/gtest.h>

#include "core/exec/convert.h"
#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/core/format/torch_save/sample_values.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

using shardwright::test::RandomSource;

constexpr int64_t kRows = 1500;
constexpr int64_t kColumns = 2100;

// rows [kRows, kColumns] of one storage, and its transposed view; some of its columns.
class TorchSaveReading : public testing::Test {
 protected:
  TorchSaveReading() : fixture_(storage::make_posix_storage(directory_.path())) {
    RandomSource random(15);
    rows_ = random_dense(random, "rows", DType::kFloat32, {kRows, kColumns});
    columns_ = turned(rows_);
    some_ = {"some", DType::kFloat32, {kRows, 7}, rows_.box_bytes({{0, 11}, {kRows, 7}})};
    format::archive::PickleWriter pickle(format::archive::PickleProtocol::k2);
    pickle.empty_dict();
    const auto add = [&](std::string_view name, int64_t offset, std::vector<int64_t> shape,
                         std::vector<int64_t> strides) {
      pickle.text(name);
      format::torch_save::test::add_tensor(
          {"0", kRows * kColumns, offset, std::move(shape), std::move(strides)}, &pickle);
      pickle.set_item();
    };
    add("rows", 0, {kRows, kColumns}, {kColumns, 1});
    add("columns", 0, {kColumns, kRows}, {1, kColumns});
    add("some", 11, {kRows, 7}, {kColumns, 1});
    pickle.text("step").integer(15).set_item();
    const std::string storage(reinterpret_cast<const char*>(rows_.bytes.data()),
                              rows_.bytes.size());
    const std::string file =
        format::torch_save::test::file_of(std::move(pickle).finish(), {storage});
    fixture_.put("value.pt", std::as_bytes(std::span(file)));
  }
  static Dense turned(const Dense& rows) {
    Dense columns{"columns", rows.dtype, {kColumns, kRows}, rows.bytes};
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column)
        std::copy_n(rows.bytes.begin() + (row * kColumns + column) * 4, 4,
                    columns.bytes.begin() + (column * kRows + row) * 4);
    }
    return columns;
  }

  shardwright::test::TemporaryDirectory directory_;
  CheckpointFixture fixture_;
  Dense rows_;
  Dense columns_;
  Dense some_;
};

TEST_F(TorchSaveReading, RanksLoadBoxesOfViews) {
  std::vector<Holding> holdings(3);
  std::vector<std::shared_ptr<State>> states;
  for (int64_t rank = 0; rank < 3; ++rank) {
    Holding& holding = holdings[static_cast<size_t>(rank)];
    add_boxes(&holding, columns_, {{{rank * 700, 0}, {700, kRows}}}, false);
    add_boxes(&holding, rows_, {{{rank * 500, 100}, {500, 1999}}}, false);
    add_whole(&holding, some_, false);
    add_object(&holding, "step", "");
    states.push_back(holding.state);
  }
  for (const auto& report : fixture_.load(states, {}, "value.pt"))
    ASSERT_TRUE(report.ok()) << report.status().to_string();
  for (const Holding& holding : holdings) {
    EXPECT_TRUE(holds(holding, 0, columns_));
    EXPECT_TRUE(holds(holding, 1, rows_));
    EXPECT_TRUE(holds(holding, 2, some_));
    const std::vector<std::byte>& step = holding.state->objects()[0].bytes;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(step.data()), step.size()), "15");
  }
}

TEST_F(TorchSaveReading, AllOfItIsReadAndItsChecksumsCompared) {
  const auto report = fixture_.open("value.pt")->verify(true, CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->checksums);
  EXPECT_GE(report->bytes_read, rows_.bytes.size() * 2);
  std::vector<std::byte> damaged = fixture_.get("value.pt");
  damaged[damaged.size() / 2] ^= std::byte{1};
  fixture_.put("value.pt", damaged);
  const auto found = fixture_.open("value.pt")->find_damage(true, CallContext());
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  ASSERT_EQ(found->damage.size(), 2U);  // the storage as a whole, and the view across all of it
  EXPECT_EQ(found->damage[0].file, "value.pt");
  EXPECT_EQ(found->damage[0].tensor, "rows");
  EXPECT_EQ(found->damage[1].tensor, "columns");
  EXPECT_TRUE(fixture_.open("value.pt")->find_damage(false, CallContext())->damage.empty());
}

TEST_F(TorchSaveReading, ConvertsToWhatHoldsThePackedBytes) {
  const auto report = convert(fixture_.runtime(), fixture_.runtime(), fixture_.location("value.pt"),
                              fixture_.location("native"), ConvertOptions(), CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  Holding holding;
  add_whole(&holding, columns_, false);
  add_whole(&holding, some_, false);
  const auto loaded = fixture_.load({holding.state}, {}, "native");
  ASSERT_TRUE(loaded[0].ok()) << loaded[0].status().to_string();
  EXPECT_TRUE(holds(holding, 0, columns_));
  EXPECT_TRUE(holds(holding, 1, some_));
}

}  // namespace
}  // namespace shardwright::exec::test
