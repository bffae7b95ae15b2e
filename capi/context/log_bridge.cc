// SPDX-License-Identifier: Apache-2.0
//
// The list of live bridges holds weak pointers, so that a context that goes takes its log along.
#include "capi/context/log_bridge.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "capi/boundary/process_state.h"

namespace shardwright::capi {
namespace {

constinit std::mutex live_mutex;
constinit std::vector<std::weak_ptr<LogBridge>>* live_bridges = nullptr;  // made when first needed

int64_t wall_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

}  // namespace

LogBridge::LogBridge(shw_log_fn function, void* user, LogLevel level)
    : function_(function), user_(user), level_(function == nullptr ? LogLevel::kOff : level) {}

std::shared_ptr<LogBridge> LogBridge::create(shw_log_fn function, void* user, LogLevel level) {
  auto bridge = std::make_shared<LogBridge>(function, user, level);
  if (bridge->level() == LogLevel::kOff) return bridge;
  const std::lock_guard<std::mutex> lock(live_mutex);
  if (live_bridges == nullptr) live_bridges = new std::vector<std::weak_ptr<LogBridge>>();
  std::erase_if(*live_bridges, [](const auto& each) { return each.expired(); });
  live_bridges->push_back(bridge);
  return bridge;
}

void LogBridge::write(LogLevel level, std::string_view component, std::string_view message) {
  if (level < level_ || level_ == LogLevel::kOff) return;
  const std::string component_text(component);
  const std::string message_text(message);
  shw_log_record record = SHW_LOG_RECORD_INIT;
  record.time_ns = wall_clock_ns();
  record.thread_id = static_cast<uint64_t>(syscall(SYS_gettid));
  record.component = component_text.c_str();
  record.file = "";
  record.message = message_text.c_str();
  record.message_size = message_text.size();
  const CallbackScope scope;
  function_(user_, static_cast<int32_t>(level), &record);
}

void log_to_all(LogLevel level, std::string_view component, std::string_view message) noexcept {
  try {
    std::vector<std::shared_ptr<LogBridge>> bridges;
    {
      const std::lock_guard<std::mutex> lock(live_mutex);
      if (live_bridges == nullptr) return;
      for (const auto& each : *live_bridges) {
        if (auto bridge = each.lock()) bridges.push_back(std::move(bridge));
      }
    }
    for (const auto& bridge : bridges) bridge->write(level, component, message);
  } catch (const std::bad_alloc&) {
    return;  // a log line is dropped when memory is out, as under any pressure
  }
}

}  // namespace shardwright::capi
