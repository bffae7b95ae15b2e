// SPDX-License-Identifier: Apache-2.0
//
// LogSink: where the core's text goes. The core never prints; the context installs a sink (off by
// default). A sink is thread-safe and must not call back into the library.
#pragma once

#include <cstdint>
#include <new>
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

// Writes the record that text() gives, when the sink wants one of this level. A record for which
// there is no memory is lost.
template <typename Text>
void log(LogSink& sink, LogLevel level, std::string_view component, const Text& text) noexcept {
  if (level < sink.level()) return;
  try {
    sink.write(level, component, text());
  } catch (const std::bad_alloc&) {  // text is not worth a failure
  }
}

}  // namespace shardwright
