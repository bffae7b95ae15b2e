// SPDX-License-Identifier: Apache-2.0
//
// Context: what a shw_context holds. It owns the log bridge, the runtime, the job queue and the
// plugins that were loaded through it. make_context gives a shared pointer whose last owner never
// waits for running jobs: such a context is set aside and destroyed by a later call. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capi/context/log_bridge.h"
#include "capi/plugins/plugin_registry.h"
#include "core/exec/job.h"
#include "core/exec/runtime.h"
#include "shardwright/context.h"

namespace shardwright::capi {

class Context {
 public:
  static constexpr uint64_t kMagic = 0x7368772d636f6e74;
  static constexpr const char* kNoun = "context";

  static Result<std::shared_ptr<Context>> create(const shw_context_options& options);
  ~Context();

  exec::Runtime& runtime() { return *runtime_; }
  exec::JobQueue& jobs() { return *jobs_; }
  PluginRegistry& plugins() { return *plugins_; }
  LogSink& log() { return *log_; }

  // Runtime of a call that asks for its own workers or staging memory: 0 and 0 = this context's.
  Result<std::shared_ptr<exec::Runtime>> call_runtime(uint32_t threads, uint64_t memory_budget);

 private:
  Context() = default;

  std::shared_ptr<LogBridge> log_;  // co-owned by the list of live logs
  std::unique_ptr<PluginRegistry> plugins_;
  std::unique_ptr<exec::Runtime> runtime_;
  std::unique_ptr<exec::JobQueue> jobs_;  // last: it runs jobs that use all of the above
};

// A context and the runtime of one call or object on it.
struct CallRuntime {
  std::shared_ptr<Context> context;
  std::shared_ptr<exec::Runtime> own;  // null = the context's
  exec::Runtime& get() const { return own != nullptr ? *own : context->runtime(); }
};

// Destroys contexts that were set aside and whose jobs have ended.
void sweep_contexts() noexcept;

}  // namespace shardwright::capi
