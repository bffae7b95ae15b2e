// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstring>

#include "core/base/text.h"
#include "core/format/archive/pickle_text_internal.h"

namespace shardwright::format::archive::internal {
namespace {

constexpr uint32_t kMaxCodePoint = 0x10FFFF;

// UTF-8 of a code point, a surrogate too.
void append_code_point(uint32_t code, std::string* out) {
  const auto tail = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3F)));
  };
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | code >> 12));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xF0 | code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// The number that so many digits at the position are.
std::optional<uint32_t> digits_at(std::string_view text, size_t begin, size_t count, int base) {
  if (text.size() < begin + count) return std::nullopt;
  uint32_t value = 0;
  const char* const end = text.data() + begin + count;
  const auto parsed = std::from_chars(text.data() + begin, end, value, base);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

// The character of a one-letter escape, or nullopt.
std::optional<char> plain_escape(char letter) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  const size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? std::nullopt : std::optional(kMeanings[at]);
}

// Appends what the escape behind a backslash means; how many of its characters it took, 0 = wrong.
size_t append_escape(std::string_view rest, std::string* out) {
  if (rest.empty()) return 0;
  if (const auto plain = plain_escape(rest[0])) {
    out->push_back(*plain);
    return 1;
  }
  if (rest[0] == 'x') {
    const auto value = digits_at(rest, 1, 2, 16);
    if (!value.has_value()) return 0;
    out->push_back(static_cast<char>(*value));
    return 3;
  }
  size_t count = 0;
  while (count < 3 && count < rest.size() && rest[count] >= '0' && rest[count] <= '7') ++count;
  if (count == 0) {
    out->push_back('\\');  // no escape: both characters stand for themselves
    out->push_back(rest[0]);
    return 1;
  }
  out->push_back(static_cast<char>(digits_at(rest, 0, count, 8).value_or(0) & 0xFF));
  return count;
}

}  // namespace

bool is_ascii(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t at = 0;
  uint64_t seen = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    seen |= word;
  }
  for (; at < text.size(); ++at) seen |= static_cast<uint8_t>(text[at]);
  return (seen & kHighBits) == 0;
}

bool is_python_text(std::string_view text) {
  if (is_ascii(text) || is_valid_utf8(text)) return true;
  std::string plain(text);
  for (size_t i = 0; i + 2 < plain.size(); ++i) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(plain[at]); };
    if (byte(i) == 0xED && byte(i + 1) >= 0xA0 && byte(i + 1) <= 0xBF && byte(i + 2) >= 0x80 &&
        byte(i + 2) <= 0xBF)
      plain.replace(i, 3, "???");
  }
  return is_valid_utf8(plain);
}

std::optional<std::string> unquote(std::string_view literal) {
  while (!literal.empty() && (literal.back() == ' ' || literal.back() == '\r'))
    literal.remove_suffix(1);
  if (literal.size() < 2 || literal.front() != literal.back()) return std::nullopt;
  if (literal.front() != '\'' && literal.front() != '"') return std::nullopt;
  literal = literal.substr(1, literal.size() - 2);
  std::string out;
  for (size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\') {
      out.push_back(literal[i]);
      continue;
    }
    const size_t taken = append_escape(literal.substr(i + 1), &out);
    if (taken == 0) return std::nullopt;
    i += taken;
  }
  return out;
}

std::optional<std::string> from_raw_unicode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    const size_t digits = !is_escape ? 0 : text[i + 1] == 'u' ? 4 : text[i + 1] == 'U' ? 8 : 0;
    if (digits == 0) {
      append_code_point(static_cast<uint8_t>(text[i]), &out);
      continue;
    }
    const auto code = digits_at(text, i + 2, digits, 16);
    if (!code.has_value() || *code > kMaxCodePoint) return std::nullopt;
    append_code_point(*code, &out);
    i += 1 + digits;
  }
  return out;
}

std::optional<std::string> from_decimal(std::string_view digits, size_t max_bytes) {
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.remove_prefix(1);
  constexpr size_t kDigitsPerByte = 3;  // more than enough for any number that fits
  if (digits.empty() || digits.size() > max_bytes * kDigitsPerByte) return std::nullopt;
  std::string magnitude;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    uint32_t carry = static_cast<uint32_t>(digit - '0');
    for (char& byte : magnitude) {
      carry += static_cast<uint8_t>(byte) * 10U;
      byte = static_cast<char>(carry & 0xFF);
      carry >>= 8;
    }
    if (carry != 0) magnitude.push_back(static_cast<char>(carry));
  }
  magnitude.push_back('\0');  // room for the sign
  if (is_negative) {
    uint32_t carry = 1;
    for (char& byte : magnitude) {
      carry += static_cast<uint8_t>(~static_cast<uint8_t>(byte));
      byte = static_cast<char>(carry & 0xFF);
      carry >>= 8;
    }
  }
  if (magnitude.size() > max_bytes + 1) return std::nullopt;
  return magnitude;
}

}  // namespace shardwright::format::archive::internal
