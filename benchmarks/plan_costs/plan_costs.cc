// SPDX-License-Identifier: Apache-2.0
//
// Cost of planning: CPU seconds of this thread at fixed sizes, and the slope of log(time) over
// log(items) on regular, random and adversarial inputs. Figures are printed, and compared with
// bounds that hold on a quiet machine; `make bench` runs it, no test does.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <optional>
#include <random>

#include "core/plan/describe/replica_digests.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/make_load_plan.h"
#include "core/plan/save/global_plan.h"
#include "tests/core/plan/described.h"
#include "tests/core/plan/random_world.h"

namespace shardwright::plan::test {
namespace {

constexpr int64_t kMostPower = 18;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Least of three runs; one is enough for work that takes long.
double time_of(const std::function<void()>& work) {
  double least = 1e30;
  for (int i = 0; i < 3; ++i) {
    const double begin = cpu_seconds();
    work();
    least = std::min(least, cpu_seconds() - begin);
    if (least > 0.2) break;
  }
  return least;
}

State plain_state(int64_t tensors) {
  std::vector<Holding> holdings;
  for (int64_t t = 0; t < tensors; ++t) {
    holdings.push_back(
        whole("model.layers." + std::to_string(t / 10) + ".attention.weight_" + std::to_string(t),
              {256}));
  }
  return state_of(holdings);
}

// Puts the local plans together, where they lie, and plans.
Result<GlobalSavePlan> plan_all(std::span<const LocalPlan> locals) {
  std::vector<Digest128> digests;
  std::vector<PartView> parts;
  for (const LocalPlan& local : locals) {
    digests.push_back(local.part.description_digest);
    parts.push_back(view_of(local.part));
  }
  std::vector<Description> descriptions;
  for (const int32_t rank : representative_ranks(digests))
    descriptions.push_back(locals[static_cast<size_t>(rank)].description);
  SHW_ASSIGN_OR_RETURN(const RankPlans ranks,
                       make_rank_plans(digests, std::move(descriptions), std::move(parts), {}));
  return make_global_plan(ranks, {});
}

TEST(PlanCost, HundredThousandTensorsOfOneRank) {
  const State state = plain_state(100000);
  const double seconds = time_of([&] {
    const Result<LocalPlan> local = make_local_plan(state, {}, {0, 1}, {});
    ASSERT_TRUE(local.ok());
    const Result<GlobalSavePlan> plan = plan_all(std::span(&*local, 1));
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->writes.item_counts[0], 100000U);
  });
  RecordProperty("cpu_ms", std::to_string(seconds * 1e3));
  printf("100,000 local tensors: %.1f ms\n", seconds * 1e3);
  EXPECT_LT(seconds, 0.3);
}

// Local plans of ranks that hold one row block each of every tensor.
std::vector<LocalPlan> sharded_ranks(int64_t ranks, int64_t tensors) {
  std::vector<State> states;
  for (int64_t r = 0; r < ranks; ++r) {
    std::vector<Holding> holdings;
    for (int64_t t = 0; t < tensors; ++t) {
      holdings.push_back({"layer." + std::to_string(t),
                          DType::kFloat32,
                          {8 * ranks, 16},
                          {box({8 * r, 0}, {8, 16})}});
    }
    states.push_back(state_of(holdings));
  }
  return local_plans(states);
}

TEST(PlanCost, SixtyFourRanksOfAThousandTensors) {
  const std::vector<LocalPlan> locals = sharded_ranks(64, 1000);
  const double seconds = time_of([&] { ASSERT_TRUE(plan_all(locals).ok()); });
  RecordProperty("cpu_ms", std::to_string(seconds * 1e3));
  printf("64 x 1,000 sharded: %.1f ms\n", seconds * 1e3);
  EXPECT_LT(seconds, 0.2);
}

// One tensor cut into about n boxes.
using MakeBoxes = std::function<std::vector<Box>(int64_t n, Dims* shape)>;

std::vector<Box> rows(int64_t n, Dims* shape) {
  *shape = {n, 4};
  std::vector<Box> boxes;
  for (int64_t i = 0; i < n; ++i) boxes.push_back(box({i, 0}, {1, 4}));
  return boxes;
}

std::vector<Box> square_grid(int64_t n, Dims* shape) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  *shape = {2 * side, 3 * side};
  std::vector<Box> boxes;
  for (int64_t i = 0; i < side; ++i) {
    for (int64_t k = 0; k < side; ++k) boxes.push_back(box({2 * i, 3 * k}, {2, 3}));
  }
  return boxes;
}

