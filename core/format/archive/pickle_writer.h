// SPDX-License-Identifier: Apache-2.0
//
// PickleWriter: writes a pickle value by value, in the order of a stack machine: parts first, then
// what joins them. Protocol 2 is what torch's archives are written in, 4 what every Python since
// 3.8 reads and CPython's own indexes are in. Frames are left out, memo entries are made where they
// are asked for: unpicklers need neither. That the calls make one value is the caller's business.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format/archive/pickle_opcode.h"

namespace shardwright::format::archive {

enum class PickleProtocol : uint8_t { k2 = 2, k4 = 4 };

// A value of the memo.
struct PickleMemo {
  uint32_t id = 0;
};

class PickleWriter {
 public:
  explicit PickleWriter(PickleProtocol protocol);

  PickleWriter& none();
  PickleWriter& boolean(bool value);
  PickleWriter& integer(int64_t value);
  // Of any size: decimal digits behind an optional minus sign.
  PickleWriter& integer_of_digits(std::string_view digits);
  // Two's complement, little-endian; bytes at the end that only repeat the sign are left out.
  PickleWriter& long_integer(std::span<const std::byte> bytes);
  PickleWriter& real(double value);
  // UTF-8 of less than 4 GiB, as are the other texts.
  PickleWriter& text(std::string_view text);
  // The same; from the second time on it is taken from the memo.
  PickleWriter& shared_text(std::string_view text);
  // bytes of less than 4 GiB. Protocol 2 has none and says how they are made of a text.
  PickleWriter& bytes(std::span<const std::byte> bytes);
  // Looked up once, then taken from the memo.
  PickleWriter& global(std::string_view module, std::string_view name);

  PickleWriter& mark();
  PickleWriter& empty_tuple();
  // Of the last count values, 1 to 3.
  PickleWriter& tuple(size_t count);
  PickleWriter& tuple_to_mark();
  PickleWriter& empty_list();
  PickleWriter& append();           // [list, value] -> [list]
  PickleWriter& appends_to_mark();  // [list, mark, values] -> [list]
  PickleWriter& empty_dict();
  PickleWriter& set_item();           // [dict, key, value] -> [dict]
  PickleWriter& set_items_to_mark();  // [dict, mark, key, value, ...] -> [dict]

  PickleWriter& reduce();         // [callable, tuple] -> [what the call gives]
  PickleWriter& new_object();     // [class, tuple] -> [instance]
  PickleWriter& build();          // [instance, state] -> [instance]
  PickleWriter& persistent_id();  // [id] -> [what it stands for]
  PickleWriter& pop();            // [value] -> []; the memo may keep it

  // The last value gets a place in the memo; it stays where it is.
  PickleMemo memoize();
  PickleWriter& get(PickleMemo memo);

  // Opcodes that were written before, among which nothing got a place in the memo: what comes again
  // and again is put together once.
  PickleWriter& again(std::string_view opcodes) {
    out_.append(opcodes);
    return *this;
  }
  std::string since(uint64_t size_bytes) const {
    return out_.substr(static_cast<size_t>(size_bytes));
  }
  // Forgets what was written behind so many bytes, among which nothing got a place in the memo.
  void cut(uint64_t size_bytes) { out_.resize(static_cast<size_t>(size_bytes)); }

  uint64_t size_bytes() const { return out_.size(); }
  void reserve(uint64_t size_bytes) { out_.reserve(static_cast<size_t>(size_bytes)); }
  // Writes STOP. Nothing is written after it.
  std::string finish() &&;

 private:
  template <typename Number>
  void number(Number value);
  template <typename Number>
  void opcode_and(PickleOpcode code, Number value);
  void opcode(uint8_t code) { out_.push_back(static_cast<char>(code)); }

  PickleProtocol protocol_;
  std::string out_;
  uint32_t memo_count_ = 0;
  std::map<std::string, PickleMemo, std::less<>> texts_;
  std::map<std::pair<std::string, std::string>, PickleMemo> globals_;
};

}  // namespace shardwright::format::archive
