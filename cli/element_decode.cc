// SPDX-License-Identifier: Apache-2.0
//
// Bits to values. Small floats are described by one row each of a table; float32 and float64 are
// the machine's own.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "cli/element_text.h"
#include "cli/small_float.h"
#include "shardwright/shardwright.h"

namespace shardwright::cli {
namespace {

uint64_t bits_at(std::span<const std::byte> bytes, uint64_t bit, uint64_t width) {
  uint64_t value = 0;
  for (uint64_t done = 0; done < width;) {
    const uint64_t at = bit + done;
    const uint64_t take = std::min(width - done, 8 - at % 8);
    const uint64_t part =
        (std::to_integer<uint64_t>(bytes[at / 8]) >> (at % 8)) & ((uint64_t{1} << take) - 1);
    value |= part << done;
    done += take;
  }
  return value;
}

int64_t sign_extended(uint64_t value, uint64_t width) {
  const uint64_t shift = 64 - width;
  return static_cast<int64_t>(value << shift) >> shift;
}

double real_of(ElementType type, uint64_t bits) {
  if (type.bits == 64) return std::bit_cast<double>(bits);
  if (type.bits == 32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return small_float_value(*small_float_of(type), bits);
}

Element element_of(ElementType type, std::span<const std::byte> bytes, uint64_t bit) {
  Element element;
  switch (type.dtype) {
    case SHW_BOOL:
      element.kind = Element::Kind::kBool;
      element.unsigned_integer = bits_at(bytes, bit, type.bits) != 0 ? 1 : 0;
      break;
    case SHW_INT4:
    case SHW_INT8:
    case SHW_INT16:
    case SHW_INT32:
    case SHW_INT64:
      element.kind = Element::Kind::kInteger;
      element.integer = sign_extended(bits_at(bytes, bit, type.bits), type.bits);
      break;
    case SHW_UINT4:
    case SHW_UINT8:
    case SHW_UINT16:
    case SHW_UINT32:
    case SHW_UINT64:
      element.kind = Element::Kind::kUnsigned;
      element.unsigned_integer = bits_at(bytes, bit, type.bits);
      break;
    case SHW_COMPLEX32:
    case SHW_COMPLEX64:
    case SHW_COMPLEX128: {
      const ElementType half = part_type(type);
      element.kind = Element::Kind::kComplex;
      element.real = real_of(half, bits_at(bytes, bit, half.bits));
      element.imaginary = real_of(half, bits_at(bytes, bit + half.bits, half.bits));
      break;
    }
    default:
      element.real = real_of(type, bits_at(bytes, bit, type.bits));
  }
  return element;
}

}  // namespace

ElementType part_type(ElementType type) {
  switch (type.dtype) {
    case SHW_COMPLEX32:
      return {SHW_FLOAT16, 16};
    case SHW_COMPLEX64:
      return {SHW_FLOAT32, 32};
    default:
      return {SHW_FLOAT64, 64};
  }
}

std::vector<Element> decode_elements(ElementType type, std::span<const std::byte> bytes,
                                     uint64_t first, uint64_t count) {
  std::vector<Element> elements;
  if (type.bits == 0 || (first + count) * type.bits > bytes.size() * 8) return elements;
  elements.reserve(count);
  for (uint64_t i = first; i < first + count; ++i)
    elements.push_back(element_of(type, bytes, i * type.bits));
  return elements;
}

}  // namespace shardwright::cli
