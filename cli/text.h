// SPDX-License-Identifier: Apache-2.0
//
// Text for people: sizes, counts, columns, names without control characters, colour only where it
// is wanted. Pure but for use_color, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::cli {

// "0 B", "1023 B", "1.50 KiB", "2.00 GiB".
std::string size_text(uint64_t bytes);
// "1,234,567".
std::string count_text(uint64_t count);
// "1 tensor", "2 tensors".
std::string plural(uint64_t count, std::string_view noun);
// "[4, 8]".
std::string shape_text(const std::vector<int64_t>& shape);

// Control characters and bytes that are not UTF-8 as \xNN; line ends of multi-line texts are
// escaped too.
std::string printable(std::string_view text);
// A word that a shell reads as this text.
std::string shell_word(std::string_view text);

// The one of these words that a mistyped one stands for: what it begins, else the nearest by single
// letters that are missing, added, changed or swapped, when few are. "" when none is near.
std::string nearest_word(std::string_view mistyped, const std::vector<std::string>& words);

// True when the stream is a terminal, NO_COLOR is not set and TERM is not "dumb".
bool use_color(int descriptor);

// Rows of cells in columns, two spaces apart; `right` lists the columns that are aligned to the
// right.
class Table {
 public:
  explicit Table(std::vector<bool> right) : right_(std::move(right)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace shardwright::cli
