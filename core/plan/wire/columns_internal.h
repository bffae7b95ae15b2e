// SPDX-License-Identifier: Apache-2.0
//
// Vectors of verified buffers. The FlatBuffers verifier (25.12) checks the alignment of a
// vector's length, which is 4, and not that of its elements: in a damaged buffer elements of 8
// bytes may lie at any multiple of 4, and reading them in place would be undefined. So columns are
// copied, or read in place where they happen to be aligned.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <flatbuffers/vector.h>

#include "core/plan/wire/records.h"

namespace shardwright::plan::internal {

// Elements of a vector that may be absent.
template <typename T>
flatbuffers::uoffset_t count_of(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

using wire::record_at;

// The elements as values of the same bytes.
template <typename Element, typename T>
std::vector<Element> copy_column(const flatbuffers::Vector<T>* vector) {
  static_assert(std::is_trivially_copyable_v<Element>);
  static_assert(sizeof(Element) == flatbuffers::IndirectHelper<T>::element_stride);
  std::vector<Element> column(count_of(vector));
  if (!column.empty()) {
    std::memcpy(static_cast<void*>(column.data()), vector->Data(), column.size() * sizeof(Element));
  }
  return column;
}

inline std::string copy_text(const flatbuffers::Vector<uint8_t>* bytes) {
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// A plan buffer inside another one, where it lies.
inline std::span<const std::byte> bytes_of_column(const flatbuffers::Vector<uint8_t>* vector) {
  if (vector == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(vector->data()), vector->size()};
}

// The elements where they lie, or a copy that is put into owned where they are not aligned.
template <typename Element, typename T>
std::span<const Element> column_in_place(const flatbuffers::Vector<T>* vector,
                                         std::vector<std::shared_ptr<const void>>* owned) {
  static_assert(std::is_trivially_copyable_v<Element>);
  static_assert(sizeof(Element) == flatbuffers::IndirectHelper<T>::element_stride);
  if (count_of(vector) == 0) return {};
  const auto* data = reinterpret_cast<const Element*>(vector->Data());
  if (reinterpret_cast<uintptr_t>(data) % alignof(Element) == 0) return {data, vector->size()};
  auto copy = std::make_shared<const std::vector<Element>>(copy_column<Element>(vector));
  const std::span<const Element> span = *copy;
  owned->push_back(std::move(copy));
  return span;
}

}  // namespace shardwright::plan::internal
