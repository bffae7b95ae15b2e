// SPDX-License-Identifier: Apache-2.0
//
// The one Runtime there is; the seams in it (log, clock, randomness, allocator) are what tests and
// hosts replace.
#include "core/exec/runtime.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/concurrency/memory_limit.h"

namespace shardwright::exec {
namespace {

constexpr int kMaxRandomTries = 16;  // interrupted reads of the system's generator

Result<std::array<std::byte, 16>> system_random() {
  std::array<std::byte, 16> bytes{};
  size_t filled = 0;
  for (int tries = 0; filled < bytes.size() && tries < kMaxRandomTries; ++tries) {
    const ssize_t count = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (count < 0 && errno != EINTR)
      return status_from_errno(errno, "read random bytes of", "the system's generator");
    if (count > 0) filled += static_cast<size_t>(count);
  }
  if (filled < bytes.size()) return unavailable("the system's generator gave no random bytes");
  return bytes;
}

// What the runtimes of one context share.
struct Common {
  Common(std::unique_ptr<device::Devices> made, const RuntimeOptions& options)
      : devices(std::move(made)),
        allocator(options.allocator),
        staged_states(options.allocator),
        log(options.log != nullptr ? *options.log : null_log_sink()),
        clock(options.clock != nullptr ? *options.clock : real_clock()),
        random(options.random ? options.random : RandomSource(system_random)),
        machine(options.machine),
        formats(clock) {
    for (const auto& format : options.formats) formats.add(format);
  }

  const std::unique_ptr<device::Devices> devices;
  const AllocatorHooks allocator;
  KeptMemory staged_states;
  LogSink& log;
  const Clock& clock;
  const RandomSource random;
  const std::string machine;
  PlanCache plan_cache;
  format::FormatTable formats;
};

// A quarter of what a control group leaves, where that is less: the rest is for memory that is not
// staging, and for the other ranks.
uint64_t default_budget(uint64_t left_bytes) {
  return std::clamp(left_bytes / 4, 2 * kWriteBlockBytes, kDefaultMemoryBudgetBytes);
}

Status check_budget(uint64_t budget) {
  if (budget >= 2 * kWriteBlockBytes) return {};
  return invalid_argument(fmt::format("memory_budget is {} bytes; the least is {}", budget,
                                      2 * kWriteBlockBytes))
      .with_detail("parameter", "memory_budget")
      .with_detail("limit", fmt::to_string(2 * kWriteBlockBytes));
}

Status check_threads(int32_t threads) {
  if (threads >= 0) return {};
  return invalid_argument(fmt::format("threads is {}; give 0 for the default or a count", threads))
      .with_detail("parameter", "threads");
}

class ContextRuntime final : public Runtime {
 public:
  ContextRuntime(std::shared_ptr<Common> common, std::shared_ptr<BufferPool> staging,
                 std::unique_ptr<ThreadPool> pool)
      : common_(std::move(common)), staging_(std::move(staging)), pool_(std::move(pool)) {}

  static Result<std::unique_ptr<Runtime>> make(std::shared_ptr<Common> common,
                                               std::shared_ptr<BufferPool> staging, int32_t threads,
                                               ThreadPriority priority) {
    Status made;
    std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads, &made, priority);
    SHW_RETURN_IF_ERROR(made);
    return std::unique_ptr<Runtime>(
        std::make_unique<ContextRuntime>(std::move(common), std::move(staging), std::move(pool)));
  }

  Result<std::unique_ptr<Runtime>> for_call(int32_t threads, uint64_t memory_budget,
                                            ThreadPriority priority) override {
    const uint64_t budget = memory_budget == 0 ? staging_->budget_bytes() : memory_budget;
    SHW_RETURN_IF_ERROR(check_threads(threads));
    SHW_RETURN_IF_ERROR(check_budget(budget));
    const bool shares = memory_budget == 0 && priority == ThreadPriority::kNormal;
    return make(common_,
                shares ? staging_ : std::make_shared<BufferPool>(budget, common_->allocator),
                threads == 0 ? pool_->thread_count() : threads, priority);
  }
  ThreadPool& pool() override { return *pool_; }
  BufferPool& staging() override { return *staging_; }
  KeptMemory& staged_states() override { return common_->staged_states; }
  const device::Devices& devices() override { return *common_->devices; }
  LogSink& log() override { return common_->log; }
  const Clock& clock() override { return common_->clock; }
  Result<std::array<std::byte, 16>> random_bytes() override { return common_->random(); }
  PlanCache& plan_cache() override { return common_->plan_cache; }
  const std::string& machine() const override { return common_->machine; }
  const format::FormatTable& formats() const override { return common_->formats; }

 private:
  const std::shared_ptr<Common> common_;       // co-owned with the runtimes of calls
  const std::shared_ptr<BufferPool> staging_;  // co-owned with the runtimes of calls
  std::unique_ptr<ThreadPool> pool_;           // last: its tasks use the others
};

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  const uint64_t budget =
      options.memory_budget == 0 ? default_budget(memory_left_bytes()) : options.memory_budget;
  SHW_RETURN_IF_ERROR(check_threads(options.threads));
  SHW_RETURN_IF_ERROR(check_budget(budget));
  SHW_ASSIGN_OR_RETURN(std::unique_ptr<device::Devices> devices,
                       device::Devices::create(options.devices));
  auto common = std::make_shared<Common>(std::move(devices), options);
  auto staging = std::make_shared<BufferPool>(budget, common->allocator);
  return ContextRuntime::make(std::move(common), std::move(staging),
                              options.threads == 0 ? default_thread_count() : options.threads,
                              ThreadPriority::kNormal);
}

}  // namespace shardwright::exec
