// SPDX-License-Identifier: Apache-2.0
//
// Loading into states: rules for what is missing, unexpected or of another dtype; plans that do not
// fit; ranks that fail.
#include "core/exec/load.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/core/plan/read_list.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

using plan::test::on_reads;
using plan::test::ReadList;
using shardwright::test::RandomSource;

struct LoadTest : testing::Test {
  RandomSource random;
  CheckpointFixture fixture;
  Dense weight = random_dense(random, "weight", DType::kFloat32, {64, 32});
  Dense bias = random_dense(random, "bias", DType::kFloat32, {64});

  void SetUp() override {
    Holding holding;
    add_whole(&holding, weight, true);
    add_whole(&holding, bias, true);
    add_object(&holding, "config", "hello");
    fixture.save_one(holding);
  }
};

TEST_F(LoadTest, FillsTensorsAndObjectsAndReportsThem) {
  Holding target;
  add_whole(&target, weight, false);
  add_whole(&target, bias, false);
  add_object(&target, "config", "");
  const Result<Report> report = fixture.load_one(target);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(holds(target, 0, weight));
  EXPECT_TRUE(holds(target, 1, bias));
  const ObjectEntry& config = target.state->objects()[0];
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(config.bytes.data()), config.bytes.size()),
            "hello");
  EXPECT_EQ(report->operation, "load");
  EXPECT_EQ(report->verify, "on_read");
  EXPECT_EQ(report->tensors, 2U);
  EXPECT_EQ(report->objects, 1U);
  EXPECT_EQ(report->bytes_state, weight.bytes.size() + bias.bytes.size() + 5);
  EXPECT_EQ(report->bytes_total, report->bytes_state);
  EXPECT_EQ(report->bytes_read - report->bytes_over_read, report->bytes_state);
  EXPECT_EQ(report->files, 1U);
  EXPECT_GT(report->bytes_files, report->bytes_total);
  EXPECT_EQ(report->loaded.size(), 3U);
  EXPECT_TRUE(report->missing.empty());
  EXPECT_TRUE(report->unexpected.empty());
}

TEST_F(LoadTest, SaysThatDigestsWereNotChecked) {
  Holding target;
  add_whole(&target, bias, false);
  LoadOptions options;
  options.verify = VerifyRule::kOff;
  const Result<Report> report = fixture.load_one(target, options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->verify, "off");
  EXPECT_TRUE(holds(target, 0, bias));
}

TEST_F(LoadTest, ReportsWhatIsStoredAndNotWanted) {
  Holding target;
  add_whole(&target, weight, false);
  Result<Report> report = fixture.load_one(target);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->unexpected.size(), 2U);
  LoadOptions options;
  options.rules.unexpected = plan::UnexpectedRule::kError;
  EXPECT_EQ(fixture.load_one(target, options).status().code(), StatusCode::kInvalidArgument);
}

TEST(Load, SaysThatEntriesOfRanksThatAreGoneWereNotLoaded) {
  RandomSource random;
  CheckpointFixture fixture;
  std::vector<std::shared_ptr<State>> states;
  std::vector<Holding> holdings(5);
  for (Holding& holding : holdings) {
    add_whole(&holding, random_dense(random, "rng", DType::kUint8, {16}), true,
              EntryKind::kRankLocal);
    states.push_back(holding.state);
  }
  fixture.save(states);
  states.resize(3);
  for (const Result<Report>& report : fixture.load(states)) {
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    ASSERT_EQ(report->notes.size(), 1U);
    EXPECT_NE(report->notes[0].find("2 stored rank_local entries belong to ranks from 3 to 4"),
              std::string::npos)
        << report->notes[0];
  }
}