std::vector<Box> random_tiling(int64_t n, Dims* shape) {
  shardwright::test::RandomSource random(uint64_t{7});
  *shape = {1 << 20, 1 << 20, 1 << 20};
  std::vector<Box> boxes = random_pieces(random, whole_box(*shape), n);
  std::shuffle(boxes.begin(), boxes.end(), std::mt19937_64(3));
  return boxes;
}

// Half of the boxes are thin and as long as the tensor, so no single dimension tells them apart.
std::vector<Box> long_and_thin(int64_t n, Dims* shape) {
  const int64_t half = n / 2;
  *shape = {2 * half, half};
  std::vector<Box> boxes;
  for (int64_t i = 0; i < half; ++i) boxes.push_back(box({0, i}, {half, 1}));
  for (int64_t i = 0; i < half; ++i) boxes.push_back(box({half + i, 0}, {1, half}));
  std::shuffle(boxes.begin(), boxes.end(), std::mt19937_64(3));
  return boxes;
}

// All boxes begin at one corner region: each is a shell of the next.
std::vector<Box> staircase(int64_t n, Dims* shape) {
  const int64_t steps = n / 2;
  *shape = {steps + 1, steps};
  std::vector<Box> boxes;
  for (int64_t i = 0; i < steps; ++i) {
    boxes.push_back(box({0, i}, {i + 1, 1}));
    boxes.push_back(box({i + 1, i}, {steps - i, 1}));
  }
  std::shuffle(boxes.begin(), boxes.end(), std::mt19937_64(3));
  return boxes;
}

// Long rows left and right of columns that every row's neighbours reach over, so that runs of boxes
// as they are listed cover what they do not hold.
std::vector<Box> around_columns(int64_t n, Dims* shape) {
  const int64_t half = n / 2;
  *shape = {half, 3 * half};
  std::vector<Box> boxes;
  for (int64_t i = 0; i < half / 2; ++i) {
    boxes.push_back(box({2 * i, 0}, {2, half}));
    boxes.push_back(box({2 * i, 2 * half}, {2, half}));
  }
  for (int64_t i = 0; i < half; ++i) boxes.push_back(box({0, half + i}, {half, 1}));
  return boxes;
}

// The same with few columns, which are not noticed where a few boxes are tried.
std::vector<Box> around_few_columns(int64_t n, Dims* shape) {
  const int64_t rows = n / 2 - n / 200;
  const int64_t columns = n / 100;
  *shape = {rows, 3 * columns};
  std::vector<Box> boxes;
  for (int64_t i = 0; i < rows; ++i) {
    boxes.push_back(box({i, 0}, {1, columns}));
    boxes.push_back(box({i, 2 * columns}, {1, columns}));
  }
  for (int64_t i = 0; i < columns; ++i) boxes.push_back(box({0, columns + i}, {rows, 1}));
  return boxes;
}

// Rows of which every second one is cut at its own place, in order: no grid, but neighbours in
// order.
std::vector<Box> ragged_rows(int64_t n, Dims* shape) {
  const int64_t height = n * 2 / 3;
  *shape = {height, 64};
  std::vector<Box> boxes;
  for (int64_t i = 0; i < height; ++i) {
    const int64_t at = i % 2 == 0 ? 64 : 1 + i % 63;
    boxes.push_back(box({i, 0}, {1, at}));
    if (at < 64) boxes.push_back(box({i, at}, {1, 64 - at}));
  }
  return boxes;
}

std::vector<Box> shuffled_ragged_rows(int64_t n, Dims* shape) {
  std::vector<Box> boxes = ragged_rows(n, shape);
  std::shuffle(boxes.begin(), boxes.end(), std::mt19937_64(3));
  return boxes;
}

