// SPDX-License-Identifier: Apache-2.0
//
// Trace: spans of one call as a Chrome trace (JSON that chrome://tracing and Perfetto open): one
// process per rank, one row per thread, times in microseconds since the trace began. The rank 0
// file has the given name, rank r adds ".rank-r". A trace that cannot be written is no failure of
// the call. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/concurrency/cancellation.h"
#include "core/concurrency/mutex.h"

namespace shardwright::exec {

class Trace {
 public:
  // path "" = spans cost one test and nothing is kept. The clock outlives the trace.
  Trace(std::string path, int32_t rank, const Clock& clock);

  // Notes the time from its making to its end. name must live as long as the trace.
  class Span {
   public:
    Span(Trace* trace, std::string_view name);  // trace may be null
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Trace* trace_;
    std::string_view name_;
    int64_t begin_ns_ = 0;
  };

  bool enabled() const { return !path_.empty(); }
  // Writes the file, replacing an older one. Success when not enabled.
  Status write() const;
  std::string to_json() const;

 private:
  struct Event {
    std::string_view name;
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t thread;
  };
  void add(const Event& event) noexcept;

  const std::string path_;
  const int32_t rank_;
  const Clock& clock_;
  const int64_t origin_ns_;
  mutable Mutex mutex_;
  std::vector<Event> events_ SHW_GUARDED_BY(mutex_);
};

}  // namespace shardwright::exec
