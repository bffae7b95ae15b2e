// SPDX-License-Identifier: Apache-2.0
//
// Saves of states with layouts: equal in every byte to saves of the same states without, and small
// on the way. All ranks of a job in one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/exec/agreement_internal.h"
#include "core/exec/plan_request_internal.h"
#include "core/exec/save_steps_internal.h"
#include "core/plan/wire/wire.h"
#include "tests/core/exec/save_world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/run_length.h"

namespace shardwright::exec::test {
namespace {

using internal::SaveSteps;

constexpr int32_t kManyRanks = shardwright::test::kSanitized ? 512 : 16384;

using LayoutPtr = std::shared_ptr<const Layout>;

LayoutPtr layout_of(Mesh mesh, const std::vector<Placement>& placements) {
  auto layout = Layout::create(std::move(mesh), placements);
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return layout.ok() ? *layout : nullptr;
}
Placement shard(int32_t dim) {
  return {PlacementKind::kShard, dim, 0};
}
Placement replicate() {
  return {PlacementKind::kReplicate, 0, 0};
}

// Adds what the rank holds of a tensor under a layout, which the state learns only when it is told.
void add_laid_out(Holding* holding, const Dense& truth, const LayoutPtr& layout, int32_t rank,
                  bool told) {
  auto memory = std::make_unique<std::vector<std::byte>>();
  TensorEntry entry;
  const auto pieces = layout->pieces(truth.shape, rank);
  ASSERT_TRUE(pieces.ok()) << pieces.status().to_string();
  for (const Piece& piece : *pieces) {
    const std::vector<std::byte> bytes = truth.box_bytes(piece.box);
    entry.pieces.push_back(
        {piece.box, static_cast<int64_t>(memory->size() / truth.element_bytes())});
    memory->insert(memory->end(), bytes.begin(), bytes.end());
  }
  entry.name = truth.name;
  entry.kind = EntryKind::kSharded;
  entry.global_shape = truth.shape;
  entry.local.data = memory->data();
  entry.local.dtype = truth.dtype;
  entry.local.shape = Dims{static_cast<int64_t>(memory->size() / truth.element_bytes())};
  if (told) entry.layout = layout;
  const Status added = holding->state->add_tensors({entry});
  ASSERT_TRUE(added.ok()) << added.to_string();
  holding->memory.push_back(std::move(memory));
}

// A job of two pipeline stages of data and tensor parallel groups, with ragged, replicated and
// rank_local entries.
World make_job(int32_t world_size, uint64_t number, bool told) {
  shardwright::test::RandomSource random(number);
  World world;
  world.ranks.resize(static_cast<size_t>(world_size));
  const int32_t half = world_size / 2;
  const auto add = [&](std::string name, DType dtype, Dims shape) -> const Dense& {
    world.tensors.push_back(random_dense(random, std::move(name), dtype, std::move(shape)));
    return world.tensors.back();
  };
  for (int32_t stage = 0; stage < 2; ++stage) {
    Mesh mesh{{half / 2, 2}, {"dp", "tp"}, {}};
    for (int32_t i = 0; i < half; ++i) mesh.ranks.push_back(stage * half + i);
    const LayoutPtr both = layout_of(mesh, {shard(0), shard(1)});
    const LayoutPtr hybrid = layout_of(mesh, {replicate(), shard(0)});
    const LayoutPtr flat = layout_of(mesh, {{PlacementKind::kFlat, 0, 0}, replicate()});
    for (int layer = 0; layer < 3; ++layer) {
      const std::string prefix = fmt::format("stage.{}.{}.", stage, layer);
      const Dense weight = add(prefix + "weight", DType::kFloat32, Dims{61, 70});
      const Dense bias = add(prefix + "bias", DType::kBfloat16, Dims{1031});
      const Dense moment = add(prefix + "moment", DType::kFloat32, Dims{13, 9});
      for (int32_t rank = stage * half; rank < (stage + 1) * half; ++rank) {
        Holding& holding = world.ranks[static_cast<size_t>(rank)];
        add_laid_out(&holding, weight, both, rank, told);
        add_laid_out(&holding, bias, hybrid, rank, told);
        add_laid_out(&holding, moment, flat, rank, told);
      }
    }
  }
  const Dense norm = add("norm", DType::kFloat32, Dims{19});
  const Dense ragged = add("ragged", DType::kUint8, Dims{world_size, 3});
  for (int32_t rank = 0; rank < world_size; ++rank) {
    Holding& holding = world.ranks[static_cast<size_t>(rank)];
    add_whole(&holding, norm, true);
    add_boxes(&holding, ragged, {Box{Dims{world_size - 1 - rank, 0}, Dims{1, 3}}}, true);
    add_object(&holding, "config", "{\"layers\": 12}");
    add_object(&holding, "rng", fmt::format("state {}", rank * rank), EntryKind::kRankLocal);
  }
  return world;
}

// All ranks of a job in one thread, moved from exchange to exchange as save() does.
class Job {
 public:
  Job(Runtime& runtime, const World& world, const SaveOptions& options = {})
      : Job(runtime, world.states(), [&](int32_t) { return options; }) {}
  Job(Runtime& runtime, const std::vector<std::shared_ptr<const State>>& states,
      const std::function<SaveOptions(int32_t)>& options) {
    const auto world_size = static_cast<int32_t>(states.size());
    for (int32_t rank = 0; rank < world_size; ++rank) {
      auto steps = internal::make_save_steps(runtime, states[static_cast<size_t>(rank)],
                                             options(rank), {rank, world_size});
      EXPECT_TRUE(steps.ok()) << steps.status().to_string();
      ranks_.push_back(std::move(*steps));
    }
  }

