// SPDX-License-Identifier: Apache-2.0
//
// Text rules shared by names, messages and paths: UTF-8 validity, escaping of control characters,
// lower-case hex, base64, and the nearest names that a NOT_FOUND message offers. Pure functions,
// any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright {

// True for well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF). NUL is a valid
// character.
bool is_valid_utf8(std::string_view text);

// Text fit for a message or a terminal: control characters and invalid bytes as \xNN, the rest
// untouched; cut after max_bytes with "...".
std::string escape_text(std::string_view text, size_t max_bytes = 512);

// A decimal digit of ASCII, whatever the locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Lower-case hex, two digits per byte.
std::string to_hex(std::span<const std::byte> bytes);
// Bytes of an even number of hex digits; nullopt for anything else.
std::optional<std::vector<std::byte>> from_hex(std::string_view text);
// Base64 of RFC 4648 with padding, in one line.
std::string to_base64(std::span<const std::byte> bytes);
// The bytes that to_base64 makes this text of; nullopt for anything else.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

// Up to count names of the list nearest to wanted by edit distance (shared suffix preferred on
// ties), best first, each once. Each name is looked at once, few are compared in full.
std::vector<std::string> nearest_names(std::string_view wanted,
                                       std::span<const std::string_view> names, size_t count);
// Numbers of the names that nearest_names compares in full, at most kNearestCompared: those that
// share most of their beginning and end with wanted, each name once, ascending.
std::vector<size_t> nearest_candidates(std::string_view wanted,
                                       std::span<const std::string_view> names);

// fnmatch-like glob over whole names: '*' any run (also across '.'), '?' one byte, '[a-z]',
// backslash escapes.
bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace shardwright
