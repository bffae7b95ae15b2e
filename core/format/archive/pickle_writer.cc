// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_writer.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/format/archive/pickle_opcode.h"

namespace shardwright::format::archive {
namespace {

constexpr uint8_t code_of(PickleOpcode opcode) {
  return static_cast<uint8_t>(opcode);
}

template <typename Number>
bool fits(int64_t value) {
  return value >= std::numeric_limits<Number>::min() && value <= std::numeric_limits<Number>::max();
}

// UTF-8 of bytes that are taken as Latin-1.
std::string from_latin1(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const auto value = static_cast<uint8_t>(byte);
    if (value >= 0x80) text.push_back(static_cast<char>(0xC0 | value >> 6));
    text.push_back(static_cast<char>(value < 0x80 ? value : 0x80 | (value & 0x3F)));
  }
  return text;
}

}  // namespace

PickleWriter::PickleWriter(PickleProtocol protocol) : protocol_(protocol) {
  opcode(code_of(PickleOpcode::kProto));
  number(static_cast<uint8_t>(protocol));
}

template <typename Number>
void PickleWriter::number(Number value) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof(Number)];
  std::memcpy(bytes, &value, sizeof(Number));
  out_.append(bytes, sizeof(Number));
}

template <typename Number>
void PickleWriter::opcode_and(PickleOpcode code, Number value) {
  char bytes[1 + sizeof(Number)];
  bytes[0] = static_cast<char>(code);
  std::memcpy(bytes + 1, &value, sizeof(Number));
  out_.append(bytes, sizeof(bytes));
}

PickleWriter& PickleWriter::none() {
  opcode(code_of(PickleOpcode::kNone));
  return *this;
}

PickleWriter& PickleWriter::boolean(bool value) {
  opcode(code_of(value ? PickleOpcode::kNewTrue : PickleOpcode::kNewFalse));
  return *this;
}

PickleWriter& PickleWriter::integer(int64_t value) {
  if (fits<uint8_t>(value)) {
    opcode_and(PickleOpcode::kBinInt1, static_cast<uint8_t>(value));
  } else if (fits<uint16_t>(value)) {
    opcode_and(PickleOpcode::kBinInt2, static_cast<uint16_t>(value));
  } else if (fits<int32_t>(value)) {
    opcode_and(PickleOpcode::kBinInt, static_cast<int32_t>(value));
  } else {
    long_integer(std::as_bytes(std::span(&value, 1)));
  }
  return *this;
}

PickleWriter& PickleWriter::long_integer(std::span<const std::byte> bytes) {
  const auto is_negative = [](std::byte byte) { return (byte & std::byte{0x80}) != std::byte{}; };
  const auto repeats_sign = [&] {
    const std::byte sign = is_negative(bytes.back()) ? std::byte{0xFF} : std::byte{};
    return bytes.back() == sign && is_negative(bytes[bytes.size() - 2]) == is_negative(sign);
  };
  while (bytes.size() > 1 && repeats_sign()) bytes = bytes.first(bytes.size() - 1);
  if (bytes.size() <= UINT8_MAX) {
    opcode(code_of(PickleOpcode::kLong1));
    number(static_cast<uint8_t>(bytes.size()));
  } else {
    opcode(code_of(PickleOpcode::kLong4));
    number(static_cast<uint32_t>(bytes.size()));
  }
  out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return *this;
}

PickleWriter& PickleWriter::integer_of_digits(std::string_view digits) {
  const bool is_negative = digits.starts_with('-');
  std::vector<uint8_t> bytes{0};
  for (const char digit : digits.substr(is_negative ? 1 : 0)) {
    uint32_t carry = static_cast<uint32_t>(digit - '0');
    for (uint8_t& byte : bytes) {
      carry += uint32_t{byte} * 10;
      byte = static_cast<uint8_t>(carry & 0xFF);
      carry >>= 8;
    }
    if (carry != 0) bytes.push_back(static_cast<uint8_t>(carry));
  }
  bytes.push_back(0);
  uint32_t carry = 1;
  for (uint8_t& byte : bytes) {
    if (!is_negative) break;
    carry += static_cast<uint8_t>(~byte);
    byte = static_cast<uint8_t>(carry & 0xFF);
    carry >>= 8;
  }
  if (bytes.size() <= sizeof(int64_t)) {
    bytes.resize(sizeof(int64_t), (bytes.back() & 0x80) != 0 ? 0xFF : 0);
    int64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return integer(value);
  }
  return long_integer(std::as_bytes(std::span(bytes)));
}

