// SPDX-License-Identifier: Apache-2.0
//
// Jobs of many ranks, all of them here: a thread with a small stack each, one storage in memory.
// What is saved is loaded and compared byte by byte, and what came to each rank from others is
// counted.
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include <fmt/format.h>

#include "core/layout/layout.h"
#include "tests/core/exec/checkpoint_fixture.h"
#include "tests/support/run_length.h"

namespace shardwright::exec::test {
namespace {

constexpr size_t kStackBytes = size_t{shardwright::test::kSanitized ? 2048 : 256} * 1024;
constexpr uint64_t kMostReceived = uint64_t{64} * 1024;
constexpr int64_t kRowsEach = 2;
constexpr int64_t kColumns = 33;
constexpr int64_t kBiasEach = 5;
constexpr int64_t kNorm = 17;

using RankBody = std::function<void(int32_t, collective::Collective&)>;

struct RankThread {
  pthread_t thread{};
  int32_t rank = 0;
  collective::Collective* collective = nullptr;
  const RankBody* body = nullptr;
};

void* run_rank(void* opaque) {
  const auto* own = static_cast<const RankThread*>(opaque);
  (*own->body)(own->rank, *own->collective);
  return nullptr;
}

// body on a thread per rank.
void on_many_ranks(int32_t world, const RankBody& body) {
  const auto members = collective::make_thread_collectives(world);
  std::vector<RankThread> threads(members.size());
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  size_t started = 0;
  for (RankThread& each : threads) {
    each.rank = static_cast<int32_t>(started);
    each.collective = members[started].get();
    each.body = &body;
    if (pthread_create(&each.thread, &attributes, run_rank, &each) != 0) break;
    ++started;
  }
  if (started < threads.size()) {
    ADD_FAILURE() << "only " << started << " threads of " << world << " could be made";
    members[0]->abort(aborted("there are too few threads"));
  }
  for (size_t i = 0; i < started; ++i) pthread_join(threads[i].thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// What one rank holds of the job: rows of a matrix, a part of a vector, all of a third tensor, and
// objects. Values say which element they are.
struct Part {
  std::vector<float> weight;
  std::vector<int64_t> bias;
  std::vector<double> norm;
  std::shared_ptr<State> state = std::make_shared<State>();
};

TensorEntry shard_entry(std::string name, void* data, DType dtype, const Dims& global,
                        int64_t first, const Dims& local,
                        const std::shared_ptr<const Layout>& layout) {
  TensorEntry entry;
  entry.name = std::move(name);
  entry.kind = EntryKind::kSharded;
  entry.global_shape = global;
  Dims offsets = global;
  for (size_t d = 0; d < offsets.size(); ++d) offsets[d] = d == 0 ? first : 0;
  entry.pieces.push_back({Box{offsets, local}, 0});
  entry.local.data = static_cast<std::byte*>(data);
  entry.local.dtype = dtype;
  entry.local.shape = local;
  entry.layout = layout;
  return entry;
}

std::string rng_of(int32_t rank) {
  return fmt::format("state of rank {:05d}", rank);
}

void fill(Part* part, int32_t rank) {
  const auto number = [rank](size_t each, size_t i) {
    return static_cast<int64_t>(static_cast<size_t>(rank) * each + i);
  };
  for (size_t i = 0; i < part->weight.size(); ++i)
    part->weight[i] = static_cast<float>(number(part->weight.size(), i));
  for (size_t i = 0; i < part->bias.size(); ++i) part->bias[i] = number(part->bias.size(), i);
  for (size_t i = 0; i < part->norm.size(); ++i) part->norm[i] = static_cast<double>(i) / 3;
}

std::vector<std::unique_ptr<Part>> make_parts(int32_t world, bool with_layouts, bool filled) {
  std::shared_ptr<const Layout> rows;
  if (with_layouts) {
    const auto made = Layout::create(Mesh{{world}, {}, {}}, {{PlacementKind::kShard, 0, 0}});
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    if (made.ok()) rows = *made;
  }
  std::vector<std::unique_ptr<Part>> parts;
  for (int32_t rank = 0; rank < world; ++rank) {
    auto part = std::make_unique<Part>();
    part->weight.resize(kRowsEach * kColumns);
    part->bias.resize(kBiasEach);
    part->norm.resize(kNorm);
    if (filled) fill(part.get(), rank);
    TensorView norm;
    norm.data = reinterpret_cast<std::byte*>(part->norm.data());
    norm.dtype = DType::kFloat64;
    norm.shape = Dims{kNorm};
    const Status added = part->state->add_tensors(
        {shard_entry("layer.weight", part->weight.data(), DType::kFloat32,
                     Dims{world * kRowsEach, kColumns}, rank * kRowsEach, Dims{kRowsEach, kColumns},
                     rows),
         shard_entry("layer.bias", part->bias.data(), DType::kInt64, Dims{world * kBiasEach},
                     rank * kBiasEach, Dims{kBiasEach}, rows),
         plain_tensor_entry("norm", norm)});
    EXPECT_TRUE(added.ok()) << added.to_string();
    Holding objects;
    objects.state = part->state;
    add_object(&objects, "config", filled ? "{\"layers\": 1}" : "");
    add_object(&objects, "rng", filled ? rng_of(rank) : "", EntryKind::kRankLocal);
    parts.push_back(std::move(part));
  }
  return parts;
}

void expect_loaded(const Part& found, int32_t rank) {
  Part truth;
  truth.weight.resize(found.weight.size());
  truth.bias.resize(found.bias.size());
  truth.norm.resize(found.norm.size());
  fill(&truth, rank);
  EXPECT_EQ(found.weight, truth.weight) << rank;
  EXPECT_EQ(found.bias, truth.bias) << rank;
  EXPECT_EQ(found.norm, truth.norm) << rank;
  const auto& rng = found.state->objects()[1].bytes;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(rng.data()), rng.size()), rng_of(rank));
}

// What came to the ranks of a call.
struct Received {
  uint64_t coordinator = 0;
  uint64_t most_of_others = 0;
};

Received received(const std::vector<Result<Report>>& results) {
  Received found;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    if (!results[rank].ok()) {
      ADD_FAILURE() << "rank " << rank << ": " << results[rank].status().to_string();
      return found;
    }
    uint64_t& most = rank == 0 ? found.coordinator : found.most_of_others;
    most = std::max(most, results[rank]->bytes_received);
  }
  return found;
}

void print(const char* what, int32_t world, const Received& found) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf(
      "%s of %d ranks: %llu bytes came to the coordinator, at most %llu to another rank; "
      "%ld KiB of memory at most so far, %ld per rank\n",
      what, world, static_cast<unsigned long long>(found.coordinator),
      static_cast<unsigned long long>(found.most_of_others), used.ru_maxrss,
      used.ru_maxrss / world);
}

