// SPDX-License-Identifier: Apache-2.0
//
// JSON text as a row of events, for texts of up to 100 MB of which no tree is wanted. Stricter than
// a tree needs: the text begins with "{" behind blanks, holds no NUL, and is not deeper than asked.
// Pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shardwright::format {

// What comes in the order of the text; the first failure ends reading and is returned.
class JsonSink {
 public:
  virtual ~JsonSink() = default;
  virtual Status open(bool is_object) = 0;
  virtual Status close() = 0;
  virtual Status key(std::string&& name) = 0;
  virtual Status text(std::string&& value) = 0;
  virtual Status natural(uint64_t value) = 0;  // digits only: no sign, fraction or exponent
  // Any other scalar; type: "null", "a boolean", "a number that is no natural one".
  virtual Status other(std::string_view type) = 0;
};

// DATA_LOSS with the place of what is no JSON; the failures of the sink.
Status read_json(std::string_view text, size_t max_depth, JsonSink* sink);

// A name as messages show it: escaped, cut where it is long.
std::string shown(std::string_view name);

}  // namespace shardwright::format
