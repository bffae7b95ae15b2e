// SPDX-License-Identifier: Apache-2.0
//
// NamePattern: a glob over whole names that remembers what it matched, and NameForm: a text with
// places for what was remembered. '*' is any run of bytes, as short as those after it allow; '#' a
// whole number: all digits that stand side by side, without leading zeros. A backslash before '*',
// '#' or itself takes away their meaning; all other characters stand for themselves. Immutable,
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shardwright {

// What '*' and '#' matched, in the order of the pattern; borrows the name.
using Captures = std::vector<std::string_view>;

class NamePattern {
 public:
  // INVALID_ARGUMENT: no text, invalid UTF-8, a backslash before another character, two signs side
  // by side of which nobody can tell where one ends.
  static Result<NamePattern> parse(std::string_view text);

  // Linear in the name, but for what the last '*' tries.
  std::optional<Captures> match(std::string_view name) const;
  // The captures and the length of the shortest beginning of the name that matches.
  struct Beginning {
    Captures captures;
    size_t size = 0;
  };
  std::optional<Beginning> match_beginning(std::string_view name) const;

  size_t capture_count() const { return captures_number_.size(); }
  // Whether capture i, counted from 1, is a number; false when there is none.
  bool captures_number(size_t capture) const {
    return capture >= 1 && capture <= capture_count() && captures_number_[capture - 1];
  }

 private:
  enum class Kind : uint8_t { kText, kAny, kNumber };
  struct Part {
    Kind kind = Kind::kText;
    std::string text;
  };

  std::optional<Beginning> match_up_to(std::string_view name, bool whole) const;

  std::vector<Part> parts_;
  std::vector<bool> captures_number_;  // per capture
};

// "decoder.layers.{2}": {1}, {2}, ... are captures, {#} is a number that a rule counts; "{{" and
// "}}" are braces.
class NameForm {
 public:
  // INVALID_ARGUMENT: a capture that is not there, {#} where nothing is counted or no {#} where
  // names would collide without, a brace by itself, invalid UTF-8.
  static Result<NameForm> parse(std::string_view text, size_t captures, bool counts);
  std::string fill(const Captures& captures, int64_t counted) const;

 private:
  struct Part {
    std::string text;
    int64_t capture = -1;  // behind the text; 0: the number that is counted; -1: none
  };
  std::vector<Part> parts_;
};

// A capture of '#': INVALID_ARGUMENT when it is above 2^63 - 1.
Result<int64_t> captured_number(std::string_view digits);

}  // namespace shardwright
