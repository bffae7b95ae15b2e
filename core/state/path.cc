// SPDX-License-Identifier: Apache-2.0
//
// Grammar, blanks between tokens allowed on input and never written:
//   path     = "[" [ part *( "," part ) ] "]"
//   part     = string / integer / position
//   position = "[" digits "]"
//   integer  = [ "-" ] digits          ; no leading zeros, no "-0"
//   string   = JSON string
#include "core/state/path.h"

#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright {
namespace {

constexpr size_t kMaxPathParts = 256;
constexpr uint32_t kFirstHighSurrogate = 0xD800;
constexpr uint32_t kFirstLowSurrogate = 0xDC00;
constexpr uint32_t kSurrogateCount = 0x400;

void append_utf8(uint32_t code_point, std::string* out) {
  const auto tail = [&](uint32_t shift) {
    *out += static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
  };
  if (code_point < 0x80) {
    *out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    *out += static_cast<char>(0xC0 | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    *out += static_cast<char>(0xE0 | (code_point >> 12));
    tail(6);
    tail(0);
  } else {
    *out += static_cast<char>(0xF0 | (code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

class PathParser {
 public:
  explicit PathParser(std::string_view text) : text_(text) {}

  Result<std::vector<PathPart>> parse() {
    std::vector<PathPart> parts;
    if (!take('[')) return wrong("'[' at the start");
    if (!take(']')) {
      do {
        if (parts.size() == kMaxPathParts)
          return wrong(fmt::format("at most {} parts", kMaxPathParts));
        SHW_ASSIGN_OR_RETURN(PathPart part, parse_part());
        parts.push_back(std::move(part));
      } while (take(','));
      if (!take(']')) return wrong("',' or ']'");
    }
    skip_blanks();
    if (at_ != text_.size()) return wrong("the end");
    return parts;
  }

 private:
  Status wrong(std::string_view expected) const {
    return invalid_argument(fmt::format("the path '{}' is wrong at byte {}: expected {}",
                                        escape_text(text_), at_, expected));
  }

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  void skip_blanks() {
    while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r'))
      ++at_;
  }

  // Skips blanks, then c when it is there.
  bool take(char c) {
    skip_blanks();
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<PathPart> parse_part() {
    if (take('"')) {
      SHW_ASSIGN_OR_RETURN(std::string key, parse_string());
      return PathPart{PathPartKind::kText, std::move(key)};
    }
    if (!take('[')) {
      SHW_ASSIGN_OR_RETURN(std::string digits, parse_integer());
      return PathPart{PathPartKind::kInteger, std::move(digits)};
    }
    skip_blanks();
    if (peek() == '-') return wrong("a list position, which is not negative");
    SHW_ASSIGN_OR_RETURN(std::string digits, parse_integer());
    if (!take(']')) return wrong("']' after a list position");
    return PathPart{PathPartKind::kPosition, std::move(digits)};
  }

  Result<std::string> parse_integer() {
    skip_blanks();
    const size_t begin = at_;
    if (peek() == '-') ++at_;
    const size_t first_digit = at_;
    while (is_digit(peek())) ++at_;
    const std::string_view digits = text_.substr(first_digit, at_ - first_digit);
    const std::string_view integer = text_.substr(begin, at_ - begin);
    if (digits.empty()) return wrong("a text, an integer or a list position");
    if ((digits.size() > 1 && digits[0] == '0') || integer == "-0")
      return wrong("an integer without leading zero");
    return std::string(integer);
  }

  // The opening quote was taken.
  Result<std::string> parse_string() {
    std::string out;
    while (true) {
      if (at_end()) return wrong("'\"' that closes a text");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20)
        return wrong("an escape instead of a control character");
      ++at_;
      if (c == '"') return out;
      if (c == '\\') {
        SHW_RETURN_IF_ERROR(parse_escape(&out));
      } else {
        out += c;
      }
    }
  }

  // The backslash was taken.
  Status parse_escape(std::string* out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char c = peek();
    const size_t letter = at_end() ? std::string_view::npos : kLetters.find(c);
    if (letter != std::string_view::npos) {
      ++at_;
      *out += kMeanings[letter];
      return {};
    }
    if (c != 'u') return wrong("one of the escapes of JSON");
    ++at_;
    SHW_ASSIGN_OR_RETURN(uint32_t code_point, parse_code_unit());
    if (code_point >= kFirstLowSurrogate && code_point < kFirstLowSurrogate + kSurrogateCount) {
      return wrong("a high surrogate before the low one");
    }
    if (code_point >= kFirstHighSurrogate && code_point < kFirstLowSurrogate) {
      if (text_.substr(at_, 2) != "\\u") return wrong("a low surrogate");
      at_ += 2;
      SHW_ASSIGN_OR_RETURN(const uint32_t low, parse_code_unit());
      if (low < kFirstLowSurrogate || low >= kFirstLowSurrogate + kSurrogateCount)
        return wrong("a low surrogate");
      code_point = 0x10000 + (code_point - kFirstHighSurrogate) * kSurrogateCount +
                   (low - kFirstLowSurrogate);
    }
    append_utf8(code_point, out);
    return {};
  }

  Result<uint32_t> parse_code_unit() {
    const auto bytes = text_.size() - at_ < 4 ? std::nullopt : from_hex(text_.substr(at_, 4));
    if (!bytes.has_value()) return wrong("four hex digits");
    at_ += 4;
    return std::to_integer<uint32_t>((*bytes)[0]) * 256 + std::to_integer<uint32_t>((*bytes)[1]);
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Walks a path and a name together.
class CanonicalPathReader {
 public:
  CanonicalPathReader(std::string_view path, std::string_view name) : path_(path), name_(name) {}

  bool read() {
    if (path_.size() > kMaxPathTextBytes || !take('[')) return false;
    size_t parts = 0;
    do {
      if (parts > 0 && !meets(".")) return false;
      if (++parts > kMaxPathParts || !part()) return false;
    } while (take(','));
    return take(']') && path_.empty() && name_.empty();
  }

 private:
  bool take(char c) {
    if (path_.empty() || path_.front() != c) return false;
    path_.remove_prefix(1);
    return true;
  }

  // The next bytes of the name are text.
  bool meets(std::string_view text) {
    if (!name_.starts_with(text)) return false;
    name_.remove_prefix(text.size());
    return true;
  }

  bool part() {
    if (take('"')) return key();
    if (take('[')) return integer(false) && take(']');
    return integer(true);
  }

  // A text key without escapes up to its quote.
  bool key() {
    size_t size = 0;
    for (; size < path_.size() && path_[size] != '"'; ++size) {
      const auto byte = static_cast<unsigned char>(path_[size]);
      if (byte < 0x20 || byte == '\\' || byte == 0x7F) return false;
    }
    if (size == path_.size() || !meets(path_.substr(0, size))) return false;
    path_.remove_prefix(size + 1);
    return true;
  }

  bool integer(bool may_be_negative) {
    size_t size = may_be_negative && path_.starts_with('-') ? 1 : 0;
    const size_t first_digit = size;
    while (size < path_.size() && is_digit(path_[size])) ++size;
    const size_t digits = size - first_digit;
    if (digits == 0 || (path_[first_digit] == '0' && size > 1)) return false;
    if (!meets(path_.substr(0, size))) return false;
    path_.remove_prefix(size);
    return true;
  }

  std::string_view path_;  // what is left of each
  std::string_view name_;
};

}  // namespace

Result<std::vector<PathPart>> parse_path(std::string_view text) {
  if (text.size() > kMaxPathTextBytes) {
    return invalid_argument(
        fmt::format("a path of {} bytes is longer than {}", text.size(), kMaxPathTextBytes));
  }
  if (!is_valid_utf8(text))
    return invalid_argument(fmt::format("the path '{}' is not UTF-8", escape_text(text)));
  return PathParser(text).parse();
}

bool is_canonical_path_of(std::string_view text, std::string_view name) {
  return CanonicalPathReader(text, name).read();
}

std::string format_path(const std::vector<PathPart>& parts) {
  JsonWriter writer;
  writer.begin_array();
  for (const PathPart& part : parts) {
    switch (part.kind) {
      case PathPartKind::kText:
        writer.text(part.text);
        break;
      case PathPartKind::kInteger:
        writer.raw(part.text);
        break;
      case PathPartKind::kPosition:
        writer.begin_array().raw(part.text).end_array();
        break;
    }
  }
  return writer.end_array().take();
}

std::string join_path(const std::vector<PathPart>& parts) {
  std::string name;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) name += '.';
    name += parts[i].text;
  }
  return name;
}

}  // namespace shardwright