struct Shape {
  const char* name;
  MakeBoxes make;
};
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{"rows", rows},
                                         {"grid", square_grid},
                                         {"random", random_tiling},
                                         {"long and thin", long_and_thin},
                                         {"staircase", staircase},
                                         {"around columns", around_columns},
                                         {"around few columns", around_few_columns},
                                         {"ragged rows", ragged_rows},
                                         {"shuffled ragged rows", shuffled_ragged_rows}};
  return all;
}

// A line through points (log2 n, log2 time).
class Line {
 public:
  void add(double x, double seconds) {
    const double y = std::log2(seconds);
    sum_x_ += x;
    sum_y_ += y;
    sum_xx_ += x * x;
    sum_xy_ += x * y;
    ++points_;
  }
  double slope() const {
    return (points_ * sum_xy_ - sum_x_ * sum_y_) / (points_ * sum_xx_ - sum_x_ * sum_x_);
  }

 private:
  double sum_x_ = 0;
  double sum_y_ = 0;
  double sum_xx_ = 0;
  double sum_xy_ = 0;
  int points_ = 0;
};

// Slope of the times at n = 2^12 to 2^18. Neighbours on the machine can spoil one round of
// measuring, not three: rounds end when one is below the limit.
double slope_of(const std::string& name, double limit,
                const std::function<double(int64_t)>& time_at) {
  double least = 1e30;
  for (int round = 0; round < 3 && least >= limit; ++round) {
    Line line;
    printf("%-40s", name.c_str());
    for (int64_t power = 12; power <= kMostPower; power += 2) {
      const double seconds = time_at(int64_t{1} << power);
      line.add(static_cast<double>(power), seconds);
      printf(" %9.2f ms", seconds * 1e3);
    }
    least = std::min(least, line.slope());
    printf("  slope %.2f\n", line.slope());
  }
  return least;
}

LocalPlan plan_of(const Dims& shape, const std::vector<Box>& boxes) {
  return *make_local_plan(state_of({{"w", DType::kInt8, shape, boxes}}), {}, {0, 1}, {});
}

class PlanSlope : public testing::TestWithParam<size_t> {};

TEST_P(PlanSlope, OfAGlobalPlan) {
  const Shape& shape = shapes()[GetParam()];
  const double slope = slope_of(std::string("global plan, ") + shape.name, 1.35, [&](int64_t n) {
    Dims extents;
    const std::vector<Box> boxes = shape.make(n, &extents);
    const LocalPlan local = plan_of(extents, boxes);
    return time_of([&] { ASSERT_TRUE(plan_all(std::span(&local, 1)).ok()); });
  });
  // Sorting n boxes is 1.1, caches that 2^18 of them outgrow add to it; what scans is above 1.5.
  EXPECT_LT(slope, 1.35);
}

// Tensors of n chunks each, 2^most chunks in all, so that every n uses the same memory.
Catalog many_of(const Shape& shape, int64_t n, int64_t most) {
  Dims extents;
  std::vector<CatalogBuilder::Chunk> chunks;
  for (const Box& each : shape.make(n, &extents)) chunks.push_back({each, 0});
  Catalog catalog;
  CatalogBuilder::Tensor tensor;
  tensor.name = "w";
  tensor.dtype = DType::kInt8;
  tensor.kind = EntryKind::kSharded;
  tensor.shape = extents;
  for (int64_t t = 0; t < (int64_t{1} << most) / n; ++t)
    EXPECT_TRUE(CatalogBuilder(&catalog).add_tensor(tensor, chunks).ok());
  return catalog;
}

