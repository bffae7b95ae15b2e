// SPDX-License-Identifier: Apache-2.0
//
// Values may be shared and hold themselves, so what is written is bounded by its bytes and its
// depth.
#include "core/format/archive/pickle_export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/torch_tensor.h"

namespace shardwright::format::archive {
namespace {

constexpr int kMaxJsonDepth = 200;

// Decimal text of a two's complement number.
std::string decimal_of(std::span<const std::byte> bytes) {
  std::vector<uint32_t> words((bytes.size() + 3) / 4, 0);
  const bool is_negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
  uint32_t carry = is_negative ? 1 : 0;
  for (size_t i = 0; i < words.size() * 4; ++i) {
    const std::byte fill = is_negative ? std::byte{0xFF} : std::byte{0};
    uint32_t digit = std::to_integer<uint32_t>(i < bytes.size() ? bytes[i] : fill);
    if (is_negative) {
      digit = (~digit & 0xFF) + carry;
      carry = digit >> 8;
    }
    words[i / 4] |= (digit & 0xFF) << (8 * (i % 4));
  }
  std::string text;
  constexpr uint64_t kStep = 1'000'000'000;
  while (!words.empty()) {
    uint64_t rest = 0;
    for (size_t i = words.size(); i-- > 0;) {
      rest = (rest << 32) | words[i];
      words[i] = static_cast<uint32_t>(rest / kStep);
      rest %= kStep;
    }
    while (!words.empty() && words.back() == 0) words.pop_back();
    const std::string digits = fmt::to_string(rest);
    text = (words.empty() ? digits : std::string(9 - digits.size(), '0') + digits) + text;
  }
  if (text.empty()) text = "0";
  return is_negative ? "-" + text : text;
}

bool is_call_of(const PickleData& data, PickleRef value, TorchGlobal global) {
  return data.kind(value) == PickleKind::kRecord &&
         data.known(value) == static_cast<int32_t>(global);
}

// "cuda:0" of torch.device("cuda", 0), "" for anything else.
std::string device_text(const PickleData& data, PickleRef value) {
  if (!is_call_of(data, value, TorchGlobal::kDevice)) return "";
  const auto parts = data.fields(value);
  if (parts.empty() || parts.size() > 2 || data.kind(parts[0]) != PickleKind::kText) return "";
  std::string text(data.text(parts[0]));
  if (parts.size() == 1) return text;
  if (data.kind(parts[1]) != PickleKind::kInteger) return "";
  return fmt::format("{}:{}", text, data.integer(parts[1]));
}

class JsonExport {
 public:
  JsonExport(const PickleData& data, uint64_t budget_bytes)
      : data_(data), budget_bytes_(budget_bytes) {}

  bool write(PickleRef value, int depth) {
    if (depth > kMaxJsonDepth || json_.str().size() > budget_bytes_) return false;
    switch (data_.kind(value)) {
      case PickleKind::kNone:
        json_.null();
        return true;
      case PickleKind::kBool:
        json_.boolean(data_.boolean(value));
        return true;
      case PickleKind::kInteger:
        json_.number(data_.integer(value));
        return true;
      case PickleKind::kLongInteger:
        json_.raw(decimal_of(data_.bytes(value)));
        return true;
      case PickleKind::kReal:
        return write_real(data_.real(value));
      case PickleKind::kText:
        return write_text(data_.text(value));
      case PickleKind::kTuple:
        return write_tuple(data_.tuple(value), depth);
      case PickleKind::kList:
        return write_list(value, depth);
      case PickleKind::kDict:
        return write_dict(value, depth);
      default:
        return write_torch(value, depth);
    }
  }
  std::string take() { return json_.take(); }
  uint64_t looked_at_bytes() const { return looked_at_bytes_; }

 private:
  bool write_text(std::string_view text) {
    if (!is_valid_utf8(text)) return false;
    json_.text(text);
    return true;
  }