  // Bytes that the ranks brought, exchange by exchange.
  Result<std::vector<uint64_t>> plan() {
    std::vector<Bytes> requests;
    for (const auto& rank : ranks_) {
      SHW_ASSIGN_OR_RETURN(Bytes request, rank->request(call_));
      requests.push_back(std::move(request));
    }
    std::vector<uint64_t> brought;
    while (true) {
      brought.push_back(total(requests));
      SHW_ASSIGN_OR_RETURN(const std::vector<Bytes> replies,
                           ranks_[0]->reply(requests, location_, call_));
      const bool asks = internal::asks_again(replies[0]);
      for (size_t r = 0; r < ranks_.size(); ++r) {
        EXPECT_EQ(internal::asks_again(replies[r]), asks);
        if (!asks) {
          SHW_RETURN_IF_ERROR(ranks_[r]->take(replies[r]));
          continue;
        }
        SHW_ASSIGN_OR_RETURN(requests[r], ranks_[r]->next_request(replies[r]));
      }
      if (!asks) return brought;
      if (std::ssize(brought) == SaveSteps::kMaxRequests) return internal_error("asked too often");
    }
  }
  Status write_and_commit() {
    std::vector<Bytes> results;
    for (const auto& rank : ranks_) {
      SHW_ASSIGN_OR_RETURN(Bytes result, rank->execute(location_, call_));
      results.push_back(std::move(result));
    }
    return ranks_[0]->commit(results, location_, call_).status();
  }

  // The plans as a host moves them.
  Result<std::vector<Bytes>> local_plans() {
    std::vector<Bytes> locals;
    for (const auto& rank : ranks_) {
      SHW_ASSIGN_OR_RETURN(Bytes local, rank->local_plan(call_));
      locals.push_back(std::move(local));
    }
    return locals;
  }
  Result<std::vector<Bytes>> global_plan(std::span<const Bytes> locals) {
    return ranks_[0]->global_plan(locals, location_, call_);
  }
  Status finish(std::span<const Bytes> lists) {
    for (size_t r = 0; r < ranks_.size(); ++r) SHW_RETURN_IF_ERROR(ranks_[r]->finish(lists[r]));
    return {};
  }

  const format::Location& location() const { return location_; }

 private:
  static uint64_t total(const std::vector<Bytes>& parts) {
    uint64_t bytes = 0;
    for (const Bytes& part : parts) bytes += part.size();
    return bytes;
  }

