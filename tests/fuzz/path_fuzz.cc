// SPDX-License-Identifier: Apache-2.0
//
// Nested paths of entries. Input: a path, then perhaps the byte 0xFF, which no UTF-8 holds, and a
// name. What parses formats to a canonical text that parses to the same parts; the quick look at a
// path and a name never says yes where the parser says no, or reads another name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/state/path.h"

namespace {

using shardwright::format_path;
using shardwright::is_canonical_path_of;
using shardwright::is_valid_utf8;
using shardwright::join_path;
using shardwright::parse_path;

void check(bool holds) {
  if (!holds) std::abort();
}

// Yes is right only of a path that the parser takes, that is written canonically and joins to name.
void check_quick_look(std::string_view path, std::string_view name) {
  if (!is_valid_utf8(path) || !is_valid_utf8(name) || !is_canonical_path_of(path, name)) return;
  const auto parts = parse_path(path);
  check(parts.ok());
  check(format_path(*parts) == path);
  check(join_path(*parts) == name);
}

void check_round_trip(std::string_view path) {
  const auto parts = parse_path(path);
  if (!parts.ok()) {
    check(!parts.status().message().empty());
    return;
  }
  const std::string canonical = format_path(*parts);
  const std::string name = join_path(*parts);
  check(is_valid_utf8(canonical) && is_valid_utf8(name));
  // Escapes make a text longer, but never too long for a name that is within its own limit.
  check(canonical.size() <= shardwright::kMaxPathTextBytes ||
        name.size() > shardwright::kMaxNameBytes);
  if (canonical.size() > shardwright::kMaxPathTextBytes) return;
  const auto again = parse_path(canonical);
  check(again.ok() && *again == *parts);
  check(format_path(*again) == canonical);
  check_quick_look(canonical, name);
  check_quick_look(path, name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\xFF');
  const std::string_view path = input.substr(0, end);
  const std::string_view name =
      end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  check_round_trip(path);
  check_quick_look(path, name);
  return 0;
}
