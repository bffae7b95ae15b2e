// SPDX-License-Identifier: Apache-2.0
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <queue>
#include <unordered_set>
#include <utility>

#include "core/base/limits.h"

namespace shardwright {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// Lead byte of a multi-byte character: its length and the allowed range of the second byte. Length
// 0 = not a lead.
struct LeadRule {
  size_t length;
  uint8_t second_min;
  uint8_t second_max;
};

LeadRule lead_rule(uint8_t lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};  // no overlong form
  if (lead == 0xED) return {3, 0x80, 0x9F};  // no surrogate
  if (lead >= 0xE1 && lead <= 0xEF) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};  // at most U+10FFFF
  return {0, 0, 0};
}

// Length of the well-formed character that begins at position, 0 when there is none.
size_t character_length(std::string_view text, size_t position) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte_at(position);
  if (lead < 0x80) return 1;
  const LeadRule rule = lead_rule(lead);
  if (rule.length == 0 || text.size() - position < rule.length) return 0;
  const uint8_t second = byte_at(position + 1);
  if (second < rule.second_min || second > rule.second_max) return 0;
  for (size_t i = 2; i < rule.length; ++i) {
    if ((byte_at(position + i) & 0xC0) != 0x80) return 0;
  }
  return rule.length;
}

// Bytes at the start that are ASCII, counted in words of eight: most names are nothing else.
size_t ascii_prefix(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t size = 0;
  for (uint64_t word = 0; text.size() - size >= sizeof(word); size += sizeof(word)) {
    std::memcpy(&word, text.data() + size, sizeof(word));
    if ((word & kHighBits) != 0) break;
  }
  return size;
}

void append_hex_escape(uint8_t byte, std::string* out) {
  *out += "\\x";
  *out += kHexDigits[byte >> 4];
  *out += kHexDigits[byte & 15];
}

std::optional<uint8_t> hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<uint8_t>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<uint8_t>(digit - 'a' + 10);
  if (digit >= 'A' && digit <= 'F') return static_cast<uint8_t>(digit - 'A' + 10);
  return std::nullopt;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  for (size_t position = ascii_prefix(text); position < text.size();) {
    const size_t length = character_length(text, position);
    if (length == 0) return false;
    position += length;
  }
  return true;
}

std::string escape_text(std::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t position = 0; position < text.size();) {
    const auto byte = static_cast<uint8_t>(text[position]);
    const size_t length = character_length(text, position);
    std::string piece;
    // C1 control characters (U+0080 to U+009F) steer terminals as well.
    const bool c1 = byte == 0xC2 && length == 2 && static_cast<uint8_t>(text[position + 1]) < 0xA0;
    const bool control = byte < 0x20 || byte == 0x7F || c1;
    if (length == 0 || control) {
      for (size_t i = 0; i < std::max<size_t>(length, 1); ++i) {
        append_hex_escape(static_cast<uint8_t>(text[position + i]), &piece);
      }
    } else {
      piece.assign(text.substr(position, length));
    }
    if (out.size() + piece.size() > max_bytes) return out + "...";
    out += piece;
    position += std::max<size_t>(length, 1);
  }
  return out;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::byte each : bytes) {
    const auto value = std::to_integer<uint8_t>(each);
    out += kHexDigits[value >> 4];
    out += kHexDigits[value & 15];
  }
  return out;
}

std::optional<std::vector<std::byte>> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const auto high = hex_value(text[i]);
    const auto low = hex_value(text[i + 1]);
    if (!high.has_value() || !low.has_value()) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(static_cast<uint8_t>(*high * 16 + *low)));
  }
  return bytes;
}

namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kBase64Padding = '=';
constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> base64_values() {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kBase64Digits.size(); ++i)
    values[static_cast<uint8_t>(kBase64Digits[i])] = static_cast<uint8_t>(i);
  return values;
}

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? std::to_integer<uint32_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i)
      text.push_back(i <= count ? kBase64Digits[group >> (18 - 6 * i) & 63] : kBase64Padding);
  }
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  static constexpr std::array<uint8_t, 256> kValues = base64_values();
  if (text.size() % 4 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    size_t digits = 4;
    while (at + 4 == text.size() && digits > 2 && text[at + digits - 1] == kBase64Padding) --digits;
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t value = i < digits ? kValues[static_cast<uint8_t>(text[at + i])] : 0;
      if (value == kNoDigit) return std::nullopt;
      group = group << 6 | value;
    }
    if ((group & ((uint32_t{1} << (8 * (4 - digits))) - 1)) != 0) return std::nullopt;
    for (size_t i = 0; i + 1 < digits; ++i)
      bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * i) & 0xFF));
  }
  return bytes;
}

