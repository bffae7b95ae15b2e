// SPDX-License-Identifier: Apache-2.0
//
// Elements of any stored dtype as text, with the digits that numpy.array2string (numpy 2.x) prints:
// shortest digits that read back equal, at most 8 behind the point, one form (positional or
// exponent) for all elements. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shardwright::cli {

// Dtype of an element (SHW_FLOAT32, ...) and its bits, as shw_dtype_bits says them; 0 for none.
struct ElementType {
  int32_t dtype = 0;
  uint32_t bits = 0;
};
// What the parts of a complex number are.
ElementType part_type(ElementType type);

// One element. Real numbers use `real`; integers keep all 64 bits.
struct Element {
  enum class Kind : uint8_t { kBool, kInteger, kUnsigned, kReal, kComplex };
  Kind kind = Kind::kReal;
  int64_t integer = 0;
  uint64_t unsigned_integer = 0;  // also the value of a bool
  double real = 0;
  double imaginary = 0;
};

// Elements of packed bytes, `count` of them from element `first` on. Empty when the dtype is not
// known.
std::vector<Element> decode_elements(ElementType type, std::span<const std::byte> bytes,
                                     uint64_t first, uint64_t count);

// One word per element, all of one width. single: the only element of a scalar.
std::vector<std::string> element_words(ElementType type, const std::vector<Element>& elements,
                                       bool single);

// The element as a JSON value: shortest digits; NaN and infinities as text, complex numbers as two
// of them.
std::string element_json(ElementType type, const Element& element);

}  // namespace shardwright::cli
