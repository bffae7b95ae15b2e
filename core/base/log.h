// SPDX-License-Identifier: Apache-2.0
//
// LogSink: where the core's text goes. The core never prints; the context installs a sink (off by
// default). A sink is thread-safe and must not call back into the library.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardwright {

// Numbers are those of the C surface.
enum class LogLevel : int32_t {
  kTrace = 0,
  kDebug = 1,
  kInfo = 2,
  kWarning = 3,
  kError = 4,
  kOff = 5
};

class LogSink {
 public:
  virtual ~LogSink() = default;
  // Least level that is wanted; callers skip formatting below it.
  virtual LogLevel level() const = 0;
  // component: folder of the core, e.g. "exec".
  virtual void write(LogLevel level, std::string_view component, std::string_view message) = 0;
};

// A sink that wants nothing; lives for the process.
LogSink& null_log_sink();

}  // namespace shardwright
