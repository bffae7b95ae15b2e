// SPDX-License-Identifier: Apache-2.0
//
// TextArray: texts of somebody else in a blob that ascending offsets cut. A view;
// thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shardwright {

// Text i lies from offsets[i] to offsets[i + 1]. Without offsets all are empty.
struct TextArray {
  std::span<const char> blob;
  std::span<const uint64_t> offsets;
  std::string_view at(size_t index) const {
    if (offsets.empty()) return {};
    return {blob.data() + offsets[index], offsets[index + 1] - offsets[index]};
  }
};

}  // namespace shardwright
