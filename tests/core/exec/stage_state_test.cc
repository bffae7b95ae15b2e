// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "tests/core/exec/save_world.h"

namespace shardwright::exec::test {
namespace {

TEST(StageState, TheCopyIsIndependentOfTheOriginal) {
  const auto runtime = make_runtime();
  World world = make_world(1, 9);
  const auto staged = stage_state(*runtime, *world.ranks[0].state, CallContext());
  ASSERT_TRUE(staged.ok()) << staged.status().to_string();
  for (const auto& memory : world.ranks[0].memory)
    std::fill(memory->begin(), memory->end(), std::byte{0xAA});
  const format::Location location{storage::make_memory_storage(), "ckpt"};
  const auto alone = collective::make_single_collective();
  const auto saved = save(*runtime, *staged, location, *alone, SaveOptions(), CallContext());
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  EXPECT_TRUE(stores(*runtime, location, world));
}

TEST(StageState, LayoutsStay) {
  const auto runtime = make_runtime();
  std::vector<float> memory(6);
  TensorView view;
  view.data = reinterpret_cast<std::byte*>(memory.data());
  view.dtype = DType::kFloat32;
  view.shape = Dims{2, 3};
  TensorEntry shard = plain_tensor_entry("w", view);
  shard.global_shape = Dims{4, 3};
  shard.pieces = {{Box{Dims{2, 0}, Dims{2, 3}}, 0}};
  shard.layout = *Layout::create({{2}, {}, {}}, {{PlacementKind::kShard, 0, 0}});
  State state;
  ASSERT_TRUE(state.add_tensors({plain_tensor_entry("plain", view), shard}).ok());
  const auto staged = stage_state(*runtime, state, CallContext());
  ASSERT_TRUE(staged.ok()) << staged.status().to_string();
  EXPECT_EQ((*staged)->tensors()[0].layout, nullptr);
  ASSERT_NE((*staged)->tensors()[1].layout, nullptr);
  EXPECT_EQ(*(*staged)->tensors()[1].layout, shard.layout);
}

TEST(StageState, StridedTensorsArePacked) {
  const auto runtime = make_runtime();
  // A transposed matrix: element (i, j) lies at j * 3 + i.
  std::vector<float> memory(12);
  std::iota(memory.begin(), memory.end(), 0.0F);
  TensorView view;
  view.data = reinterpret_cast<std::byte*>(memory.data());
  view.dtype = DType::kFloat32;
  view.shape = Dims{3, 4};
  view.strides = Dims{1, 3};
  State state;
  std::vector<TensorEntry> entries{plain_tensor_entry("t", view)};
  ASSERT_TRUE(state.add_tensors(entries).ok());
  const auto staged = stage_state(*runtime, state, CallContext());
  ASSERT_TRUE(staged.ok()) << staged.status().to_string();
  const TensorSpan copy = (*staged)->tensors()[0].local;
  EXPECT_TRUE(copy.is_contiguous());
  const auto* values = reinterpret_cast<const float*>(copy.data);
  EXPECT_EQ(std::vector<float>(values, values + 4), (std::vector<float>{0, 3, 6, 9}));
}

TEST(StageState, TheNextCopyTakesTheMemoryOfTheLast) {
  const auto runtime = make_runtime();
  const World world = make_world(1, 9);
  KeptMemory& memory = runtime->staged_states();
  auto first = stage_state(*runtime, *world.ranks[0].state, CallContext());
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  EXPECT_EQ(memory.kept_bytes(), 0U) << "it is in use";
  first = Status(StatusCode::kCancelled, "the copy goes");
  EXPECT_GT(memory.kept_bytes(), 0U);
  const auto second = stage_state(*runtime, *world.ranks[0].state, CallContext());
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_EQ(memory.kept_bytes(), 0U) << "it is in use again";
}

TEST(StageState, CopiesThatAreThereAtTheSameTimeAreApart) {
  const auto runtime = make_runtime();
  constexpr int kRounds = 8;
  const std::vector<World> worlds = [] {
    std::vector<World> made;
    for (uint64_t number = 0; number < 3; ++number) made.push_back(make_small_world(1, number));
    return made;
  }();
  const auto stage_and_compare = [&](const World& world) {
    for (int round = 0; round < kRounds; ++round) {
      const auto staged = stage_state(*runtime, *world.ranks[0].state, CallContext());
      ASSERT_TRUE(staged.ok()) << staged.status().to_string();
      const std::vector<std::byte>& expected = *world.ranks[0].memory[0];
      const std::byte* const copy = (*staged)->tensors()[0].local.data;
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), copy));
    }
  };
  std::vector<std::jthread> threads;
  for (const World& world : worlds) threads.emplace_back([&] { stage_and_compare(world); });
}

