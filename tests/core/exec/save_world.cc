// SPDX-License-Identifier: Apache-2.0
#include "tests/core/exec/save_world.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>

#include <fmt/format.h>

namespace shardwright::exec::test {
namespace {

constexpr int64_t kRows = 1031;  // prime: never divides evenly
constexpr int64_t kColumns = 768;
constexpr int kSmallTensors = 40;

Dense dense_of(std::mt19937_64* engine, std::string name, DType dtype, Dims shape) {
  Dense dense{std::move(name), dtype, std::move(shape), {}};
  dense.bytes.resize(static_cast<size_t>(dense.count()) * dense.element_bytes());
  for (size_t i = 0; i < dense.bytes.size(); i += 8) {
    const uint64_t value = (*engine)();
    std::memcpy(dense.bytes.data() + i, &value, std::min<size_t>(8, dense.bytes.size() - i));
  }
  return dense;
}

// Rows of rank r of n.
Box rows_of(int64_t rows, int64_t columns, int64_t rank, int64_t world_size) {
  const int64_t share = (rows + world_size - 1) / world_size;
  const int64_t begin = std::min(rows, rank * share);
  return {Dims{begin, 0}, Dims{std::min(rows, begin + share) - begin, columns}};
}

}  // namespace

std::vector<std::shared_ptr<const State>> World::states() const {
  std::vector<std::shared_ptr<const State>> result;
  for (const Holding& rank : ranks) result.push_back(rank.state);
  return result;
}

World make_world(int32_t world_size, uint64_t number) {
  std::mt19937_64 engine(number);
  World world;
  world.ranks.resize(static_cast<size_t>(world_size));
  world.tensors.push_back(dense_of(&engine, "rows", DType::kFloat32, Dims{kRows, kColumns}));
  world.tensors.push_back(dense_of(&engine, "bias", DType::kBfloat16, Dims{kColumns}));
  world.tensors.push_back(dense_of(&engine, "step", DType::kInt64, Dims{}));
  world.tensors.push_back(dense_of(&engine, "nothing", DType::kFloat32, Dims{0, 5}));
  for (int i = 0; i < kSmallTensors; ++i)
    world.tensors.push_back(
        dense_of(&engine, fmt::format("small.{}", i), DType::kUint8, Dims{7 + 331 * i}));
  for (int32_t rank = 0; rank < world_size; ++rank) {
    Holding& holding = world.ranks[static_cast<size_t>(rank)];
    add_boxes(&holding, world.tensors[0], {rows_of(kRows, kColumns, rank, world_size)}, true);
    for (size_t t = 1; t < world.tensors.size(); ++t) add_whole(&holding, world.tensors[t], true);
    add_object(&holding, "config", "{\"layers\": 12}");
    add_object(&holding, "rng", fmt::format("state of rank {}", rank), EntryKind::kRankLocal);
  }
  return world;
}

World make_small_world(int32_t world_size, uint64_t number) {
  std::mt19937_64 engine(number);
  World world;
  world.ranks.resize(static_cast<size_t>(world_size));
  const int64_t rows = world_size * 3;
  world.tensors.push_back(dense_of(&engine, "w", DType::kFloat32, Dims{rows, 128}));
  for (int32_t rank = 0; rank < world_size; ++rank) {
    add_boxes(&world.ranks[static_cast<size_t>(rank)], world.tensors[0],
              {rows_of(rows, 128, rank, world_size)}, true);
  }
  return world;
}

std::vector<Result<Report>> save_world(Runtime& runtime, const World& world,
                                       const RankCallOf& call_of) {
  std::vector<Result<Report>> results(world.ranks.size(),
                                      Result<Report>(internal_error("not run")));
  on_ranks(static_cast<int32_t>(world.ranks.size()),
           [&](int32_t rank, collective::Collective& collective) {
             const RankCall call = call_of(rank);
             const auto index = static_cast<size_t>(rank);
             results[index] = save(runtime, world.ranks[index].state, call.location, collective,
                                   call.options, call.call);
           });
  return results;
}

std::vector<Result<Report>> save_world(Runtime& runtime, const World& world,
                                       const format::Location& location,
                                       const SaveOptions& options) {
  return save_world(runtime, world,
                    [&](int32_t) { return RankCall{options, location, CallContext()}; });
}

std::string texts(const std::vector<Result<Report>>& results) {
  std::string text;
  for (size_t rank = 0; rank < results.size(); ++rank)
    text += fmt::format("rank {}: {}\n", rank, results[rank].status().to_string());
  return text;
}

StatusCode agreed_code(const std::vector<Result<Report>>& results) {
  for (const Result<Report>& result : results)
    EXPECT_EQ(result.status().code(), results[0].status().code()) << texts(results);
  return results[0].status().code();
}

testing::AssertionResult stores(Runtime& runtime, const format::Location& location,
                                const World& world) {
  const auto opened = Checkpoint::open(runtime, location);
  if (!opened.ok()) return testing::AssertionFailure() << opened.status().to_string();
  const Result<Report> verified = (*opened)->verify(/*deep=*/true, CallContext());
  if (!verified.ok()) return testing::AssertionFailure() << verified.status().to_string();
  if (!verified->damage.empty())
    return testing::AssertionFailure() << verified->damage.front().message;
  Holding wanted;
  for (const Dense& tensor : world.tensors) add_whole(&wanted, tensor, /*filled=*/false);
  const auto alone = collective::make_single_collective();
  const Result<Report> loaded =
      load(runtime, **opened, *wanted.state, *alone, LoadOptions(), CallContext());
  if (!loaded.ok()) return testing::AssertionFailure() << loaded.status().to_string();
  for (size_t t = 0; t < world.tensors.size(); ++t) {
    testing::AssertionResult same = holds(wanted, t, world.tensors[t]);
    if (!same) return same;
  }
  return testing::AssertionSuccess();
}

std::vector<std::string> keys_at(const format::Location& location) {
  std::vector<std::string> keys;
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  EXPECT_TRUE(location.storage
                  ->list(prefix, storage::kNoDelimiter,
                         [&keys](const storage::ListEntry& entry) {
                           keys.push_back(entry.key);
                           return Status();
                         })
                  .ok());
  return keys;
}

std::vector<std::pair<std::string, std::vector<std::byte>>> contents(
    const format::Location& location) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> result;
  for (const std::string& key : keys_at(location)) {
    if (key.ends_with('/')) continue;
    auto bytes = storage::read_all(*location.storage, key, UINT64_MAX / 2);
    EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
    if (bytes.ok()) result.emplace_back(key, std::move(*bytes));
  }
  return result;
}

std::unique_ptr<Runtime> make_runtime(int32_t threads) {
  RuntimeOptions options;
  options.threads = threads;
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().to_string();
  return std::move(*runtime);
}

RandomSource counting_random(uint8_t number) {
  auto next = std::make_shared<std::atomic<uint8_t>>(number);  // shared by copies of the function
  return [next]() -> Result<std::array<std::byte, 16>> {
    std::array<std::byte, 16> bytes{};
    bytes.fill(static_cast<std::byte>((*next)++));
    return bytes;
  };
}

}  // namespace shardwright::exec::test
