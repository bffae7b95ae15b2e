// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

namespace shardwright {
namespace {

class NullLogSink final : public LogSink {
 public:
  LogLevel level() const override { return LogLevel::kOff; }
  void write(LogLevel, std::string_view, std::string_view) override {}
};

}  // namespace

LogSink& null_log_sink() {
  static NullLogSink sink;
  return sink;
}

}  // namespace shardwright