namespace {

constexpr size_t kNearestTextLimit = 512;  // bytes of a name that take part

// Edit distance of two texts, or limit + 1 when it is above limit. row is scratch memory.
size_t bounded_edit_distance(std::string_view a, std::string_view b, size_t limit,
                             std::vector<size_t>* row) {
  const size_t length_gap = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (length_gap > limit) return limit + 1;
  row->resize(b.size() + 1);
  std::iota(row->begin(), row->end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = (*row)[0];
    size_t row_least = (*row)[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = (*row)[j];
      (*row)[j] = std::min({substitute, (*row)[j] + 1, (*row)[j - 1] + 1});
      row_least = std::min(row_least, (*row)[j]);
    }
    if (row_least > limit) return limit + 1;
  }
  return std::min(row->back(), limit + 1);
}

size_t shared_suffix(std::string_view a, std::string_view b) {
  size_t count = 0;
  while (count < a.size() && count < b.size() && a[a.size() - 1 - count] == b[b.size() - 1 - count])
    ++count;
  return count;
}

// An upper bound of the edit distance, by one look at both: what their beginnings and ends do not
// share is replaced. It is the distance where one place differs and where one text holds the other.
size_t distance_bound(std::string_view a, std::string_view b) {
  if (b.size() < a.size()) std::swap(a, b);
  size_t first = 0;
  while (first < a.size() && a[first] == b[first]) ++first;
  const size_t last = shared_suffix(a.substr(first), b.substr(first));
  if (first + last < a.size() && b.find(a) != std::string_view::npos) return b.size() - a.size();
  return b.size() - first - last;
}

struct Near {
  size_t distance;
  size_t suffix;
  size_t index;
  bool operator<(const Near& other) const {
    if (distance != other.distance) return distance < other.distance;
    if (suffix != other.suffix) return suffix > other.suffix;
    return index < other.index;
  }
};

}  // namespace

std::vector<size_t> nearest_candidates(std::string_view wanted,
                                       std::span<const std::string_view> names) {
  using Ranked = std::pair<size_t, size_t>;  // bound, number of the name
  std::priority_queue<Ranked> best;          // the worst on top
  std::unordered_set<std::string_view> known;
  const std::string_view key = wanted.substr(0, kNearestTextLimit);
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t bound = distance_bound(key, names[i].substr(0, kNearestTextLimit));
    const bool full = best.size() == kNearestCompared;
    if (full && bound >= best.top().first) continue;
    if (!known.insert(names[i]).second) continue;
    if (full) best.pop();
    best.emplace(bound, i);
  }
  std::vector<size_t> chosen;
  for (; !best.empty(); best.pop()) chosen.push_back(best.top().second);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<std::string> nearest_names(std::string_view wanted,
                                       std::span<const std::string_view> names, size_t count) {
  std::vector<std::string> result;
  if (count == 0) return result;
  const std::string_view key = wanted.substr(0, kNearestTextLimit);
  std::vector<Near> best;  // sorted, at most count
  std::vector<size_t> row;
  for (const size_t index : nearest_candidates(wanted, names)) {
    const std::string_view name = names[index].substr(0, kNearestTextLimit);
    const size_t limit =
        best.size() < count ? std::max(key.size(), name.size()) : best.back().distance;
    const size_t distance = bounded_edit_distance(key, name, limit, &row);
    if (distance > limit) continue;
    const Near near{distance, shared_suffix(wanted, names[index]), index};
    best.insert(std::upper_bound(best.begin(), best.end(), near), near);
    if (best.size() > count) best.pop_back();
  }
  for (const Near& each : best) result.emplace_back(names[each.index]);
  return result;
}

namespace {

// Matches one non-star element of the pattern at *position against c and moves past it.
bool element_matches(std::string_view pattern, size_t* position, char c) {
  const char head = pattern[*position];
  if (head == '?') {
    *position += 1;
    return true;
  }
  if (head == '\\' && *position + 1 < pattern.size()) {
    *position += 2;
    return pattern[*position - 1] == c;
  }
  // A class needs its closing bracket; a first ']' is a member. Without it '[' is an ordinary byte.
  const char second = *position + 1 < pattern.size() ? pattern[*position + 1] : '\0';
  const size_t first_close = *position + (second == '!' || second == '^' ? 3 : 2);
  const size_t close = head == '[' ? pattern.find(']', first_close) : std::string_view::npos;
  if (close == std::string_view::npos) {
    *position += 1;
    return head == c;
  }
  std::string_view members = pattern.substr(*position + 1, close - *position - 1);
  *position = close + 1;
  const bool negated = members.size() > 1 && (members[0] == '!' || members[0] == '^');
  if (negated) members.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i + 2 < members.size() && members[i + 1] == '-') {
      const auto byte = static_cast<uint8_t>(c);
      found = found || (static_cast<uint8_t>(members[i]) <= byte &&
                        byte <= static_cast<uint8_t>(members[i + 2]));
      i += 2;
    } else {
      found = found || members[i] == c;
    }
  }
  return found != negated;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = std::string_view::npos;  // pattern position after the last '*'
  size_t star_name = 0;                  // name position that this star has swallowed up to
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_name = n;
      continue;
    }
    size_t next = p;
    if (p < pattern.size() && element_matches(pattern, &next, name[n])) {
      p = next;
      ++n;
      continue;
    }
    if (star == std::string_view::npos) return false;
    p = star;
    n = ++star_name;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace shardwright
