// SPDX-License-Identifier: Apache-2.0
//
// Runtime: what pipelines share inside one context: workers, staging memory, devices, plans of
// earlier saves, log, time and randomness. Built by the C context or a test; lives longer than
// everything that uses it. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/result.h"
#include "core/concurrency/buffer_pool.h"
#include "core/concurrency/cancellation.h"
#include "core/concurrency/kept_memory.h"
#include "core/concurrency/thread_pool.h"
#include "core/device/devices.h"
#include "core/exec/plan_cache.h"
#include "core/format/format.h"

namespace shardwright::exec {

// 16 random bytes; the seam for reproducible generation ids. The default reads the system's
// generator.
using RandomSource = std::function<Result<std::array<std::byte, 16>>()>;

struct RuntimeOptions {
  int32_t threads = 0;         // 0 = default_thread_count()
  uint64_t memory_budget = 0;  // 0 = kDefaultMemoryBudgetBytes, less in a small control group
  AllocatorHooks allocator;
  LogSink* log = nullptr;  // null = null_log_sink(); outlives the runtime
  const Clock* clock = nullptr;
  RandomSource random;
  // Ranks share memory with those of their machine that say the same: how several are played on
  // one.
  std::string machine;
  std::vector<device::DeviceEntry> devices;  // besides host memory
  // Besides those of this library, tried after them; co-owned by the runtime.
  std::vector<std::shared_ptr<const format::Format>> formats;
};

class Runtime {
 public:
  // RESOURCE_EXHAUSTED when threads cannot be made; INVALID_ARGUMENT for negative threads, a budget
  // below 2 x kWriteBlockBytes, or devices that Devices::create refuses.
  static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options);
  virtual ~Runtime() = default;
  // With workers of its own, 0 = as many as here, and, where a budget is named or its work goes
  // behind that of others, staging memory of its own; all else is this runtime's, whose pages are
  // there already, and stays when this one goes first. Refuses as create does.
  virtual Result<std::unique_ptr<Runtime>> for_call(
      int32_t threads, uint64_t memory_budget,
      ThreadPriority priority = ThreadPriority::kNormal) = 0;

  virtual ThreadPool& pool() = 0;
  virtual BufferPool& staging() = 0;
  // Of copies of whole states.
  virtual KeptMemory& staged_states() = 0;
  virtual const device::Devices& devices() = 0;
  virtual LogSink& log() = 0;
  virtual const Clock& clock() = 0;
  virtual Result<std::array<std::byte, 16>> random_bytes() = 0;
  virtual PlanCache& plan_cache() = 0;
  virtual const std::string& machine() const = 0;
  // What can be opened and saved.
  virtual const format::FormatTable& formats() const = 0;
};

}  // namespace shardwright::exec
