// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_writer.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/text.h"

namespace shardwright {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed UTF-8 character at the front of text; 0 when there is none.
size_t character_length(std::string_view text) {
  for (size_t length = 1; length <= 4 && length <= text.size(); ++length) {
    if (is_valid_utf8(text.substr(0, length))) return length;
  }
  return 0;
}

void append_escaped(char c, std::string* out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  switch (c) {
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  *out += "\\u00";
  *out += kDigits[byte >> 4];
  *out += kDigits[byte & 15];
}

bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\' && c != 0x7F;
}

}  // namespace

void JsonWriter::before_value() {
  if (need_comma_) out_ += ',';
  need_comma_ = true;
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  out_ += '{';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  out_ += '}';
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  out_ += '[';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  out_ += ']';
  need_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  text(name);
  out_ += ':';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  before_value();
  out_ += '"';
  while (!value.empty()) {
    const char c = value.front();
    if (static_cast<unsigned char>(c) < 0x80) {
      if (is_plain(c)) {
        out_ += c;
      } else {
        append_escaped(c, &out_);
      }
      value.remove_prefix(1);
      continue;
    }
    const size_t length = character_length(value);
    out_ += length == 0 ? kReplacement : value.substr(0, length);
    value.remove_prefix(length == 0 ? 1 : length);
  }
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::number(int64_t value) {
  before_value();
  out_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::number_unsigned(uint64_t value) {
  before_value();
  out_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::number_real(double value) {
  if (!std::isfinite(value)) return null();
  before_value();
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  out_.append(digits, end.ptr);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  before_value();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

}  // namespace shardwright