PickleWriter& PickleWriter::real(double value) {
  opcode(code_of(PickleOpcode::kBinFloat));
  number(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
  return *this;
}

PickleWriter& PickleWriter::text(std::string_view text) {
  if (protocol_ == PickleProtocol::k4 && text.size() <= UINT8_MAX) {
    opcode(code_of(PickleOpcode::kShortBinUnicode));
    number(static_cast<uint8_t>(text.size()));
  } else {
    opcode(code_of(PickleOpcode::kBinUnicode));
    number(static_cast<uint32_t>(text.size()));
  }
  out_.append(text);
  return *this;
}

PickleWriter& PickleWriter::shared_text(std::string_view text) {
  const auto known = texts_.find(text);
  if (known != texts_.end()) return get(known->second);
  this->text(text);
  texts_.emplace(text, memoize());
  return *this;
}

PickleWriter& PickleWriter::bytes(std::span<const std::byte> bytes) {
  if (protocol_ == PickleProtocol::k2) {
    global("_codecs", "encode").text(from_latin1(bytes)).shared_text("latin1");
    return tuple(2).reduce();
  }
  if (bytes.size() <= UINT8_MAX) {
    opcode(code_of(PickleOpcode::kShortBinBytes));
    number(static_cast<uint8_t>(bytes.size()));
  } else {
    opcode(code_of(PickleOpcode::kBinBytes));
    number(static_cast<uint32_t>(bytes.size()));
  }
  out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return *this;
}

PickleWriter& PickleWriter::global(std::string_view module, std::string_view name) {
  auto key = std::make_pair(std::string(module), std::string(name));
  const auto known = globals_.find(key);
  if (known != globals_.end()) return get(known->second);
  if (protocol_ == PickleProtocol::k4) {
    shared_text(module).shared_text(name);
    opcode(code_of(PickleOpcode::kStackGlobal));
  } else {
    opcode(code_of(PickleOpcode::kGlobal));
    out_.append(module).append("\n").append(name).append("\n");
  }
  globals_.emplace(std::move(key), memoize());
  return *this;
}

PickleWriter& PickleWriter::mark() {
  opcode(code_of(PickleOpcode::kMark));
  return *this;
}

PickleWriter& PickleWriter::empty_tuple() {
  opcode(code_of(PickleOpcode::kEmptyTuple));
  return *this;
}

PickleWriter& PickleWriter::tuple(size_t count) {
  opcode(static_cast<uint8_t>(code_of(PickleOpcode::kTuple1) + count - 1));
  return *this;
}

PickleWriter& PickleWriter::tuple_to_mark() {
  opcode(code_of(PickleOpcode::kTuple));
  return *this;
}

PickleWriter& PickleWriter::empty_list() {
  opcode(code_of(PickleOpcode::kEmptyList));
  return *this;
}

PickleWriter& PickleWriter::append() {
  opcode(code_of(PickleOpcode::kAppend));
  return *this;
}

PickleWriter& PickleWriter::appends_to_mark() {
  opcode(code_of(PickleOpcode::kAppends));
  return *this;
}

PickleWriter& PickleWriter::empty_dict() {
  opcode(code_of(PickleOpcode::kEmptyDict));
  return *this;
}

PickleWriter& PickleWriter::set_item() {
  opcode(code_of(PickleOpcode::kSetItem));
  return *this;
}

PickleWriter& PickleWriter::set_items_to_mark() {
  opcode(code_of(PickleOpcode::kSetItems));
  return *this;
}

PickleWriter& PickleWriter::reduce() {
  opcode(code_of(PickleOpcode::kReduce));
  return *this;
}

PickleWriter& PickleWriter::new_object() {
  opcode(code_of(PickleOpcode::kNewObj));
  return *this;
}

PickleWriter& PickleWriter::build() {
  opcode(code_of(PickleOpcode::kBuild));
  return *this;
}

PickleWriter& PickleWriter::persistent_id() {
  opcode(code_of(PickleOpcode::kBinPersId));
  return *this;
}

PickleWriter& PickleWriter::pop() {
  opcode(code_of(PickleOpcode::kPop));
  return *this;
}

PickleMemo PickleWriter::memoize() {
  const PickleMemo memo{memo_count_++};
  if (protocol_ == PickleProtocol::k4) {
    opcode(code_of(PickleOpcode::kMemoize));
  } else if (memo.id <= UINT8_MAX) {
    opcode(code_of(PickleOpcode::kBinPut));
    number(static_cast<uint8_t>(memo.id));
  } else {
    opcode(code_of(PickleOpcode::kLongBinPut));
    number(memo.id);
  }
  return memo;
}

PickleWriter& PickleWriter::get(PickleMemo memo) {
  if (memo.id <= UINT8_MAX) {
    opcode_and(PickleOpcode::kBinGet, static_cast<uint8_t>(memo.id));
  } else {
    opcode_and(PickleOpcode::kLongBinGet, memo.id);
  }
  return *this;
}

std::string PickleWriter::finish() && {
  opcode(code_of(PickleOpcode::kStop));
  return std::move(out_);
}

}  // namespace shardwright::format::archive