// From 2^10 to 2^20 chunks, time per chunk. Neighbours on the machine can spoil one round of
// measuring, not three.
TEST_P(PlanSlope, OfAProof) {
  const Shape& shape = shapes()[GetParam()];
  const int64_t most = 20;
  double least = 1e30;
  for (int round = 0; round < 3 && least > 1.1; ++round) {
    Line line;
    printf("%-40s", (std::string("proof, ") + shape.name).c_str());
    for (const int64_t power : {int64_t{10}, most / 2 + 5, most}) {
      const Catalog catalog = many_of(shape, int64_t{1} << power, most);
      const double seconds = time_of([&] { ASSERT_TRUE(prove_all_covers(catalog).ok()); });
      const auto chunks = static_cast<double>(catalog.chunk_count());
      line.add(static_cast<double>(power), seconds / chunks * std::exp2(power));
      printf(" %9.2f ns", seconds / chunks * 1e9);
    }
    least = std::min(least, line.slope());
    printf("  slope %.2f\n", line.slope());
  }
  EXPECT_LT(least, 1.1);
}

TEST_P(PlanSlope, OfAProofThatFails) {
  const Shape& shape = shapes()[GetParam()];
  const double slope = slope_of(std::string("failing proof, ") + shape.name, 1.25, [&](int64_t n) {
    Dims extents;
    std::vector<Box> boxes = shape.make(n, &extents);
    boxes[boxes.size() / 3] = boxes[boxes.size() / 2];
    const Catalog catalog = catalog_of(extents, boxes);
    return time_of([&] { ASSERT_FALSE(prove_cover(catalog, 0).ok()); });
  });
  EXPECT_LT(slope, 1.25);
}

TEST_P(PlanSlope, OfALoadPlanWithAsManyWantedAsStoredBoxes) {
  const Shape& shape = shapes()[GetParam()];
  const double slope = slope_of(std::string("load plan, ") + shape.name, 1.42, [&](int64_t n) {
    Dims extents;
    const std::vector<Box> boxes = shape.make(n, &extents);
    const Catalog catalog = catalog_of(extents, boxes);
    const State wanted = state_of({{"w", DType::kInt8, extents, boxes}});
    return time_of([&] {
      const Result<LoadPlan> plan = make_load_plan(wanted, catalog, {}, 0);
      ASSERT_TRUE(plan.ok());
      ASSERT_EQ(plan->reads.size(), boxes.size());
    });
  });
  // n log n is 1.1 here, and 2^18 boxes outgrow caches that 2^12 fit into (1.34 on a busy machine);
  // what scans is above 1.5.
  EXPECT_LT(slope, 1.42);
}

// From 2^10 to 2^20 chunks: time per chunk to index all of them, and time per box to look some of
// them up. Neighbours on the machine can spoil one round of measuring, not three.
TEST_P(PlanSlope, OfAnIndexAndOfLookUps) {
  const Shape& shape = shapes()[GetParam()];
  const int64_t most = 20;
  double least_index = 1e30;
  double least_look_up = 1e30;
  for (int round = 0; round < 3 && (least_index > 0.6 || least_look_up > 0.6); ++round) {
    Line index_line;
    Line look_up_line;
    printf("%-40s", (std::string("index, ") + shape.name).c_str());
    for (const int64_t power : {int64_t{10}, most / 2 + 5, most}) {
      const Catalog catalog = many_of(shape, int64_t{1} << power, most);
      const auto chunks = static_cast<double>(catalog.chunk_count());
      std::optional<CatalogIndex> index;
      const double indexing = time_of([&] { index.emplace(catalog); }) / chunks;
      constexpr uint64_t kStep = 61;
      const double looking = time_of([&] {
                               size_t found = 0;
                               for (uint64_t c = 0; c < catalog.chunk_count(); c += kStep) {
                                 const uint32_t tensor = catalog.tensor_of(c);
                                 found +=
                                     index->chunks_meeting(tensor, catalog.chunk_box(c)).size();
                               }
                               ASSERT_EQ(found, (catalog.chunk_count() + kStep - 1) / kStep);
                             }) /
                             (chunks / static_cast<double>(kStep));
      index_line.add(static_cast<double>(power), indexing);
      look_up_line.add(static_cast<double>(power), looking);
      printf(" %8.1f + %7.1f ns", indexing * 1e9, looking * 1e9);
    }
    least_index = std::min(least_index, index_line.slope());
    least_look_up = std::min(least_look_up, look_up_line.slope());
    printf("  slopes %.2f, %.2f\n", index_line.slope(), look_up_line.slope());
  }
  // Both grow as log n does, and memory that caches do not hold; what scans grows as n.
  EXPECT_LT(least_index, 0.6);
  EXPECT_LT(least_look_up, 0.6);
}

