// SPDX-License-Identifier: Apache-2.0
//
// JsonWriter: writes compact JSON text in one pass, for reports, plans and info. Commas and escapes
// are its business; nesting is the caller's. Text that is not UTF-8 has its bad bytes replaced by
// U+FFFD; control characters are escaped. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardwright {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);  // inside an object, before a value
  JsonWriter& text(std::string_view value);
  JsonWriter& number(int64_t value);
  JsonWriter& number_unsigned(uint64_t value);
  JsonWriter& number_real(
      double value);  // null for NaN and infinities; shortest text that reads back equal
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // a value that is JSON text already

  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  void before_value();
  std::string out_;
  bool need_comma_ = false;
};

}  // namespace shardwright