TEST_F(LoadTest, LeavesMissingEntriesUntouchedWhenAskedTo) {
  const Dense absent = random_dense(random, "absent", DType::kFloat32, {8});
  Holding target;
  add_whole(&target, absent, false);
  add_whole(&target, bias, false);
  const std::vector<std::byte> before = *target.memory[0];
  EXPECT_EQ(fixture.load_one(target).status().code(), StatusCode::kNotFound);
  LoadOptions options;
  options.rules.missing = plan::MissingRule::kReport;
  const Result<Report> report = fixture.load_one(target, options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(*target.memory[0], before);
  EXPECT_EQ(report->missing, std::vector<std::string>{"absent"});
  EXPECT_TRUE(holds(target, 1, bias));
}

TEST_F(LoadTest, CastsOnlyWhenAllowedAndSaysSo) {
  Dense wide = bias;
  wide.dtype = DType::kFloat64;
  wide.bytes.assign(64 * 8, std::byte{0});
  Dense stored = bias;
  for (size_t i = 0; i < 64; ++i) {
    const float value = static_cast<float>(i) + 0.5F;
    std::memcpy(stored.bytes.data() + i * 4, &value, 4);
  }
  Holding holding;
  add_whole(&holding, stored, true);
  fixture.save_one(holding);
  Holding target;
  add_whole(&target, wide, false);
  const Status refused = fixture.load_one(target).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.to_string();
  LoadOptions options;
  options.rules.cast = plan::CastRule::kAllow;
  const Result<Report> report = fixture.load_one(target, options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  ASSERT_EQ(report->casts.size(), 1U);
  EXPECT_EQ(report->casts[0].stored, "float32");
  EXPECT_EQ(report->casts[0].wanted, "float64");
  for (size_t i = 0; i < 64; ++i) {
    double value = 0;
    std::memcpy(&value, target.memory[0]->data() + i * 8, 8);
    ASSERT_EQ(value, static_cast<double>(i) + 0.5);
  }
}

TEST_F(LoadTest, RefusesAPlanOfAnotherGenerationOrState) {
  Holding target;
  add_whole(&target, bias, false);
  const auto checkpoint = fixture.open();
  plan::LoadPlan plan = *plan_load(*checkpoint, *target.state, {}, 0);
  const auto run = [&](const plan::LoadPlan& tried, State& state) {
    return execute_load(fixture.runtime(), *checkpoint, tried, state, {}, CallContext())
        .status()
        .code();
  };
  EXPECT_EQ(run(plan, *target.state), StatusCode::kOk);
  plan::LoadPlan stale = plan;
  stale.generation = std::string(32, '0');
  EXPECT_EQ(run(stale, *target.state), StatusCode::kFailedPrecondition);
  Holding other;
  add_whole(&other, weight, false);
  EXPECT_EQ(run(plan, *other.state), StatusCode::kFailedPrecondition);
  Holding more;
  add_whole(&more, bias, false);
  add_whole(&more, weight, false);
  EXPECT_EQ(run(plan, *more.state), StatusCode::kFailedPrecondition)
      << "an entry would stay unfilled in silence";
}

// 0, 1, 2, ... row by row, zero where `columns` is passed.
Dense counted(const Dims& shape, int64_t columns) {
  Dense dense{"table", DType::kFloat32, shape, {}};
  for (int64_t i = 0; i < dense.count(); ++i) {
    const int64_t column = i % shape[1];
    const float value =
        column < columns ? static_cast<float>(i / shape[1] * columns + column) : 0.0F;
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    dense.bytes.insert(dense.bytes.end(), bytes, bytes + sizeof(value));
  }
  return dense;
}

// Megatron, allow_shape_mismatch: both shapes are anchored at the origin.
TEST_F(LoadTest, PadsWithZerosAndCropsWhenAskedTo) {
  Holding stored;
  add_boxes(&stored, counted({2, 32}, 32), {{{0, 0}, {2, 9}}, {{0, 9}, {2, 23}}}, true);
  fixture.save_one(stored);
  LoadOptions options;
  options.rules.shape = plan::ShapeRule::kCropAndPad;
  const Dense padded = counted({2, 36}, 32);
  Holding wider;
  add_boxes(&wider, padded, {{{0, 0}, {2, 18}}, {{0, 18}, {2, 18}}}, false);
  EXPECT_EQ(fixture.load_one(wider).status().code(), StatusCode::kInvalidArgument);
  const Result<Report> report = fixture.load_one(wider, options);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(holds(wider, 0, padded));
  ASSERT_EQ(report->shapes.size(), 1U);
  EXPECT_EQ(report->shapes[0].stored, (std::vector<int64_t>{2, 32}));
  EXPECT_EQ(report->shapes[0].wanted, (std::vector<int64_t>{2, 36}));
  EXPECT_NE(report->to_json().find("\"shapes\""), std::string::npos);
  Dense cropped{"table", DType::kFloat32, {2, 28}, {}};
  cropped.bytes = counted({2, 32}, 32).box_bytes({{0, 0}, {2, 28}});
  Holding narrower;
  add_boxes(&narrower, cropped, {{{0, 0}, {2, 14}}, {{0, 14}, {2, 14}}}, false);
  ASSERT_TRUE(fixture.load_one(narrower, options).ok());
  EXPECT_TRUE(holds(narrower, 0, cropped));
  // Nothing of what is wanted is stored.
  Holding outside;
  add_boxes(&outside, counted({2, 80}, 32), {{{0, 40}, {2, 40}}}, false);
  ASSERT_TRUE(fixture.load_one(outside, options).ok());
  EXPECT_TRUE(holds(outside, 0, counted({2, 80}, 32)));
}

TEST_F(LoadTest, RefusesAPlanThatLeavesItsBoxes) {
  Holding target;
  add_whole(&target, bias, false);
  const auto checkpoint = fixture.open();
  const plan::LoadPlan plan = *plan_load(*checkpoint, *target.state, {}, 0);
  const auto code_of = [&](const std::function<void(plan::LoadPlan&)>& change) {
    plan::LoadPlan changed = plan;
    change(changed);
    return execute_load(fixture.runtime(), *checkpoint, changed, *target.state, {}, CallContext())
        .status()
        .code();
  };
  EXPECT_EQ(code_of(on_reads([](ReadList& reads) { reads[0].box.sizes[0] = 63; })),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(on_reads([](ReadList& reads) { reads[0].box.sizes[0] = 65; })),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(on_reads([](ReadList& reads) { reads[0].box.offsets[0] = INT64_MIN; })),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(on_reads([](ReadList& reads) { reads[0].chunk = 1000; })),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(on_reads([](ReadList& reads) { reads[0].entry = 7; })),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(on_reads([](ReadList& reads) { reads[0].piece = 7; })),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(on_reads([](ReadList& reads) { reads.push_back(reads[0]); })),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(code_of(on_reads([](ReadList& reads) { reads.clear(); })),
            StatusCode::kFailedPrecondition);
}

TEST_F(LoadTest, RefusesReadOnlyMemory) {
  std::vector<std::byte> memory(bias.bytes.size());
  TensorView view;
  view.data = memory.data();
  view.dtype = DType::kFloat32;
  view.shape = {64};
  view.read_only = true;
  Holding target;
  ASSERT_TRUE(target.state->add_tensors({plain_tensor_entry("bias", view)}).ok());
  EXPECT_EQ(fixture.load_one(target).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(LoadTest, RefusesMemoryWhoseElementsOverlap) {
  const std::vector<std::pair<Dims, bool>> cases = {
      {Dims{1}, true}, {Dims{2}, true}, {Dims{0}, false}};
  for (const auto& [strides, apart] : cases) {
    std::vector<float> memory(128);
    TensorView view;
    view.data = reinterpret_cast<std::byte*>(memory.data());
    view.dtype = DType::kFloat32;
    view.shape = {64};
    view.strides = strides;
    Holding target;
    ASSERT_TRUE(target.state->add_tensors({plain_tensor_entry("bias", view)}).ok());
    const Status status = fixture.load_one(target).status();
    EXPECT_EQ(status.ok(), apart) << status.to_string();
    EXPECT_TRUE(apart || status.code() == StatusCode::kInvalidArgument) << status.to_string();
  }
}

TEST_F(LoadTest, SaysAbortedWhenTheCheckpointWasReplacedWhileReading) {
  const auto checkpoint = fixture.open();
  Holding second;
  add_whole(&second, weight, true);
  add_whole(&second, bias, true);
  fixture.save_one(second);
  Holding target;
  add_whole(&target, bias, false);
  auto single = collective::make_single_collective();
  const Status status =
      load(fixture.runtime(), *checkpoint, *target.state, *single, {}, CallContext()).status();
  EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
}

TEST_F(LoadTest, SaysDataLossWhenAFileIsGone) {
  const auto checkpoint = fixture.open();
  for (const std::string& key : fixture.keys("ckpt/")) {
    if (!key.ends_with("rank-00000.shw")) continue;
    ASSERT_TRUE(fixture.store()->remove(key).ok());
  }
  Holding target;
  add_whole(&target, bias, false);
  const Status status = fixture.load_one(target).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.to_string();
  EXPECT_NE(status.detail("file"), "");
}

TEST_F(LoadTest, FailsOnAllRanksWithTheCauseOfTheOneThatFailed) {
  const Dense absent = random_dense(random, "absent", DType::kFloat32, {8});
  std::vector<Holding> targets(3);
  std::vector<std::shared_ptr<State>> states;
  for (size_t rank = 0; rank < 3; ++rank) {
    add_whole(&targets[rank], rank == 1 ? absent : bias, false);
    states.push_back(targets[rank].state);
  }
  for (const Result<Report>& report : fixture.load(states)) {
    EXPECT_EQ(report.status().code(), StatusCode::kNotFound) << report.status().to_string();
    EXPECT_EQ(report.status().detail("rank"), "1") << report.status().to_string();
  }
}

TEST_F(LoadTest, AbortsWhenRanksOpenedDifferentGenerations) {
  const auto earlier = fixture.open();
  Holding second;
  add_whole(&second, bias, true);
  SaveOptions keep;
  keep.keep_generations = 2;
  fixture.save_one(second, keep);
  const auto later = fixture.open();
  std::vector<Holding> targets(2);
  for (Holding& target : targets) add_whole(&target, bias, false);
  on_ranks(2, [&](int32_t rank, collective::Collective& collective) {
    const Status status =
        load(fixture.runtime(), rank == 0 ? *earlier : *later,
             *targets[static_cast<size_t>(rank)].state, collective, {}, CallContext())
            .status();
    EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
  });
}

// Places and options are agreed before anything is read: a place that is empty is not the news
// then.
TEST_F(LoadTest, PlacesAndOptionsThatDifferAreNamedOnAllRanks) {
  struct Case {
    std::string prefix;
    LoadOptions options;
    std::string parameter;
  };
  Case cases[] = {{"lost", {}, "path"}, {"ckpt", {}, "missing"}, {"ckpt", {}, "strict"}};
  cases[1].options.rules.missing = plan::MissingRule::kReport;
  cases[2].options.rules.strict.push_back({"w*"});
  for (const Case& each : cases) {
    on_ranks(3, [&](int32_t rank, collective::Collective& collective) {
      Holding target;
      add_whole(&target, weight, false);
      const bool differs = rank == 2;
      const Status status =
          load(fixture.runtime(), fixture.location(differs ? each.prefix : "ckpt"), *target.state,
               collective, differs ? each.options : LoadOptions(), CallContext())
              .status();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
      EXPECT_EQ(status.detail("parameter"), each.parameter) << status.to_string();
      EXPECT_EQ(status.detail("rank"), "2");
    });
  }
}

// What rank 1 of two sees of a storage in which it may not read some keys.
class BlindRank {
 public:
  using Hides = std::function<bool(std::string_view key)>;
  BlindRank(std::shared_ptr<storage::Storage> inner, const Hides& hides)
      : inner_(std::move(inner)),
        blind_(storage::make_fault_storage(
            *inner_, [hides](const storage::StorageEvent& event, uint64_t*) {
              return hides(event.key) ? permission_denied("no") : Status();
            })) {}
  format::Location place(int32_t rank) const { return {rank == 1 ? blind_ : inner_, "ckpt"}; }

 private:
  std::shared_ptr<storage::Storage> inner_;
  std::shared_ptr<storage::Storage> blind_;
};

TEST_F(LoadTest, OneRankReadsTheManifestForAll) {
  const BlindRank storages(fixture.store(),
                           [](std::string_view key) { return key.ends_with("manifest.shw"); });
  on_ranks(2, [&](int32_t rank, collective::Collective& collective) {
    Holding target;
    add_whole(&target, weight, false);
    const Result<Report> loaded =
        load(fixture.runtime(), storages.place(rank), *target.state, collective, {}, CallContext());
    EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
  });
}

TEST_F(LoadTest, ARankThatCannotReadWhatAllWereToldFailsAll) {
  const BlindRank storages(fixture.store(),
                           [](std::string_view key) { return !key.ends_with("manifest.shw"); });
  on_ranks(2, [&](int32_t rank, collective::Collective& collective) {
    Holding target;
    add_whole(&target, weight, false);
    const Status status =
        load(fixture.runtime(), storages.place(rank), *target.state, collective, {}, CallContext())
            .status();
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status.to_string();
    EXPECT_EQ(status.detail("rank"), "1");
  });
}

TEST_F(LoadTest, ReportsProgress) {
  Holding target;
  add_whole(&target, weight, false);
  Progress progress;
  CallContext call;
  call.progress = &progress;
  auto single = collective::make_single_collective();
  ASSERT_TRUE(load(fixture.runtime(), fixture.location(), *target.state, *single, {}, call).ok());
  EXPECT_EQ(progress.stage.load(), static_cast<int32_t>(Stage::kDone));
  EXPECT_EQ(progress.items_done.load(), progress.items_total.load());
  EXPECT_EQ(progress.bytes_done.load(), weight.bytes.size());
  EXPECT_EQ(progress.bytes_total.load(), weight.bytes.size());
}

// A part of a tensor: its whole digest block is read, and is what progress counts.
TEST_F(LoadTest, ProgressIsNeverAboveItsTotal) {
  Holding target;
  add_boxes(&target, weight, {{{0, 0}, {2, 32}}}, false);
  std::vector<ProgressSnapshot> told;
  Progress progress;
  progress.tell([&](const ProgressSnapshot& now) { told.push_back(now); },
                fixture.runtime().clock(), 0);
  CallContext call;
  call.progress = &progress;
  auto single = collective::make_single_collective();
  const Result<Report> report =
      load(fixture.runtime(), fixture.location(), *target.state, *single, {}, call);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  progress.tell_the_end();
  EXPECT_GT(report->bytes_over_read, 0U);
  for (const ProgressSnapshot& now : told) EXPECT_LE(now.bytes_done, now.bytes_total);
  EXPECT_EQ(told.back().bytes_done, report->bytes_read);
  EXPECT_EQ(told.back().bytes_total, report->bytes_read);
}

TEST_F(LoadTest, WritesATraceWhenAskedTo) {
  const shardwright::test::TemporaryDirectory directory;
  Holding target;
  add_whole(&target, weight, false);
  LoadOptions options;
  options.trace_path = directory.path() + "/trace.json";
  ASSERT_TRUE(fixture.load_one(target, options).ok());
  std::ifstream file(options.trace_path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const std::string_view span : {"\"plan\"", "\"read\"", "\"check and copy\""}) {
    EXPECT_NE(text.find(span), std::string::npos) << text;
  }
}

TEST(Load, KeepsWithinTheStagingBudget) {
  RandomSource random;
  CheckpointFixture fixture;
  const Dense truth = random_dense(random, "w", DType::kUint8, {24 << 20});
  Holding holding;
  add_whole(&holding, truth, true);
  fixture.save_one(holding);
  RuntimeOptions options;
  options.threads = 4;
  options.memory_budget = 8 << 20;
  const auto runtime = std::move(*Runtime::create(options));
  // Columns, so that nothing can be read in place.
  Holding target;
  Dense shaped = truth;
  add_boxes(&target, shaped, {{{1}, {(24 << 20) - 1}}, {{0}, {1}}}, false);
  auto single = collective::make_single_collective();
  const Result<Report> report =
      load(*runtime, fixture.location(), *target.state, *single, {}, CallContext());
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_LE(report->staging_peak_bytes, uint64_t{8} << 20);
  EXPECT_TRUE(holds(target, 0, truth));
}

}  // namespace
}  // namespace shardwright::exec::test