  std::vector<std::unique_ptr<SaveSteps>> ranks_;
  format::Location location_{storage::make_memory_storage(), "ckpt"};
  CallContext call_;
};

// Draws the same generations in every test, at the same time.
std::unique_ptr<Runtime> make_counting_runtime() {
  static const shardwright::test::FakeClock clock;
  RuntimeOptions options;
  options.threads = 1;
  options.random = counting_random(1);
  options.clock = &clock;
  auto runtime = Runtime::create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.status().to_string();
  return std::move(*runtime);
}

std::vector<std::pair<std::string, std::vector<std::byte>>> saved_bytes(const World& world,
                                                                        const SaveOptions& options,
                                                                        size_t* meetings) {
  const auto runtime = make_counting_runtime();
  Job job(*runtime, world, options);
  const auto brought = job.plan();
  EXPECT_TRUE(brought.ok()) << brought.status().to_string();
  if (!brought.ok()) return {};
  *meetings = brought->size();
  const Status written = job.write_and_commit();
  EXPECT_TRUE(written.ok()) << written.to_string();
  EXPECT_TRUE(stores(*runtime, job.location(), world));
  return contents(job.location());
}

TEST(LayoutSave, FilesAreThoseOfTheExplicitSave) {
  struct Rule {
    plan::OwnerRule owner;
    plan::Preset preset;
    size_t meetings;
  };
  for (const auto& [owner, preset, expected_meetings] :
       {Rule{plan::OwnerRule::kBalanced, plan::Preset::kHyperparallel, 2},
        Rule{plan::OwnerRule::kLowestRank, plan::Preset::kTorch, 2},
        Rule{plan::OwnerRule::kExact, plan::Preset::kMegatron, 2},
        Rule{plan::OwnerRule::kExact, plan::Preset::kHyperparallel, 2}}) {
    SaveOptions options;
    options.rules.owner = owner;
    options.rules.preset = preset;
    size_t told_meetings = 0;
    size_t meetings = 0;
    const auto told = saved_bytes(make_job(16, 5, true), options, &told_meetings);
    const auto expected = saved_bytes(make_job(16, 5, false), options, &meetings);
    EXPECT_EQ(meetings, expected_meetings);
    EXPECT_EQ(told_meetings, expected_meetings);
    ASSERT_EQ(told.size(), expected.size());
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].first, expected[i].first);
      EXPECT_TRUE(told[i].second == expected[i].second) << told[i].first;
    }
  }
}

TEST(LayoutSave, PlanBuffersAreThoseOfTheExplicitSave) {
  std::vector<std::vector<Bytes>> lists;
  std::vector<uint64_t> local_bytes;
  for (const bool told : {true, false}) {
    const World world = make_job(16, 5, told);
    const auto runtime = make_counting_runtime();
    Job job(*runtime, world);
    const auto locals = job.local_plans();
    ASSERT_TRUE(locals.ok()) << locals.status().to_string();
    uint64_t bytes = 0;
    for (const Bytes& local : *locals) bytes += local.size();
    local_bytes.push_back(bytes);
    auto made = job.global_plan(*locals);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    ASSERT_TRUE(job.finish(*made).ok());
    EXPECT_TRUE(job.write_and_commit().ok());
    EXPECT_TRUE(stores(*runtime, job.location(), world));
    lists.push_back(std::move(*made));
  }
  EXPECT_EQ(lists[0], lists[1]);
  EXPECT_LT(local_bytes[0], local_bytes[1]);
}

// Ranks that do not know layouts and such that do, in one save.
TEST(LayoutSave, RanksMayDescribeEitherWay) {
  const World told = make_job(8, 6, true);
  const World untold = make_job(8, 6, false);
  std::vector<std::shared_ptr<const State>> states = told.states();
  for (const size_t rank : {size_t{0}, size_t{5}}) states[rank] = untold.states()[rank];
  const auto runtime = make_counting_runtime();
  Job moved(*runtime, states, [](int32_t) { return SaveOptions(); });
  const auto brought = moved.plan();
  ASSERT_TRUE(brought.ok()) << brought.status().to_string();
  EXPECT_EQ(brought->size(), 2U);
  ASSERT_TRUE(moved.write_and_commit().ok());
  EXPECT_TRUE(stores(*runtime, moved.location(), told));
  Job by_host(*runtime, states, [](int32_t) { return SaveOptions(); });
  const auto locals = by_host.local_plans();
  ASSERT_TRUE(locals.ok());
  const auto lists = by_host.global_plan(*locals);
  ASSERT_TRUE(lists.ok()) << lists.status().to_string();
  ASSERT_TRUE(by_host.finish(*lists).ok());
  ASSERT_TRUE(by_host.write_and_commit().ok());
  EXPECT_TRUE(stores(*runtime, by_host.location(), told));
}

