// SPDX-License-Identifier: Apache-2.0
#include "core/plan/options_text.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/integrity/digest.h"

namespace shardwright::plan {
namespace {

// In the order of the values.
constexpr std::array<std::string_view, 4> kOwners = {"balanced", "lowest_rank", "exact", "all"};
constexpr std::array<std::string_view, 3> kVerifications = {"auto", "all", "off"};
constexpr std::array<std::string_view, 4> kPresets = {"native", "hyperparallel", "torch",
                                                      "megatron"};

// Of a value that may not be checked yet.
std::string_view word(std::span<const std::string_view> words, auto value) {
  const auto number = static_cast<size_t>(value);
  return number < words.size() ? words[number] : "unknown";
}

std::string_view line_from(std::string_view text, size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

std::string save_rules_text(const SaveRules& rules) {
  std::string text =
      fmt::format("owner={}\nverify_replicas={}\npreset={}\n", word(kOwners, rules.owner),
                  word(kVerifications, rules.verify_replicas), word(kPresets, rules.preset));
  for (size_t i = 0; i < rules.kinds.size(); ++i) {
    text += fmt::format("kind[{}]={} -> {}\n", i, escape_text(rules.kinds[i].glob, kMaxNameBytes),
                        entry_kind_name(rules.kinds[i].kind));
  }
  return text;
}

Digest128 options_text_digest(std::string_view text) {
  return integrity::xxh3_128(std::as_bytes(std::span(text.data(), text.size())));
}

Status options_differ(const RankOptions& first, const RankOptions& other) {
  const auto shared = std::ranges::mismatch(first.text, other.text).in1 - first.text.begin();
  const std::string_view same = first.text.substr(0, static_cast<size_t>(shared));
  const size_t begin = same.rfind('\n') + 1;  // 0 when there is no line before
  const std::string_view expected_line = line_from(first.text, begin);
  const std::string_view found_line = line_from(other.text, begin);
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
