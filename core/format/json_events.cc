// SPDX-License-Identifier: Apache-2.0
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/format/json_events.h"

namespace shardwright::format {
namespace {

constexpr size_t kMaxNameShown = 128;
constexpr std::string_view kBlanks = " \t\r\n";

// The reader's own sentence without its prefixes.
std::string syntax_text(std::string_view message) {
  const size_t begin = message.find("syntax error");
  if (begin != std::string_view::npos) return escape_text(message.substr(begin), 200);
  const size_t bracket = message.find("] ");
  return escape_text(bracket == std::string_view::npos ? message : message.substr(bracket + 2),
                     200);
}

// The events of the reader as those of a sink; returning false ends it.
class Events {
 public:
  Events(JsonSink* sink, size_t max_depth) : sink_(sink), max_depth_(max_depth) {}

  bool null() { return take(sink_->other("null")); }
  bool boolean(bool) { return take(sink_->other("a boolean")); }
  bool number_integer(int64_t) { return take(sink_->other("a negative number")); }
  bool number_unsigned(uint64_t value) { return take(sink_->natural(value)); }
  bool number_float(double, const std::string&) {
    return take(sink_->other("a number that is no natural one or too large"));
  }
  bool string(std::string& value) { return take(sink_->text(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // no JSON text has one
  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) { return take(sink_->key(std::move(name))); }

  bool parse_error(size_t position, const std::string&, const std::exception& error) {
    return take(data_loss(fmt::format("no JSON at byte {}: {}", position == 0 ? 0 : position - 1,
                                      syntax_text(error.what()))));
  }

  Status finish(bool done) {
    if (!failure_.ok() || done) return failure_;
    return internal_error("the reader of JSON stopped without a reason");
  }

 private:
  bool open(bool is_object) {
    if (depth_ == max_depth_)
      return take(data_loss(fmt::format("values lie deeper than {} levels", max_depth_)));
    ++depth_;
    return take(sink_->open(is_object));
  }
  bool close() {
    --depth_;
    return take(sink_->close());
  }
  bool take(Status status) {
    failure_ = std::move(status);
    return failure_.ok();
  }

  JsonSink* sink_;
  size_t max_depth_;
  size_t depth_ = 0;
  Status failure_;
};

}  // namespace

std::string shown(std::string_view name) {
  return escape_text(name, kMaxNameShown);
}

Status read_json(std::string_view text, size_t max_depth, JsonSink* sink) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos || text[begin] != '{')
    return data_loss("it does not begin with '{'");
  // The reader would take a NUL for the end.
  const size_t nul = text.find('\0', begin);
  if (nul != std::string_view::npos)
    return data_loss(fmt::format("there is a NUL at byte {}", nul));
  Events events(sink, max_depth);
  const bool done = nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  return events.finish(done);
}

}  // namespace shardwright::format