// Refuses one allocation.
struct RefusingAllocator {
  std::atomic<int64_t> left{-1};  // allocations until the one that is refused
  std::atomic<int64_t> blocks{0};

  AllocatorHooks hooks() {
    return {[](void* user, uint64_t size_bytes, uint64_t alignment) -> void* {
              auto* const self = static_cast<RefusingAllocator*>(user);
              if (self->left-- == 0) return nullptr;
              ++self->blocks;
              return std::aligned_alloc(alignment,
                                        (size_bytes + alignment - 1) / alignment * alignment);
            },
            [](void* user, void* pointer, uint64_t, uint64_t) {
              --static_cast<RefusingAllocator*>(user)->blocks;
              std::free(pointer);
            },
            this};
  }
};

TEST(StageState, ASaveToWhichTheAllocatorRefusesAnyBlockFailsAndTheNextSucceeds) {
  RefusingAllocator allocator;
  {
    RuntimeOptions options;
    options.threads = 2;
    options.allocator = allocator.hooks();
    const World world = make_world(1, 9);
    const auto alone = collective::make_single_collective();
    int64_t refused = 0;
    for (bool is_over = false; !is_over; ++refused) {
      ASSERT_LT(refused, 64) << "it never succeeded";
      const auto runtime = std::move(*Runtime::create(options));
      const format::Location location{storage::make_memory_storage(), "ckpt"};
      allocator.left = refused;
      const auto saved = save_in_background(*runtime, world.ranks[0].state, location, *alone,
                                            SaveOptions(), 0, CallContext());
      is_over = allocator.left >= 0;  // it needed fewer
      allocator.left = -1;
      EXPECT_EQ(saved.status().code(), is_over ? StatusCode::kOk : StatusCode::kResourceExhausted)
          << saved.status().to_string();
      if (is_over) break;
      EXPECT_EQ(saved.status().detail("resource"), "memory");
      const auto next = save_in_background(*runtime, world.ranks[0].state, location, *alone,
                                           SaveOptions(), 0, CallContext());
      ASSERT_TRUE(next.ok()) << next.status().to_string();
      EXPECT_TRUE(stores(*runtime, location, world));
    }
    EXPECT_GT(refused, 1) << "the copy and at least one block for writing";
  }
  EXPECT_EQ(allocator.blocks, 0);
}

bool are_there(std::byte* memory, uint64_t bytes) {
  std::vector<unsigned char> pages((bytes + 4095) / 4096);
  EXPECT_EQ(::mincore(memory, bytes, pages.data()), 0);
  return std::ranges::all_of(pages, [](unsigned char page) { return (page & 1) != 0; });
}

TEST(StageState, PreparedMemoryIsThereForTheFirstCopy) {
  const auto runtime = make_runtime();
  std::vector<std::byte> memory((uint64_t{20} << 20) + 5);
  TensorView view;
  view.data = memory.data();
  view.dtype = DType::kUint8;
  view.shape = Dims{static_cast<int64_t>(memory.size())};
  State state;
  ASSERT_TRUE(state.add_tensors({plain_tensor_entry("w", view)}).ok());
  ASSERT_TRUE(prepare_staging(*runtime, state, {}).ok());
  EXPECT_GE(runtime->staged_states().kept_bytes(), memory.size());
  std::byte* prepared = nullptr;
  {
    const auto block = runtime->staged_states().acquire(memory.size());
    ASSERT_TRUE(block.ok());
    EXPECT_TRUE(block->is_resident);
    EXPECT_TRUE(are_there(block->memory.get(), memory.size()));
    prepared = block->memory.get();
  }
  const auto staged = stage_state(*runtime, state, CallContext());
  ASSERT_TRUE(staged.ok());
  EXPECT_EQ((*staged)->tensors()[0].local.data, prepared);
}

