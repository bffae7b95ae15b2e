// SPDX-License-Identifier: Apache-2.0
#include "core/plan/shared_options.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::plan {
namespace {

// Next line without its newline; text is advanced.
std::string_view take_line(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

}  // namespace

Status options_differ(const RankOptions& first, const RankOptions& other) {
  std::string_view expected = first.text;
  std::string_view found = other.text;
  std::string_view expected_line;
  std::string_view found_line;
  while (expected_line == found_line && !(expected.empty() && found.empty())) {
    expected_line = take_line(&expected);
    found_line = take_line(&found);
  }
  const std::string_view named = expected_line.empty() ? found_line : expected_line;
  const std::string_view option = named.substr(0, named.find('='));
  return invalid_argument(
             fmt::format("the ranks disagree on option '{}': rank {} says '{}', rank {} says '{}'",
                         escape_text(option), first.rank, escape_text(expected_line), other.rank,
                         escape_text(found_line)))
      .with_detail("parameter", option)
      .with_detail("rank", std::to_string(other.rank))
      .with_detail("expected", expected_line)
      .with_detail("found", found_line);
}

}  // namespace shardwright::plan
