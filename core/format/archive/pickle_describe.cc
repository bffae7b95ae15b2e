// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_describe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/archive/torch_tensor.h"

namespace shardwright::format::archive {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxShownBytes = 256;    // of bytes, as hexadecimal digits
constexpr size_t kMaxShownElements = 64;  // of an array

// The state of a date (4 bytes), a time (6) or both (10), as datetime packs it.
std::string date_text(std::span<const std::byte> bytes) {
  const auto number = [&](size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  return fmt::format("{:04}-{:02}-{:02}", number(0) << 8 | number(1), number(2) & 0x7FU, number(3));
}
std::string time_text(std::span<const std::byte> bytes) {
  const auto number = [&](size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  const unsigned micros = number(3) << 16 | number(4) << 8 | number(5);
  std::string text = fmt::format("{:02}:{:02}:{:02}", number(0) & 0x7FU, number(1), number(2));
  if (micros != 0) text += fmt::format(".{:06}", micros);
  return text;
}

// "<f8" and the like.
struct NumpyKind {
  char kind = 0;
  size_t bytes = 0;
  bool is_big = false;
};

class Describer {
 public:
  Describer(const PickleData& data, uint64_t most_bytes) : data_(data), most_(most_bytes) {}

  // Bounded by kMaxDepth. NOLINTNEXTLINE(misc-no-recursion)
  void write(PickleRef value, int depth) {
    if (depth > kMaxDepth || json_.str().size() > most_) return more();
    switch (data_.kind(value)) {
      case PickleKind::kAbsent:
      case PickleKind::kNone:
        json_.null();
        return;
      case PickleKind::kBool:
        json_.boolean(data_.boolean(value));
        return;
      case PickleKind::kInteger:
        json_.number(data_.integer(value));
        return;
      case PickleKind::kReal:
        return write_real(data_.real(value));
      case PickleKind::kText:
        json_.text(shown(data_.text(value)));
        return;
      case PickleKind::kBytes:
      case PickleKind::kByteArray:
      case PickleKind::kLongInteger:
        return write_bytes(data_.bytes(value));
      default:
        return write_compound(value, depth);
    }
  }
  std::string take() { return json_.take(); }

 private:
  void more() { json_.begin_object().key("$more").boolean(true).end_object(); }

  static std::string shown(std::string_view text) {
    return is_valid_utf8(text) ? std::string(text) : escape_text(text);
  }

  void write_real(double value) {
    if (std::isfinite(value)) {
      const std::string text = fmt::format("{}", value);
      json_.raw(text.find_first_of(".en") != std::string::npos ? text : text + ".0");
      return;
    }
    json_.text(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
  }

  void write_bytes(std::span<const std::byte> bytes) {
    std::string digits;
    for (const std::byte byte : bytes.first(std::min(bytes.size(), kMaxShownBytes)))
      digits += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    json_.begin_object().key("$bytes").text(digits);
    json_.key("size").number_unsigned(bytes.size()).end_object();
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void write_compound(PickleRef value, int depth) {
    switch (data_.kind(value)) {
      case PickleKind::kTuple:
        json_.begin_object().key("$tuple");
        write_all(data_.tuple(value), depth);
        json_.end_object();
        return;
      case PickleKind::kFrozenSet:
        json_.begin_object().key("$type").text("builtins.frozenset").key("values");
        write_all(data_.tuple(value), depth);
        json_.end_object();
        return;
      case PickleKind::kSet:
        json_.begin_object().key("$type").text("builtins.set").key("values");
        write_parts(value, depth);
        json_.end_object();
        return;
      case PickleKind::kList:
        return write_parts(value, depth);
      case PickleKind::kDict:
        return write_pairs(value, depth);
      case PickleKind::kGlobal:
        json_.begin_object().key("$global").text(class_name(data_, value)).end_object();
        return;
      case PickleKind::kPersistent:
        json_.begin_object().key("$storage");
        write(data_.target(value), depth + 1);
        json_.end_object();
        return;
      default:
        return write_object(value, depth);
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void write_all(std::span<const PickleRef> parts, int depth) {
    json_.begin_array();
    for (const PickleRef part : parts) {
      if (json_.str().size() > most_) {
        more();
        break;
      }
      write(part, depth + 1);
    }
    json_.end_array();
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void write_parts(PickleRef value, int depth) {
    json_.begin_array();
    PickleCursor parts = data_.parts(value);
    for (PickleRef part; parts.next(&part);) {
      if (json_.str().size() > most_) {
        more();
        break;
      }
      write(part, depth + 1);
    }
    json_.end_array();
  }

  // Whether all keys can be those of JSON. Looks at so many that are shown at most.
  bool has_plain_keys(PickleRef value) {
    PickleCursor pairs = data_.pairs(value);
    for (PickleRef key, part; pairs.next(&key) && pairs.next(&part);) {
      if (data_.kind(key) != PickleKind::kText || data_.text(key).starts_with('$')) return false;
      looked_at_ += 1 + data_.text(key).size();
      if (looked_at_ > most_) return false;
    }
    return true;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void write_pairs(PickleRef value, int depth) {
    const bool is_plain = has_plain_keys(value);
    json_.begin_object();
    if (!is_plain) json_.key("$map").begin_array();
    PickleCursor pairs = data_.pairs(value);
    for (PickleRef key, part; pairs.next(&key) && pairs.next(&part);) {
      if (json_.str().size() > most_) {
        if (is_plain) json_.key("$more").boolean(true);
        if (!is_plain) more();
        break;
      }
      if (is_plain) {
        json_.key(shown(data_.text(key)));
      } else {
        json_.begin_array();
        write(key, depth + 1);
      }
      write(part, depth + 1);
      if (!is_plain) json_.end_array();
    }
    if (!is_plain) json_.end_array();
    json_.end_object();
  }

  // What an object is made by, and of what.
  struct Made {
    std::string name;
    std::span<const PickleRef> arguments;
    PickleRef state;
  };
  Made made(PickleRef value) const {
    Made made{class_name(data_, value), {}, data_.state(value)};
    if (data_.kind(value) == PickleKind::kRecord) {
      made.arguments = data_.fields(value);
    } else {
      made.arguments = data_.tuple(data_.arguments(value));
    }
    return made;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void write_object(PickleRef value, int depth) {
    if (const auto tensor = torch_tensor(data_, value, "the value"); tensor.ok() && *tensor) {
      json_.begin_object().key("$tensor").text(dtype_name((*tensor)->dtype)).key("shape");
      json_.begin_array();
      for (const int64_t extent : (*tensor)->shape) json_.number(extent);
      json_.end_array().end_object();
      return;
    }
    if (const auto bytes = encoded_bytes(data_, value); bytes.has_value())
      return write_bytes(std::as_bytes(std::span(*bytes)));
    const Made object = made(value);
    const std::string text = plain_text(object);
    if (!text.empty()) {
      json_.begin_object().key("$type").text(object.name).key("value").text(text).end_object();
      return;
    }
    if (write_numpy(object)) return;
    write_any(value, object, depth);
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  void write_any(PickleRef value, const Made& object, int depth) {
    json_.begin_object().key("$object").text(object.name);
    if (!object.arguments.empty()) {
      json_.key("arguments");
      write_all(object.arguments, depth);
    }
    if (!object.state.is_absent()) {
      json_.key("state");
      write(object.state, depth + 1);
    }
    if (data_.kind(value) == PickleKind::kObject) {
      PickleCursor parts = data_.parts(value);
      if (PickleRef part; parts.next(&part)) {
        json_.key("values");
        write_parts(value, depth);
      }
      PickleCursor pairs = data_.pairs(value);
      if (PickleRef key; pairs.next(&key)) {
        json_.key("items");
        write_pairs(value, depth);
      }
    }
    json_.end_object();
  }

  // The bytes of an argument, whichever way its protocol says them.
  std::optional<std::string> bytes_of(PickleRef value) const {
    if (data_.kind(value) == PickleKind::kBytes || data_.kind(value) == PickleKind::kByteArray) {
      const auto bytes = data_.bytes(value);
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return encoded_bytes(data_, value);
  }

  // What has one way to be written; "" for anything else.
  std::string plain_text(const Made& object) const {
    const auto arguments = object.arguments;
    const bool is_path = object.name.starts_with("pathlib") && object.name.ends_with("Path");
    if (is_path) return path_text(arguments, object.name.ends_with("WindowsPath") ? '\\' : '/');
    if (arguments.empty()) return "";
    if (object.name == "decimal.Decimal" || object.name == "fractions.Fraction") {
      if (data_.kind(arguments[0]) == PickleKind::kText) return shown(data_.text(arguments[0]));
      if (arguments.size() == 2 && data_.kind(arguments[0]) == PickleKind::kInteger &&
          data_.kind(arguments[1]) == PickleKind::kInteger)
        return fmt::format("{}/{}", data_.integer(arguments[0]), data_.integer(arguments[1]));
    }
    if (!object.name.starts_with("datetime.")) return "";
    if (object.name == "datetime.timedelta") return delta_text(arguments);
    const auto packed = bytes_of(arguments[0]);
    if (!packed.has_value()) return "";
    const auto bytes = std::as_bytes(std::span(*packed));
    if (object.name == "datetime.date" && bytes.size() == 4) return date_text(bytes);
    if (object.name == "datetime.time" && bytes.size() == 6) return time_text(bytes);
    if (object.name != "datetime.datetime" || bytes.size() != 10 || arguments.size() > 1) return "";
    return date_text(bytes) + "T" + time_text(bytes.subspan(4));
  }

  std::string path_text(std::span<const PickleRef> parts, char separator) const {
    std::string path;
    for (const PickleRef part : parts) {
      if (data_.kind(part) != PickleKind::kText) return "";
      if (!path.empty() && path.back() != separator) path += separator;
      path += data_.text(part);
    }
    return shown(path.empty() ? "." : path);
  }

  std::string delta_text(std::span<const PickleRef> parts) const {
    if (parts.size() != 3) return "";
    for (const PickleRef part : parts) {
      if (data_.kind(part) != PickleKind::kInteger) return "";
    }
    return fmt::format("{} days {} s {} us", data_.integer(parts[0]), data_.integer(parts[1]),
                       data_.integer(parts[2]));
  }

  // numpy.dtype("f8", False, True) with a state that says the order of its bytes.
  std::optional<NumpyKind> numpy_kind(PickleRef value) const {
    if (data_.kind(value) != PickleKind::kObject) return std::nullopt;
    const Made dtype = made(value);
    if (dtype.name != "numpy.dtype" || dtype.arguments.empty() ||
        data_.kind(dtype.arguments[0]) != PickleKind::kText)
      return std::nullopt;
    const std::string_view text = data_.text(dtype.arguments[0]);
    if (text.size() != 2 || text[1] < '1' || text[1] > '8') return std::nullopt;
    NumpyKind kind{text[0], static_cast<size_t>(text[1] - '0'), false};
    if (data_.kind(dtype.state) == PickleKind::kTuple && data_.tuple(dtype.state).size() > 1) {
      const PickleRef order = data_.tuple(dtype.state)[1];
      kind.is_big = data_.kind(order) == PickleKind::kText && data_.text(order) == ">";
    }
    return kind;
  }

  // Whether it was a scalar or an array of numbers.
  bool write_numpy(const Made& object) {
    const bool is_scalar = object.name.ends_with("multiarray.scalar");
    if (is_scalar && object.arguments.size() == 2) {
      const auto kind = numpy_kind(object.arguments[0]);
      const auto bytes = bytes_of(object.arguments[1]);
      if (!kind.has_value() || !bytes.has_value() || bytes->size() != kind->bytes) return false;
      json_.begin_object().key("$type").text("numpy scalar").key("dtype").text(name_of(*kind));
      json_.key("value");
      write_number(*kind, std::as_bytes(std::span(*bytes)));
      json_.end_object();
      return true;
    }
    if (object.name.ends_with("multiarray._reconstruct") &&
        data_.kind(object.state) == PickleKind::kTuple && data_.tuple(object.state).size() == 5) {
      const auto state = data_.tuple(object.state);
      return write_array(state[1], state[2], state[4]);
    }
    if (object.name.ends_with("numeric._frombuffer") && object.arguments.size() >= 3)
      return write_array(object.arguments[2], object.arguments[1], object.arguments[0]);
    return false;
  }

  static std::string name_of(const NumpyKind& kind) {
    return fmt::format("{}{}{}",
                       kind.is_big      ? ">"
                       : kind.bytes > 1 ? "<"
                                        : "|",
                       kind.kind, kind.bytes);
  }

  bool write_array(PickleRef shape, PickleRef dtype, PickleRef content) {
    const auto kind = numpy_kind(dtype);
    const auto bytes = bytes_of(content);
    if (!kind.has_value() || !bytes.has_value() || data_.kind(shape) != PickleKind::kTuple)
      return false;
    for (const PickleRef extent : data_.tuple(shape)) {
      if (data_.kind(extent) != PickleKind::kInteger) return false;
    }
    json_.begin_object().key("$type").text("numpy.ndarray").key("dtype").text(name_of(*kind));
    json_.key("shape").begin_array();
    for (const PickleRef extent : data_.tuple(shape)) json_.number(data_.integer(extent));
    json_.end_array();
    const size_t count = bytes->size() / kind->bytes;
    json_.key("values").begin_array();
    for (size_t i = 0; i < std::min(count, kMaxShownElements); ++i)
      write_number(*kind, std::as_bytes(std::span(*bytes)).subspan(i * kind->bytes, kind->bytes));
    if (count > kMaxShownElements) more();
    json_.end_array().end_object();
    return true;
  }

  void write_number(const NumpyKind& kind, std::span<const std::byte> bytes) {
    std::array<std::byte, 8> memory{};
    for (size_t i = 0; i < bytes.size(); ++i)
      memory[i] = kind.is_big ? bytes[bytes.size() - 1 - i] : bytes[i];
    uint64_t word = 0;
    std::memcpy(&word, memory.data(), sizeof(word));
    const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
    if (kind.kind == 'b') {
      json_.boolean(word != 0);
    } else if (kind.kind == 'i') {
      json_.number(static_cast<int64_t>(word << unused) >> unused);
    } else if (kind.kind == 'u') {
      json_.number_unsigned(word);
    } else if (kind.kind == 'f' && kind.bytes == 8) {
      write_real(std::bit_cast<double>(word));
    } else if (kind.kind == 'f' && kind.bytes == 4) {
      write_real(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(word))));
    } else {
      write_bytes(bytes);
    }
  }

  const PickleData& data_;
  const uint64_t most_;
  uint64_t looked_at_ = 0;  // bytes of keys
  JsonWriter json_;
};

}  // namespace

std::string describe_value(const PickleData& data, PickleRef value, uint64_t most_bytes) {
  Describer describer(data, most_bytes);
  describer.write(value, 0);
  return describer.take();
}

}  // namespace shardwright::format::archive
