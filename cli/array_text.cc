// SPDX-License-Identifier: Apache-2.0
#include "cli/array_text.h"

#include <algorithm>
#include <string_view>

namespace shardwright::cli {
namespace {

constexpr size_t kLineWidth = 75;
constexpr std::string_view kLeftOut = "...";

class Layouter {
 public:
  Layouter(const std::vector<int64_t>& shape, const std::vector<bool>& cut,
           const std::vector<std::string>& words)
      : shape_(shape), cut_(cut), words_(words) {}

  // The text of dimensions [axis, rank) at `at`, the position of the first word. width: columns for
  // it.
  std::string block(size_t axis, size_t at, size_t width) const {
    return axis + 1 == shape_.size() ? row(axis, at, width) : rows(axis, at, width);
  }

 private:
  std::string row(size_t axis, size_t at, size_t width) const {
    const std::string indent(axis + 1, ' ');
    const size_t limit = width - 1;  // the closing bracket
    std::string text;
    std::string line = indent;
    const auto put = [&](std::string_view word, bool last) {
      if (line.size() + word.size() > limit && line.size() > indent.size()) {
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
        line = indent;
      }
      line += word;
      if (!last) line += ' ';
    };
    for (int64_t i = 0; i < shape_[axis]; ++i) {
      if (cut_[axis] && i == kEdgeItems) put(kLeftOut, false);
      put(words_[at + static_cast<size_t>(i)], i + 1 == shape_[axis]);
    }
    text += line;
    return "[" + text.substr(indent.size()) + "]";
  }

  std::string rows(size_t axis, size_t at, size_t width) const {
    const std::string indent(axis + 1, ' ');
    const std::string between(shape_.size() - axis - 1, '\n');
    size_t inner = 1;
    for (size_t d = axis + 1; d < shape_.size(); ++d) inner *= static_cast<size_t>(shape_[d]);
    std::string text;
    for (int64_t i = 0; i < shape_[axis]; ++i) {
      if (i > 0) text += between + indent;
      if (cut_[axis] && i == kEdgeItems) text.append(kLeftOut).append(between).append(indent);
      text += block(axis + 1, at + static_cast<size_t>(i) * inner, width - 1);
    }
    return "[" + text + "]";
  }

  const std::vector<int64_t>& shape_;
  const std::vector<bool>& cut_;
  const std::vector<std::string>& words_;
};

std::string json_block(const std::vector<int64_t>& shape, const std::vector<std::string>& values,
                       size_t axis, size_t* at) {
  if (axis == shape.size()) return values[(*at)++];
  std::string text = "[";
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) text += ",";
    text += json_block(shape, values, axis + 1, at);
  }
  return text + "]";
}

}  // namespace

std::string array_text(const std::vector<int64_t>& shape, const std::vector<bool>& cut,
                       const std::vector<std::string>& words) {
  if (words.empty()) return "[]";
  if (shape.empty()) {
    const std::string& word = words.front();
    return word.substr(0, word.find_last_not_of(' ') + 1);
  }
  return Layouter(shape, cut, words).block(0, 0, kLineWidth);
}

std::string array_json(const std::vector<int64_t>& shape, const std::vector<std::string>& values) {
  size_t at = 0;
  return json_block(shape, values, 0, &at);
}

}  // namespace shardwright::cli
