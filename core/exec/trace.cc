// SPDX-License-Identifier: Apache-2.0
//
// Writing of traces. Threads are numbered in the order in which they first appear.
#include "core/exec/trace.h"

#include <functional>
#include <map>
#include <new>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/storage/backends.h"

namespace shardwright::exec {
namespace {

uint64_t this_thread() {
  return std::hash<std::thread::id>{}(std::this_thread::get_id());
}

std::string path_of_rank(std::string path, int32_t rank) {
  return path.empty() || rank == 0 ? path : fmt::format("{}.rank-{}", path, rank);
}

}  // namespace

Trace::Trace(std::string path, int32_t rank, const Clock& clock)
    : path_(path_of_rank(std::move(path), rank)),
      rank_(rank),
      clock_(clock),
      origin_ns_(clock.monotonic_ns()) {}

Trace::Span::Span(Trace* trace, std::string_view name)
    : trace_(trace != nullptr && trace->enabled() ? trace : nullptr), name_(name) {
  if (trace_ != nullptr) begin_ns_ = trace_->clock_.monotonic_ns();
}

Trace::Span::~Span() {
  if (trace_ != nullptr)
    trace_->add({name_, begin_ns_, trace_->clock_.monotonic_ns(), this_thread()});
}

void Trace::add(const Event& event) noexcept {
  const MutexLock lock(mutex_);
  try {
    events_.push_back(event);
  } catch (const std::bad_alloc&) {  // a trace has a gap where there was no memory
  }
}

std::string Trace::to_json() const {
  const MutexLock lock(mutex_);
  std::map<uint64_t, int64_t> threads;
  JsonWriter json;
  json.begin_object().key("displayTimeUnit").text("ms").key("traceEvents").begin_array();
  for (const Event& event : events_) {
    const auto thread = threads.emplace(event.thread, static_cast<int64_t>(threads.size())).first;
    json.begin_object();
    json.key("name").text(event.name);
    json.key("ph").text("X");
    json.key("ts").number_real(static_cast<double>(event.begin_ns - origin_ns_) / 1000.0);
    json.key("dur").number_real(static_cast<double>(event.end_ns - event.begin_ns) / 1000.0);
    json.key("pid").number(rank_);
    json.key("tid").number(thread->second);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

Status Trace::write() const {
  if (!enabled()) return {};
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  const std::unique_ptr<storage::Storage> files = storage::make_posix_storage(folder);
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreate;
  options.durable = false;
  const std::string text = to_json();
  return storage::write_all(*files, name, std::as_bytes(std::span(text)), std::move(options));
}

}  // namespace shardwright::exec
