// SPDX-License-Identifier: Apache-2.0
//
// The reader gives events, one per token, without positions. A cursor of our own follows it: at an
// event everything up to the end of that token has been found well-formed, so the token is the next
// thing behind blanks, commas and colons, and its end needs no more than a look at its characters.
#include "core/base/json_tree.h"

#include <algorithm>
#include <bit>
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"

namespace shardwright {
namespace {

constexpr std::string_view kBetweenTokens = " \t\r\n,:";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string sentence_at(const TextPosition& at, std::string_view what) {
  return fmt::format("line {}, column {}: {}", at.line, at.column, what);
}

Status placed(Status status, const TextPosition& at) {
  return std::move(status)
      .with_detail("line", fmt::to_string(at.line))
      .with_detail("column", fmt::to_string(at.column));
}

Status wrong_at(std::string_view text, size_t offset, std::string_view what) {
  const TextPosition at = position_in(text, offset);
  return placed(invalid_argument(sentence_at(at, what)), at);
}

// The reader's own sentence without its prefixes.
std::string syntax_text(std::string_view message) {
  const size_t begin = message.find("syntax error");
  if (begin != std::string_view::npos) return escape_text(message.substr(begin));
  const size_t bracket = message.find("] ");
  return escape_text(bracket == std::string_view::npos ? message : message.substr(bracket + 2));
}

}  // namespace

TextPosition position_in(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const size_t line_end = before.rfind('\n');
  const std::string_view line =
      line_end == std::string_view::npos ? before : before.substr(line_end + 1);
  const auto characters = std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return {static_cast<size_t>(std::ranges::count(before, '\n')) + 1,
          static_cast<size_t>(characters) + 1};
}

// Takes the events of the reader; returning false ends it.
class JsonTreeBuilder {
 public:
  JsonTreeBuilder(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {
    tree_.source_ = text;
    if (text.starts_with(kByteOrderMark)) cursor_ = kByteOrderMark.size();
  }

  bool null() { return scalar(JsonType::kNull, 0, 4); }
  bool boolean(bool value) {
    return scalar(JsonType::kBoolean, value ? 1 : 0, value ? size_t{4} : size_t{5});
  }
  bool number_integer(int64_t value) { return number(JsonType::kInteger, value); }
  bool number_unsigned(uint64_t value) {
    if (std::in_range<int64_t>(value)) return number_integer(static_cast<int64_t>(value));
    return real(static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) { return real(value); }
  bool string(std::string& value) {
    start_token();
    return add(JsonType::kText, add_text(std::move(value))) && end_token(string_length());
  }
  bool binary(nlohmann::json::binary_t&) { return false; }  // no JSON text has one
  bool start_object(size_t) { return open(JsonType::kObject); }
  bool start_array(size_t) { return open(JsonType::kArray); }
  bool end_object() { return keys_are_single() && close(); }
  bool end_array() { return close(); }

  bool key(std::string& value) {
    start_token();
    key_offset_ = static_cast<uint32_t>(cursor_);
    key_ = static_cast<uint32_t>(add_text(std::move(value)));
    return end_token(string_length());
  }

  bool parse_error(size_t position, const std::string&, const std::exception& error) {
    failure_ = wrong_at(text_, position == 0 ? 0 : position - 1, syntax_text(error.what()));
    return false;
  }

  Result<JsonTree> finish(bool done) && {
    if (!failure_.ok()) return failure_;
    if (!done) return internal_error("the reader of JSON stopped without a reason");
    return std::move(tree_);
  }

 private:
  struct Open {
    uint32_t node = 0;
    uint32_t last = JsonTree::kNone;  // last member so far
  };

  void start_token() {
    while (cursor_ < text_.size() && kBetweenTokens.find(text_[cursor_]) != std::string_view::npos)
      ++cursor_;
  }
  bool end_token(size_t length) {
    cursor_ += length;
    return true;
  }
  size_t string_length() const {
    size_t at = cursor_ + 1;
    while (at < text_.size() && text_[at] != '"') at += text_[at] == '\\' ? size_t{2} : size_t{1};
    return at + 1 - cursor_;
  }
  size_t number_length() const {
    const size_t end = text_.find_first_not_of("+-.0123456789eE", cursor_);
    return std::min(end, text_.size()) - cursor_;
  }

  int64_t add_text(std::string value) {
    tree_.texts_.push_back(std::move(value));
    return static_cast<int64_t>(tree_.texts_.size() - 1);
  }

  bool add(JsonType type, int64_t value) {
    if (tree_.nodes_.size() == limits_.values) {
      failure_ = resource_exhausted(
          "json_values", fmt::format("the text has more than {} values", limits_.values));
      return false;
    }
    const auto index = static_cast<uint32_t>(tree_.nodes_.size());
    JsonTree::Node node;
    node.type = type;
    node.value = value;
    node.offset = static_cast<uint32_t>(cursor_);
    if (!open_.empty()) {
      Open& parent = open_.back();
      if (parent.last != JsonTree::kNone) tree_.nodes_[parent.last].next = index;
      parent.last = index;
      ++tree_.nodes_[parent.node].size;
      if (tree_.nodes_[parent.node].type == JsonType::kObject) {
        node.key_offset = key_offset_;
        node.key = key_;
      }
    }
    tree_.nodes_.push_back(node);
    return true;
  }

  bool scalar(JsonType type, int64_t value, size_t length) {
    start_token();
    return add(type, value) && end_token(length);
  }
  bool number(JsonType type, int64_t value) {
    start_token();
    return add(type, value) && end_token(number_length());
  }
  bool real(double value) { return number(JsonType::kReal, std::bit_cast<int64_t>(value)); }

  bool open(JsonType type) {
    start_token();
    if (open_.size() == limits_.depth) {
      failure_ =
          wrong_at(text_, cursor_, fmt::format("values lie deeper than {} levels", limits_.depth));
      return false;
    }
    if (!add(type, 0)) return false;
    open_.push_back({static_cast<uint32_t>(tree_.nodes_.size() - 1), JsonTree::kNone});
    return end_token(1);
  }

  bool close() {
    start_token();
    open_.pop_back();
    return end_token(1);
  }

  bool keys_are_single() {
    std::vector<std::pair<std::string_view, uint32_t>> keys;  // text, where it stands
    const uint32_t object = open_.back().node;
    uint32_t at = tree_.nodes_[object].size == 0 ? JsonTree::kNone : object + 1;
    for (; at != JsonTree::kNone; at = tree_.nodes_[at].next)
      keys.emplace_back(tree_.texts_[tree_.nodes_[at].key], tree_.nodes_[at].key_offset);
    std::ranges::sort(keys);
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto twice = std::ranges::adjacent_find(keys, same);
    if (twice == keys.end()) return true;
    const TextPosition first = position_in(text_, twice->second);
    failure_ = wrong_at(text_, std::next(twice)->second,
                        fmt::format("the key '{}' stands here again, it was given in line {}, "
                                    "column {}",
                                    escape_text(twice->first), first.line, first.column));
    return false;
  }

  std::string_view text_;
  JsonLimits limits_;
  JsonTree tree_;
  size_t cursor_ = 0;
  uint32_t key_ = 0;
  uint32_t key_offset_ = JsonTree::kNone;
  std::vector<Open> open_;
  Status failure_;
};

Result<JsonTree> JsonTree::parse(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.text_bytes) {
    return resource_exhausted("json_bytes", fmt::format("the text has {} bytes, the limit is {}",
                                                        text.size(), limits.text_bytes));
  }
  JsonTreeBuilder builder(text, limits);
  const bool done = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder).finish(done);
}

JsonType JsonValueView::type() const {
  return tree_->nodes_[index_].type;
}
size_t JsonValueView::offset() const {
  return tree_->nodes_[index_].offset;
}
int64_t JsonValueView::integer() const {
  return tree_->nodes_[index_].value;
}
double JsonValueView::real() const {
  const JsonTree::Node& node = tree_->nodes_[index_];
  return node.type == JsonType::kReal ? std::bit_cast<double>(node.value)
                                      : static_cast<double>(node.value);
}
std::string_view JsonValueView::text() const {
  return tree_->texts_[static_cast<size_t>(tree_->nodes_[index_].value)];
}
size_t JsonValueView::size() const {
  return tree_->nodes_[index_].size;
}

JsonValueView JsonValueView::first() const {
  return size() == 0 ? JsonValueView() : JsonValueView(tree_, index_ + 1);
}
JsonValueView JsonValueView::next() const {
  const uint32_t next = tree_->nodes_[index_].next;
  return next == JsonTree::kNone ? JsonValueView() : JsonValueView(tree_, next);
}
std::string_view JsonValueView::key() const {
  return tree_->texts_[tree_->nodes_[index_].key];
}
size_t JsonValueView::key_offset() const {
  return tree_->nodes_[index_].key_offset;
}

JsonValueView JsonValueView::member(std::string_view key) const {
  JsonValueView at = first();
  while (at.exists() && at.key() != key) at = at.next();
  return at;
}

Status JsonValueView::wrong(std::string_view what) const {
  return wrong_at(tree_->source_, offset(), what);
}
Status JsonValueView::unsupported(std::string_view what) const {
  const TextPosition at = position_in(tree_->source_, offset());
  return placed(unimplemented(sentence_at(at, what)), at);
}
Status JsonValueView::wrong_key(std::string_view what) const {
  return wrong_at(tree_->source_, key_offset(), what);
}

Status JsonValueView::check_keys(std::string_view noun,
                                 std::span<const std::string_view> known) const {
  for (JsonValueView at = first(); at.exists(); at = at.next()) {
    if (std::ranges::find(known, at.key()) != known.end()) continue;
    std::string what = fmt::format("'{}' is no key of {}", escape_text(at.key(), 80), noun);
    for (const std::string& nearest : nearest_names(at.key(), known, 1))
      what += fmt::format("; did you mean '{}'?", nearest);
    what += fmt::format(" (all keys: {})", fmt::join(known, ", "));
    return at.wrong_key(what).with_detail("parameter", at.key());
  }
  return {};
}

}  // namespace shardwright
