// SPDX-License-Identifier: Apache-2.0
//
// Making a context reads the environment, the only place that does. The list of contexts set aside
// holds those that were released while jobs were running on them; destroying one of them on its own
// background thread would make that thread join itself.
#include "capi/context/context.h"

#include <sys/auxv.h>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/process_state.h"
#include "capi/boundary/struct_reader.h"

namespace shardwright::capi {
namespace {

constinit std::mutex aside_mutex;
constinit std::vector<Context*>* contexts_aside = nullptr;  // made when first needed

const char* environment(const char* name) {
  return getauxval(AT_SECURE) != 0 ? nullptr : std::getenv(name);
}

void set_aside(Context* context) noexcept {
  try {
    const std::lock_guard<std::mutex> lock(aside_mutex);
    if (contexts_aside == nullptr) contexts_aside = new std::vector<Context*>();
    contexts_aside->push_back(context);
  } catch (const std::bad_alloc&) {
    // Without memory for the list the context stays alive to the end of the process.
  }
}

void drop_context(Context* context) noexcept {
  if (in_forked_child()) return;
  if (context->jobs().unfinished() == 0) {
    delete context;
  } else {
    set_aside(context);
  }
}

Status read_log_level(const char* text, LogLevel* level) {
  static constexpr std::string_view kNames[] = {"trace",   "debug", "info",
                                                "warning", "error", "off"};
  for (int32_t i = 0; i < 6; ++i) {
    if (kNames[i] == text) {
      *level = static_cast<LogLevel>(i);
      return {};
    }
  }
  return invalid_argument(
      fmt::format("environment variable SHW_LOG is '{}', expected trace, debug, "
                  "info, warning, error or off",
                  text));
}

Status read_allocator(const shw_allocator* given, AllocatorHooks* hooks) {
  if (given == nullptr) return {};
  shw_allocator allocator;
  SHW_RETURN_IF_ERROR(read_struct(given, "allocator", &allocator));
  SHW_RETURN_IF_ERROR(need_pointer(reinterpret_cast<const void*>(allocator.allocate), "allocate"));
  SHW_RETURN_IF_ERROR(need_pointer(reinterpret_cast<const void*>(allocator.release), "release"));
  *hooks = {allocator.allocate, allocator.release, allocator.user};
  return {};
}

}  // namespace

Result<std::shared_ptr<Context>> Context::create(const shw_context_options& options) {
  sweep_contexts();
  SHW_RETURN_IF_ERROR(option_in_range(options.log_level, SHW_LOG_OFF, "log_level"));
  if (options.threads > 4096) {
    return bad_argument("threads", fmt::format("{} is above 4096", options.threads));
  }
  LogLevel level = static_cast<LogLevel>(options.log_level);
  if (const char* text = environment("SHW_LOG"); text != nullptr && *text != '\0') {
    SHW_RETURN_IF_ERROR(read_log_level(text, &level));
  }
  auto made = std::unique_ptr<Context>(new Context());
  exec::RuntimeOptions runtime;
  SHW_RETURN_IF_ERROR(read_allocator(options.allocator, &runtime.allocator));
  made->log_ = LogBridge::create(options.log, options.log_user, level);
  const char* from_environment = environment("SHW_PLUGIN_PATH");
  made->plugins_ =
      std::make_unique<PluginRegistry>(options.plugin_path == nullptr ? "" : options.plugin_path,
                                       from_environment == nullptr ? "" : from_environment);
  runtime.threads = static_cast<int32_t>(options.threads);
  runtime.memory_budget = options.memory_budget;
  runtime.log = made->log_.get();
  if (options.machine != nullptr) runtime.machine = options.machine;
  SHW_ASSIGN_OR_RETURN(made->runtime_, exec::Runtime::create(runtime));
  SHW_ASSIGN_OR_RETURN(made->jobs_, exec::JobQueue::create(*made->runtime_));
  return std::shared_ptr<Context>(made.release(), &drop_context);
}

Context::~Context() = default;

Result<std::shared_ptr<exec::Runtime>> Context::call_runtime(uint32_t threads,
                                                             uint64_t memory_budget) {
  if (threads == 0 && memory_budget == 0) return std::shared_ptr<exec::Runtime>();
  if (threads > 4096) return bad_argument("threads", fmt::format("{} is above 4096", threads));
  SHW_ASSIGN_OR_RETURN(auto runtime,
                       runtime_->for_call(static_cast<int32_t>(threads), memory_budget));
  return std::shared_ptr<exec::Runtime>(std::move(runtime));
}

void sweep_contexts() noexcept {
  std::vector<Context*> finished;
  {
    const std::lock_guard<std::mutex> lock(aside_mutex);
    if (contexts_aside == nullptr) return;
    for (size_t i = contexts_aside->size(); i-- > 0;) {
      Context* context = (*contexts_aside)[i];
      if (context->jobs().unfinished() != 0) continue;
      try {
        finished.push_back(context);
      } catch (const std::bad_alloc&) {
        break;
      }
      contexts_aside->erase(contexts_aside->begin() + static_cast<ptrdiff_t>(i));
    }
  }
  for (Context* context : finished) delete context;
}

}  // namespace shardwright::capi
