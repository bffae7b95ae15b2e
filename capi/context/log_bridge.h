// SPDX-License-Identifier: Apache-2.0
//
// LogBridge: hands records of the core to the log function of a host. Without a function it wants
// nothing. Live bridges are listed, because plugins log without knowing a context. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/base/log.h"
#include "shardwright/log.h"

namespace shardwright::capi {

class LogBridge : public LogSink {
 public:
  static std::shared_ptr<LogBridge> create(shw_log_fn function, void* user, LogLevel level);
  LogBridge(shw_log_fn function, void* user, LogLevel level);

  LogLevel level() const override { return level_; }
  void write(LogLevel level, std::string_view component, std::string_view message) override;

 private:
  shw_log_fn function_;
  void* user_;
  LogLevel level_;
};

// Writes to the bridges of all contexts.
void log_to_all(LogLevel level, std::string_view component, std::string_view message) noexcept;

}  // namespace shardwright::capi
