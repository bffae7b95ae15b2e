// SPDX-License-Identifier: Apache-2.0
//
// The one Runtime there is; the seams in it (log, clock, randomness, allocator) are what tests and
// hosts replace.
#include "core/exec/runtime.h"

#include <sys/random.h>

#include <cerrno>

#include <fmt/format.h>

#include "core/base/limits.h"

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

class ContextRuntime final : public Runtime {
 public:
  ContextRuntime(std::unique_ptr<ThreadPool> pool, std::unique_ptr<device::Devices> devices,
                 uint64_t budget, const RuntimeOptions& options)
      : devices_(std::move(devices)),
        staging_(budget, options.allocator),
        staged_states_(options.allocator),
        log_(options.log != nullptr ? *options.log : null_log_sink()),
        clock_(options.clock != nullptr ? *options.clock : real_clock()),
        random_(options.random ? options.random : RandomSource(system_random)),
        pool_(std::move(pool)) {
    for (const auto& format : options.formats) formats_.add(format);
  }

  ThreadPool& pool() override { return *pool_; }
  BufferPool& staging() override { return staging_; }
  KeptMemory& staged_states() override { return staged_states_; }
  const device::Devices& devices() override { return *devices_; }
  LogSink& log() override { return log_; }
  const Clock& clock() override { return clock_; }
  Result<std::array<std::byte, 16>> random_bytes() override { return random_(); }
  PlanCache& plan_cache() override { return plan_cache_; }
  const format::FormatTable& formats() const override { return formats_; }

 private:
  const std::unique_ptr<device::Devices> devices_;
  BufferPool staging_;
  KeptMemory staged_states_;
  LogSink& log_;
  const Clock& clock_;
  RandomSource random_;
  PlanCache plan_cache_;
  format::FormatTable formats_;
  std::unique_ptr<ThreadPool> pool_;  // last: its tasks use the others
};

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  if (options.threads < 0) {
    return invalid_argument(
               fmt::format("threads is {}; give 0 for the default or a count", options.threads))
        .with_detail("parameter", "threads");
  }
  const uint64_t budget =
      options.memory_budget == 0 ? kDefaultMemoryBudgetBytes : options.memory_budget;
  if (budget < 2 * kWriteBlockBytes) {
    return invalid_argument(fmt::format("memory_budget is {} bytes; the least is {}", budget,
                                        2 * kWriteBlockBytes))
        .with_detail("parameter", "memory_budget")
        .with_detail("limit", fmt::to_string(2 * kWriteBlockBytes));
  }
  SHW_ASSIGN_OR_RETURN(std::unique_ptr<device::Devices> devices,
                       device::Devices::create(options.devices));
  Status made;
  std::unique_ptr<ThreadPool> pool =
      ThreadPool::create(options.threads == 0 ? default_thread_count() : options.threads, &made);
  SHW_RETURN_IF_ERROR(made);
  return std::unique_ptr<Runtime>(
      std::make_unique<ContextRuntime>(std::move(pool), std::move(devices), budget, options));
}

}  // namespace shardwright::exec