// Of a save of one rank, what its storage sees.
struct Seen {
  std::mutex mutex;
  int syncs = 0;
  std::set<int> niceness;  // of threads that write

  std::shared_ptr<storage::Storage> watch(storage::Storage& inner) {
    return storage::make_fault_storage(
        inner, [this](const storage::StorageEvent& event, uint64_t*) {
          using Operation = storage::StorageEvent::Operation;
          const std::lock_guard lock(mutex);
          if (event.operation == Operation::kSync) ++syncs;
          if (event.operation == Operation::kWrite)
            niceness.insert(::getpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid))));
          return Status();
        });
  }
};

TEST(StageState, AJobThatHoldsTheTensorsCopiesNothingAndLetsGoWhenTheyAreWritten) {
  const auto runtime = make_runtime();
  World world = make_world(1, 9);
  const auto memory = storage::make_memory_storage();
  Seen seen;
  const format::Location location{seen.watch(*memory), "ckpt"};
  const auto alone = collective::make_single_collective();
  SaveOptions options;
  options.hold = true;
  CallContext call;
  int told = 0;
  call.on_staged = [&] {
    ++told;
    EXPECT_EQ(seen.syncs, 0);
    for (const auto& each : world.ranks[0].memory)
      std::fill(each->begin(), each->end(), std::byte{0xAA});
  };
  const auto saved =
      save_in_background(*runtime, world.ranks[0].state, location, *alone, options, 0, call);
  ASSERT_TRUE(saved.ok()) << saved.status().to_string();
  EXPECT_EQ(told, 1);
  EXPECT_GT(seen.syncs, 0);
  EXPECT_EQ(runtime->staged_states().kept_bytes(), 0);
  EXPECT_TRUE(stores(*runtime, location, world));
}

TEST(StageState, ASaveInTheBackgroundWritesBehindOthers) {
  const auto runtime = make_runtime();
  const World world = make_world(1, 9);
  const int mine = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)));
  const auto alone = collective::make_single_collective();
  for (const auto priority : {ThreadPriority::kNormal, ThreadPriority::kBackground}) {
    const bool behind = priority == ThreadPriority::kBackground;
    for (const bool hold : {false, true}) {
      const auto memory = storage::make_memory_storage();
      Seen seen;
      const format::Location location{seen.watch(*memory), "ckpt"};
      SaveOptions options;
      options.priority = priority;
      options.hold = hold;
      const auto saved = save_in_background(*runtime, world.ranks[0].state, location, *alone,
                                            options, 0, CallContext());
      ASSERT_TRUE(saved.ok()) << saved.status().to_string();
      EXPECT_EQ(seen.niceness, std::set<int>{behind ? std::max(mine, 10) : mine});
      EXPECT_TRUE(stores(*runtime, location, world));
    }
  }
}

TEST(StageState, ACancelledCallStagesNothing) {
  const auto runtime = make_runtime();
  const World world = make_world(1, 9);
  CancellationFlag flag;
  flag.cancel();
  CallContext call;
  call.control.cancellation = &flag;
  EXPECT_EQ(stage_state(*runtime, *world.ranks[0].state, call).status().code(),
            StatusCode::kCancelled);
}

TEST(StageState, DevicesThatTheHostCannotReadAreRefusedByName) {
  const auto runtime = make_runtime();
  std::vector<float> memory(4);
  TensorView view;
  view.data = reinterpret_cast<std::byte*>(memory.data());
  view.dtype = DType::kFloat32;
  view.shape = Dims{4};
  view.device_type = static_cast<int32_t>(DeviceType::kCuda);
  auto state = std::make_shared<State>();
  std::vector<TensorEntry> entries{plain_tensor_entry("on.device", view)};
  ASSERT_TRUE(state->add_tensors(entries).ok());
  const Status staged = stage_state(*runtime, *state, CallContext()).status();
  EXPECT_EQ(staged.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(staged.detail("tensor"), "on.device");
  const Status planned =
      SavePlanner::create(*runtime, state, SaveOptions(), plan::RankPosition()).status();
  EXPECT_EQ(planned.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(planned.detail("tensor"), "on.device");
}

}  // namespace
}  // namespace shardwright::exec::test
