// SPDX-License-Identifier: Apache-2.0
#include "tests/core/format/archive/pickle_description.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::format::archive::test {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxValues = 20000;  // a pickle may hold itself more than once

class Describer {
 public:
  explicit Describer(const PickleData& data) : data_(data) {}

  std::string of(PickleRef value, int depth) {
    if (depth > kMaxDepth || ++described_ > kMaxValues) return "...";
    switch (data_.kind(value)) {
      case PickleKind::kAbsent:
        return "absent";
      case PickleKind::kNone:
        return "None";
      case PickleKind::kBool:
        return data_.boolean(value) ? "True" : "False";
      case PickleKind::kInteger:
        return fmt::to_string(data_.integer(value));
      case PickleKind::kLongInteger:
        return "long:" + to_hex(data_.bytes(value));
      case PickleKind::kReal:
        return fmt::format("real:{:016x}", std::bit_cast<uint64_t>(data_.real(value)));
      case PickleKind::kText:
        return quoted(data_.text(value));
      case PickleKind::kBytes:
        return "bytes:" + to_hex(data_.bytes(value));
      case PickleKind::kByteArray:
        return "bytearray:" + to_hex(data_.bytes(value));
      case PickleKind::kTuple:
        return "(" + joined(data_.tuple(value), depth) + ")";
      case PickleKind::kFrozenSet:
        return "frozenset" + sorted(data_.tuple(value), depth);
      case PickleKind::kList:
        return "[" + joined(all(data_.parts(value)), depth) + "]";
      case PickleKind::kSet:
        return "set" + sorted(all(data_.parts(value)), depth);
      case PickleKind::kDict:
        return "{" + pairs(data_.pairs(value), depth) + "}";
      case PickleKind::kGlobal:
        return "<" + named(value) + ">";
      case PickleKind::kRecord:
        return record(value, depth);
      case PickleKind::kObject:
        return object(value, depth);
      case PickleKind::kPersistent:
        return "persistent:" + of(data_.target(value), depth + 1);
    }
    return "?";
  }

 private:
  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char each : text) {
      const bool plain = each >= ' ' && each <= '~' && each != '"' && each != '\\';
      out += plain ? std::string(1, each) : fmt::format("\\x{:02x}", static_cast<uint8_t>(each));
    }
    return out + "\"";
  }

  static std::vector<PickleRef> all(PickleCursor cursor) {
    std::vector<PickleRef> values;
    PickleRef value;
    while (cursor.next(&value)) values.push_back(value);
    return values;
  }

  std::string joined(std::span<const PickleRef> values, int depth) {
    std::string out;
    for (const PickleRef value : values) out += (out.empty() ? "" : ", ") + of(value, depth + 1);
    return out;
  }

  std::string sorted(std::span<const PickleRef> values, int depth) {
    std::vector<std::string> texts;
    for (const PickleRef value : values) texts.push_back(of(value, depth + 1));
    std::ranges::sort(texts);
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
  }

  std::string pairs(PickleCursor cursor, int depth) {
    std::string out;
    PickleRef key, value;
    while (cursor.next(&key) && cursor.next(&value)) {
      out += (out.empty() ? "" : ", ") + of(key, depth + 1) + ": " + of(value, depth + 1);
    }
    return out;
  }

  std::string named(PickleRef global) {
    return fmt::format("{}.{}", data_.global(global).module, data_.global(global).name);
  }

  std::string record(PickleRef value, int depth) {
    std::string out =
        fmt::format("known{}({})", data_.known(value), joined(data_.fields(value), depth));
    if (!data_.state(value).is_absent()) out += "|" + of(data_.state(value), depth + 1);
    return out;
  }

  std::string object(PickleRef value, int depth) {
    const PickleRef callable = data_.callable(value);
    const bool is_global = data_.kind(callable) == PickleKind::kGlobal;
    std::string out = is_global ? named(callable) : "[" + of(callable, depth + 1) + "]";
    out += of(data_.arguments(value), depth + 1);
    if (!data_.keywords(value).is_absent()) out += "**" + of(data_.keywords(value), depth + 1);
    const std::string parts = joined(all(data_.parts(value)), depth);
    if (!parts.empty()) out += "[" + parts + "]";
    const std::string items = pairs(data_.pairs(value), depth);
    if (!items.empty()) out += "{" + items + "}";
    if (!data_.state(value).is_absent()) out += "|" + of(data_.state(value), depth + 1);
    return out;
  }

  const PickleData& data_;
  int described_ = 0;
};

}  // namespace

std::string describe(const PickleData& data, PickleRef value) {
  return Describer(data).of(value, 0);
}

std::string describe(const PickleData& data) {
  return describe(data, data.root());
}

std::span<const std::byte> pickle_of(std::string_view bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace shardwright::format::archive::test