TEST(PlanScaling, OfManyTensorsMissingAndUnexpected) {
  const double slope = slope_of("load plan, other names", 1.2, [](int64_t n) {
    std::vector<State> states;
    states.push_back(plain_state(n / 4));
    const Catalog stored = planned(states).catalog;
    std::vector<Holding> holdings;
    for (int64_t t = 0; t < n / 4; ++t)
      holdings.push_back(whole("other." + std::to_string(t), {1}));
    const State wanted = state_of(holdings);
    LoadRules rules;
    rules.missing = MissingRule::kReport;
    return time_of([&] { ASSERT_TRUE(make_load_plan(wanted, stored, rules, 0).ok()); });
  });
  EXPECT_LT(slope, 1.2);
}

TEST(PlanScaling, OfNamesThatAreFoundWithoutTheirRank) {
  const double slope = slope_of("find, rank_local names without a rank", 1.2, [](int64_t n) {
    std::vector<Holding> holdings;
    for (int64_t t = 0; t < n / 4; ++t)
      holdings.push_back(whole("own." + std::to_string(t), {1}, EntryKind::kRankLocal));
    std::vector<State> states;
    states.push_back(state_of(holdings));
    const Catalog stored = planned(states).catalog;
    const CatalogIndex index(stored);
    return time_of([&] {
      for (size_t t = 0; t < stored.tensors.size(); ++t)
        ASSERT_EQ(index.find_tensor_of_any(stored.tensor_name(t)), static_cast<int64_t>(t));
    });
  });
  EXPECT_LT(slope, 1.2);
}

TEST(PlanScaling, OfRanksThatHoldTheSame) {
  const double slope = slope_of("global plan, replicated on n/256 ranks", 1.2, [](int64_t n) {
    std::vector<State> states;
    for (int64_t r = 0; r < n / 256; ++r) states.push_back(plain_state(256));
    const std::vector<LocalPlan> locals = local_plans(states);
    return time_of([&] { ASSERT_TRUE(plan_all(locals).ok()); });
  });
  EXPECT_LT(slope, 1.2);
}

// All ranks say the same of it, and each stores its own.
TEST(PlanScaling, OfRanksThatHoldOneTensorEachForThemselves) {
  const double slope =
      slope_of("global plan, one rank_local tensor on n/256 ranks", 1.25, [](int64_t n) {
        std::vector<State> states;
        for (int64_t r = 0; r < n / 256; ++r) {
          std::vector<Holding> holdings;
          for (int t = 0; t < 255; ++t) holdings.push_back(whole("t" + std::to_string(t), {4}));
          holdings.push_back(whole("rng", {4}, EntryKind::kRankLocal));
          states.push_back(state_of(holdings));
        }
        const std::vector<LocalPlan> locals = local_plans(states);
        return time_of([&] { ASSERT_TRUE(plan_all(locals).ok()); });
      });
  EXPECT_LT(slope, 1.25);
}

// The same buffer may come from any number of ranks that do not know their place.
TEST(PlanScaling, OfRanksThatDoNotKnowTheirPlace) {
  Listed own = tensor("rng", {4});
  own.kind = EntryKind::kRankLocal;
  const PlanBytes bytes = described({own, tensor("w", {4})}, {0, 0});
  const double slope = slope_of("merge, one rank_local tensor on n/2 ranks", 1.25, [&](int64_t n) {
    const std::vector<std::span<const std::byte>> plans(static_cast<size_t>(n / 2), bytes);
    return time_of([&] { ASSERT_TRUE(merge_plans(plans, {}).ok()); });
  });
  EXPECT_LT(slope, 1.25);
}

INSTANTIATE_TEST_SUITE_P(Shapes, PlanSlope, testing::Range<size_t>(0, 9));

}  // namespace
}  // namespace shardwright::plan::test