  bool write_real(double value) {
    if (std::isfinite(value)) {
      // What reads as an integer would come back as one.
      const std::string text = fmt::format("{}", value);
      const bool is_real = text.find_first_of(".en") != std::string::npos;
      json_.raw(is_real ? text : text + ".0");
      return true;
    }
    json_.begin_object().key("$float");
    json_.text(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf").end_object();
    return true;
  }

  bool write_tuple(std::span<const PickleRef> parts, int depth) {
    json_.begin_object().key("$tuple").begin_array();
    for (const PickleRef part : parts) {
      if (!write(part, depth + 1)) return false;
    }
    json_.end_array().end_object();
    return true;
  }

  bool write_list(PickleRef value, int depth) {
    json_.begin_array();
    PickleCursor parts = data_.parts(value);
    for (PickleRef part; parts.next(&part);) {
      if (!write(part, depth + 1)) return false;
    }
    json_.end_array();
    return true;
  }

  bool write_dict(PickleRef value, int depth) {
    bool is_plain = true;
    PickleCursor looked_at = data_.pairs(value);
    for (PickleRef key, part; is_plain && looked_at.next(&key) && looked_at.next(&part);) {
      is_plain = data_.kind(key) == PickleKind::kText && !data_.text(key).starts_with('$');
      if (!is_plain) break;
      // A dict may be looked at again and again and never be written.
      looked_at_bytes_ += 1 + data_.text(key).size();
      if (looked_at_bytes_ > budget_bytes_) return false;
      is_plain = is_valid_utf8(data_.text(key));
    }
    json_.begin_object();
    if (!is_plain) json_.key("$map").begin_array();
    PickleCursor pairs = data_.pairs(value);
    for (PickleRef key, part; pairs.next(&key) && pairs.next(&part);) {
      if (is_plain) {
        json_.key(data_.text(key));
      } else {
        json_.begin_array();
        if (data_.kind(key) == PickleKind::kDict || !write(key, depth + 1)) return false;
      }
      if (!write(part, depth + 1)) return false;
      if (!is_plain) json_.end_array();
    }
    if (!is_plain) json_.end_array();
    json_.end_object();
    return true;
  }

  bool write_torch(PickleRef value, int depth) {
    if (const auto dtype = torch_dtype_name(data_, value); dtype.has_value())
      return write_text(fmt::format("torch.{}", *dtype));
    if (const std::string device = device_text(data_, value); !device.empty())
      return write_text(device);
    if (is_call_of(data_, value, TorchGlobal::kOrderedDict) && data_.fields(value).empty()) {
      json_.begin_object().end_object();
      return true;
    }
    // A dict without a state of its own.
    const bool is_dict = data_.kind(value) == PickleKind::kObject &&
                         data_.known(value) == static_cast<int32_t>(TorchGlobal::kOrderedDict) &&
                         data_.tuple(data_.arguments(value)).empty() && !has_parts(value) &&
                         data_.state(value).is_absent();
    if (is_dict) return write_dict(value, depth);
    if (!is_call_of(data_, value, TorchGlobal::kSize) || data_.fields(value).size() != 1 ||
        data_.kind(data_.fields(value)[0]) != PickleKind::kTuple)
      return false;
    return write_tuple(data_.tuple(data_.fields(value)[0]), depth);
  }

  bool has_parts(PickleRef value) const {
    PickleCursor parts = data_.parts(value);
    PickleRef part;
    return parts.next(&part);
  }

  const PickleData& data_;
  const uint64_t budget_bytes_;
  uint64_t looked_at_bytes_ = 0;  // of keys
  JsonWriter json_;
};

std::string_view kind_name(PickleKind kind) {
  constexpr std::array<std::pair<PickleKind, std::string_view>, 8> kNames = {{
      {PickleKind::kTuple, "builtins.tuple"},
      {PickleKind::kList, "builtins.list"},
      {PickleKind::kDict, "builtins.dict"},
      {PickleKind::kSet, "builtins.set"},
      {PickleKind::kFrozenSet, "builtins.frozenset"},
      {PickleKind::kText, "builtins.str"},
      {PickleKind::kPersistent, "a storage of torch"},
      {PickleKind::kLongInteger, "builtins.int"},
  }};
  for (const auto& [each, name] : kNames) {
    if (each == kind) return name;
  }
  return "a value";
}

}  // namespace

std::string class_name(const PickleData& data, PickleRef value) {
  if (data.kind(value) == PickleKind::kRecord) {
    const PickleClass& known = torch_vocabulary()[static_cast<size_t>(data.known(value))];
    return fmt::format("{}.{}", known.module, known.name);
  }
  PickleRef named = value;
  if (data.kind(value) == PickleKind::kObject) {
    named = data.callable(value);
    // What copyreg makes says its class in the first place.
    const auto arguments = data.tuple(data.arguments(value));
    const bool is_copied = data.kind(named) == PickleKind::kGlobal &&
                           data.global(named).name == "_reconstructor" && !arguments.empty();
    if (is_copied) named = arguments[0];
  }
  if (data.kind(named) != PickleKind::kGlobal) return std::string(kind_name(data.kind(value)));
  return fmt::format("{}.{}", escape_text(data.global(named).module, 128),
                     escape_text(data.global(named).name, 128));
}

ExportedValue export_value(const PickleData& data, PickleRef value, uint64_t* budget_bytes) {
  const auto spend = [budget_bytes](const std::string& text, uint64_t least = 0) {
    const uint64_t bytes = std::max<uint64_t>(text.size(), least);
    const bool is_enough = bytes <= *budget_bytes;
    *budget_bytes -= is_enough ? bytes : *budget_bytes;
    return is_enough;
  };
  const auto opaque = [&]() -> ExportedValue {
    JsonWriter what;
    what.begin_object().key("class").text(class_name(data, value)).end_object();
    return {kOpaqueType, what.take()};
  };
  if (*budget_bytes == 0) return opaque();
  const PickleKind kind = data.kind(value);
  if (kind == PickleKind::kBytes || kind == PickleKind::kByteArray) {
    const auto bytes = data.bytes(value);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (spend(text)) return {kBytesType, std::move(text)};
  }
  if (std::optional<std::string> bytes = encoded_bytes(data, value);
      bytes.has_value() && spend(*bytes))
    return {kBytesType, std::move(*bytes)};
  JsonExport json(data, *budget_bytes);
  const bool is_json = json.write(value, 0);
  std::string text = json.take();
  if (spend(text, is_json ? 0 : json.looked_at_bytes()) && is_json)
    return {kJsonType, std::move(text)};
  PickleCopyRules rules;
  rules.budget_bytes = *budget_bytes;
  rules.vocabulary = torch_vocabulary();
  PickleCopy pickle = copy_pickle(data, value, rules);
  if (spend(pickle.bytes) && pickle.is_whole) return {kPickleType, std::move(pickle.bytes)};
  return opaque();
}

}  // namespace shardwright::format::archive
