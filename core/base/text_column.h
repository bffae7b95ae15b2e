// SPDX-License-Identifier: Apache-2.0
//
// TextColumn: texts one after the other in one block of memory, each followed by a NUL that does
// not count, so that C callers may read it either way. Thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright {

// Room for more elements; reserve of the exact size would make many small batches quadratic.
template <typename Column>
void reserve_doubling(Column* column, size_t more) {
  const size_t needed = column->size() + more;
  if (needed > column->capacity()) column->reserve(std::max(needed, 2 * column->capacity()));
}

class TextColumn {
 public:
  size_t size() const { return ends_.size(); }
  // Valid until the column changes.
  std::string_view operator[](size_t index) const {
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return {bytes_.data() + begin, ends_[index] - begin - 1};
  }
  void append(std::string_view text) {
    bytes_.append(text);
    bytes_.push_back('\0');
    ends_.push_back(bytes_.size());
  }
  // Room for that many further texts; at least doubles, so that many small batches stay linear.
  void reserve_more(size_t texts, size_t bytes) {
    reserve_doubling(&ends_, texts);
    reserve_doubling(&bytes_, texts + bytes);
  }
  // Forgets the texts from count on.
  void truncate(size_t count) {
    ends_.resize(count);
    bytes_.resize(count == 0 ? 0 : ends_[count - 1]);
  }

 private:
  std::string bytes_;
  std::vector<uint64_t> ends_;  // behind the NUL of each text
};

}  // namespace shardwright