class ManyRanks : public testing::Test {
 protected:
  // From here on nobody remembers a plan.
  void begin() {
    Result<std::unique_ptr<Runtime>> made = Runtime::create(RuntimeOptions());
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    runtime_ = std::move(*made);
  }

  Received save(int32_t world, bool with_layouts) {
    const auto parts = make_parts(world, with_layouts, true);
    return received(on_all(world, [&](int32_t rank, collective::Collective& collective) {
      return exec::save(*runtime_, parts[static_cast<size_t>(rank)]->state, location_, collective,
                        SaveOptions(), CallContext());
    }));
  }

  // Each rank opens the checkpoint, or all use one that was opened before.
  Received load(int32_t world, bool opened_once) {
    const auto parts = make_parts(world, /*with_layouts=*/false, /*filled=*/false);
    std::shared_ptr<const Checkpoint> shared;
    if (opened_once) {
      const auto opened = Checkpoint::open(*runtime_, location_);
      EXPECT_TRUE(opened.ok()) << opened.status().to_string();
      if (opened.ok()) shared = *opened;
    }
    const auto results = on_all(world, [&](int32_t rank, collective::Collective& collective) {
      State& state = *parts[static_cast<size_t>(rank)]->state;
      return shared != nullptr
                 ? exec::load(*runtime_, *shared, state, collective, LoadOptions(), CallContext())
                 : exec::load(*runtime_, location_, state, collective, LoadOptions(),
                              CallContext());
    });
    for (int32_t rank = 0; rank < world; ++rank)
      expect_loaded(*parts[static_cast<size_t>(rank)], rank);
    return received(results);
  }

  using RankCall = std::function<Result<Report>(int32_t, collective::Collective&)>;
  static std::vector<Result<Report>> on_all(int32_t world, const RankCall& call) {
    std::vector<Result<Report>> results(static_cast<size_t>(world),
                                        Result<Report>(internal_error("not run")));
    on_many_ranks(world, [&](int32_t rank, collective::Collective& collective) {
      results[static_cast<size_t>(rank)] = call(rank, collective);
    });
    return results;
  }

  std::unique_ptr<Runtime> runtime_;
  format::Location location_{storage::make_memory_storage(), "ckpt"};
};

// What a rank receives is its own part and a handful of numbers, whoever describes the job and how
// many ranks it has; a repeated save moves no plan.
TEST_F(ManyRanks, SaveAndLoadWithFewBytesPerRank) {
  for (const bool with_layouts : {false, true}) {
    begin();
    const Received few = save(32, with_layouts);
    const Received many = save(256, with_layouts);
    print(with_layouts ? "first save by layouts" : "first save", 256, many);
    EXPECT_LE(many.most_of_others, kMostReceived);
    EXPECT_LE(many.most_of_others, few.most_of_others + 64);
    EXPECT_GT(many.coordinator, few.coordinator);
    const Received again = save(256, with_layouts);
    print("second save", 256, again);
    EXPECT_LE(again.most_of_others, kMostReceived);
    EXPECT_LT(again.coordinator, many.coordinator);
    const Received loaded = load(256, /*opened_once=*/false);
    print("load", 256, loaded);
    EXPECT_LE(loaded.most_of_others, kMostReceived);
    EXPECT_LE(loaded.coordinator, kMostReceived);
  }
}

// SHW_RANKS of them, which all load from a checkpoint that was opened once.
TEST_F(ManyRanks, AsManyAsWantedSaveAndLoad) {
  const char* const wanted = std::getenv("SHW_RANKS");
  const int32_t world = wanted == nullptr ? 64 : std::atoi(wanted);
  ASSERT_GE(world, 2) << wanted;
  for (const bool with_layouts : {false, true}) {
    begin();
    const Received saved = save(world, with_layouts);
    print(with_layouts ? "save by layouts" : "save", world, saved);
    EXPECT_LE(saved.most_of_others, kMostReceived);
    const Received loaded = load(world, /*opened_once=*/true);
    print("load", world, loaded);
    EXPECT_LE(loaded.most_of_others, kMostReceived);
  }
}

}  // namespace
}  // namespace shardwright::exec::test