TEST(LayoutSave, RepeatedSavesBringSixteenBytes) {
  const auto runtime = make_counting_runtime();
  for (const uint64_t number : {7U, 8U, 9U}) {
    const World world = make_job(8, number, true);
    Job job(*runtime, world);
    const auto brought = job.plan();
    ASSERT_TRUE(brought.ok()) << brought.status().to_string();
    if (number == 7) {
      EXPECT_EQ(brought->size(), 2U);
    } else {
      EXPECT_EQ(*brought, std::vector<uint64_t>{8 * 16});
    }
    ASSERT_TRUE(job.write_and_commit().ok());
    EXPECT_TRUE(stores(*runtime, job.location(), world));
  }
}

// A job that changed on one rank: checksums do not do, then digests, then the new description.
TEST(LayoutSave, AChangedRankIsPlannedAnewInThreeExchanges) {
  const auto runtime = make_counting_runtime();
  World world = make_job(8, 7, true);
  Job first(*runtime, world);
  ASSERT_TRUE(first.plan().ok());
  ASSERT_TRUE(first.write_and_commit().ok());
  add_object(&world.ranks[6], "new", "text");
  Job second(*runtime, world);
  const auto brought = second.plan();
  ASSERT_TRUE(brought.ok()) << brought.status().to_string();
  EXPECT_EQ(brought->size(), 3U);
  ASSERT_TRUE(second.write_and_commit().ok());
  EXPECT_TRUE(stores(*runtime, second.location(), world));
}

TEST(LayoutSave, AReplicaThatDiffersIsNamed) {
  const auto runtime = make_counting_runtime();
  World world = make_job(8, 7, true);
  const auto norm = world.ranks[5].state->find_tensor("norm");
  ASSERT_TRUE(norm.has_value());
  world.ranks[5].state->tensors()[*norm].local.data[0] ^= std::byte{1};
  Job job(*runtime, world);
  const Status status = job.plan().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.to_string().find("'norm'"), std::string::npos) << status.to_string();
  EXPECT_NE(status.to_string().find("rank 5"), std::string::npos) << status.to_string();
  EXPECT_TRUE(contents(job.location()).empty());
}

// One rank believes in another mesh.
TEST(LayoutSave, LayoutsThatContradictEachOtherNameTheRanks) {
  shardwright::test::RandomSource random(3);
  const Dense w = random_dense(random, "w", DType::kFloat32, Dims{8, 8});
  const LayoutPtr rows = layout_of({{4}, {}, {}}, {shard(0)});
  const LayoutPtr columns = layout_of({{4}, {}, {}}, {shard(1)});
  std::string texts[2];
  for (const bool told : {true, false}) {
    World world;
    world.ranks.resize(4);
    for (int32_t rank = 0; rank < 4; ++rank)
      add_laid_out(&world.ranks[static_cast<size_t>(rank)], w, rank == 2 ? columns : rows, rank,
                   told);
    const auto runtime = make_counting_runtime();
    const std::vector<Result<Report>> results =
        save_world(*runtime, world, {storage::make_memory_storage(), "ckpt"});
    EXPECT_EQ(agreed_code(results), StatusCode::kInvalidArgument);
    texts[told ? 1 : 0] = results[3].status().to_string();
  }
  EXPECT_NE(texts[1].find("rank 2"), std::string::npos) << texts[1];
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(LayoutSave, OptionsThatDifferAreNamed) {
  const World world = make_job(8, 7, true);
  for (const plan::OwnerRule other : {plan::OwnerRule::kLowestRank, plan::OwnerRule::kExact}) {
    const auto runtime = make_counting_runtime();
    Job job(*runtime, world.states(), [&](int32_t rank) {
      SaveOptions options;
      if (rank == 3) options.rules.owner = other;
      return options;
    });
    const Status status = job.plan().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.to_string().find("owner"), std::string::npos) << status.to_string();
    EXPECT_NE(status.to_string().find("3"), std::string::npos) << status.to_string();
  }
}

// Over a real exchange of threads, and with a rank that gives up before it.
TEST(LayoutSave, AllRanksExchangeAsOften) {
  const World world = make_job(8, 9, true);
  const auto runtime = make_runtime();
  const format::Location location{storage::make_memory_storage(), "ckpt"};
  const auto results = save_world(*runtime, world, location);
  EXPECT_EQ(agreed_code(results), StatusCode::kOk) << texts(results);
  EXPECT_TRUE(stores(*runtime, location, world));
  CancellationFlag cancelled;
  cancelled.cancel();
  const auto again = save_world(*runtime, world, [&](int32_t rank) {
    RankCall call{SaveOptions(), {storage::make_memory_storage(), "ckpt"}, CallContext()};
    if (rank == 5) call.call.control.cancellation = &cancelled;
    return call;
  });
  EXPECT_EQ(agreed_code(again), StatusCode::kCancelled);
}

