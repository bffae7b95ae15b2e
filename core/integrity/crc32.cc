// SPDX-License-Identifier: Apache-2.0
//
// The checksum of two runs: appending n bytes multiplies the first one's polynomial by x^(8n)
// modulo that of the checksum. Bit 31 is the coefficient of x^0, as everywhere in this checksum.
#include "core/integrity/crc32.h"

#include <libdeflate.h>

namespace shardwright::integrity {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;
constexpr uint32_t kOne = 0x80000000;

uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & kOne) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

}  // namespace

uint32_t crc32(uint32_t so_far, std::span<const std::byte> bytes) {
  return bytes.empty() ? so_far : libdeflate_crc32(so_far, bytes.data(), bytes.size());
}

uint32_t crc32_of_both(uint32_t first, uint32_t second, uint64_t second_bytes) {
  uint32_t shift = kOne;
  uint32_t square = kOne >> 8;  // x^8
  for (uint64_t left = second_bytes; left != 0; left >>= 1) {
    if ((left & 1) != 0) shift = multiply(shift, square);
    square = multiply(square, square);
  }
  return multiply(first, shift) ^ second;
}

}  // namespace shardwright::integrity