// A rank that is gone once it has sent its digest: the others hear of it while they wait for
// descriptions, and leave nothing behind.
TEST(LayoutSave, ARankThatDiesBetweenTheExchangesEndsTheSave) {
  const World world = make_job(8, 9, true);
  const auto runtime = make_runtime();
  const format::Location location{storage::make_memory_storage(), "ckpt"};
  std::vector<Status> results(8);
  on_ranks(8, [&](int32_t rank, collective::Collective& collective) {
    const auto& state = world.ranks[static_cast<size_t>(rank)].state;
    if (rank != 5) {
      results[static_cast<size_t>(rank)] =
          save(*runtime, state, location, collective, SaveOptions(), CallContext()).status();
      return;
    }
    auto steps = internal::make_save_steps(*runtime, state, SaveOptions(), {rank, 8});
    ASSERT_TRUE(steps.ok());
    collective::Exchange exchange(collective, -1);
    const auto request = (*steps)->request(CallContext());
    ASSERT_TRUE(request.ok());
    const std::string place = internal::place_text(location);
    ASSERT_TRUE(internal::agree_on_text(exchange, 0x5301, Status(), place).ok());
    collective::Gathered nothing;
    ASSERT_TRUE(exchange.gather(0x5302, Status(), *request, &nothing).ok());
    const auto reply = exchange.scatter(0x5303, Status(), {});
    ASSERT_TRUE(reply.ok());
    EXPECT_TRUE(internal::asks_again(*reply)) << "there are two stages";
    exchange.abort(aborted("rank 5 is gone"));
  });
  for (int32_t rank = 0; rank < 8; ++rank) {
    const Status& status = results[static_cast<size_t>(rank)];
    if (rank != 5) {
      EXPECT_EQ(status.code(), StatusCode::kAborted) << status.to_string();
    }
  }
  EXPECT_TRUE(contents(location).empty());
}

// 16,384 ranks by the planner handles: what a rank describes is some 50 bytes per tensor, and the
// coordinator plans it as one.
TEST(LayoutSave, ManyRanksByPlannerHandles) {
  constexpr int kTensors = 20;
  const LayoutPtr layout = layout_of({{kManyRanks}, {}, {}}, {shard(0)});
  std::vector<float> values(2);
  std::vector<std::shared_ptr<const State>> states;
  for (int32_t rank = 0; rank < kManyRanks; ++rank) {
    std::vector<TensorEntry> entries;
    for (int t = 0; t < kTensors; ++t) {
      TensorEntry entry;
      entry.name = fmt::format("layers.{}.weight", t);
      entry.kind = EntryKind::kSharded;
      entry.global_shape = Dims{kManyRanks};
      entry.local.data = reinterpret_cast<std::byte*>(values.data());
      entry.local.dtype = DType::kFloat32;
      entry.local.shape = Dims{1};
      entry.pieces = {{Box{Dims{rank}, Dims{1}}, 0}};
      entry.layout = layout;
      entries.push_back(std::move(entry));
    }
    auto state = std::make_shared<State>();
    ASSERT_TRUE(state->add_tensors(entries).ok());
    states.push_back(std::move(state));
  }
  const auto runtime = make_counting_runtime();
  Job job(*runtime, states, [](int32_t) { return SaveOptions(); });
  const auto locals = job.local_plans();
  ASSERT_TRUE(locals.ok()) << locals.status().to_string();
  EXPECT_LT((*locals)[17].size(), 100U * kTensors);
  const int64_t begin = real_clock().monotonic_ns();
  const auto lists = job.global_plan(*locals);
  const int64_t planned_ns = real_clock().monotonic_ns() - begin;
  ASSERT_TRUE(lists.ok()) << lists.status().to_string();
  RecordProperty("global_plan_ms", static_cast<int>(planned_ns / 1'000'000));
  EXPECT_LT(planned_ns, 20'000'000'000) << "more than 20 s";
  EXPECT_TRUE(job.finish(*lists).ok());
}

}  // namespace
}  // namespace shardwright::exec::test
