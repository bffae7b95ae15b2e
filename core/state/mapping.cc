// SPDX-License-Identifier: Apache-2.0
#include "core/state/mapping.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/layout/box_bytes.h"
#include "core/state/entry_check_internal.h"
#include "core/state/mapping_steps_internal.h"
#include "core/state/name_pattern.h"

namespace shardwright {
namespace {

struct CompiledRule {
  NamePattern pattern;
  std::vector<NamePattern> except;
  std::vector<internal::CompiledStep> steps;
};

std::string rule_text(size_t number, const MappingRule& rule) {
  return fmt::format("rule {} ('{}')", number + 1, escape_text(rule.match, 120));
}

Status in_rule(Status status, size_t number, const MappingRule& rule) {
  return std::move(status)
      .annotated(fmt::format("{} of the mapping", rule_text(number, rule)))
      .with_detail("rule", fmt::to_string(number + 1));
}

Status at_member(Status status, std::string_view member) {
  return std::move(status).annotated(member).with_detail("parameter", member);
}

Result<CompiledRule> compile_rule(const MappingRule& rule) {
  CompiledRule compiled;
  Result<NamePattern> pattern = NamePattern::parse(rule.match);
  if (!pattern.ok()) return at_member(pattern.status(), "match");
  compiled.pattern = *std::move(pattern);
  for (const std::string& text : rule.except) {
    Result<NamePattern> except = NamePattern::parse(text);
    if (!except.ok()) return at_member(except.status(), "except");
    compiled.except.push_back(*std::move(except));
  }
  for (const MappingStep& step : rule.steps) {
    SHW_ASSIGN_OR_RETURN(internal::CompiledStep done,
                         internal::compile_step(step, compiled.pattern));
    compiled.steps.push_back(std::move(done));
  }
  return compiled;
}

// On each axis the number of equal parts of which the box may be one, 0 for none.
Dims told_fragments(const MappingEntry& entry) {
  Dims fragments(entry.global_shape.size(), 0);
  for (size_t d = 0; d < fragments.size(); ++d) {
    const int64_t size = entry.box.sizes[d];
    if (size > 0 && entry.global_shape[d] % size == 0 && entry.box.offsets[d] % size == 0)
      fragments[d] = entry.global_shape[d] / size;
  }
  return fragments;
}

Result<internal::MovingBox> moving_box(const MappingEntry& entry) {
  SHW_RETURN_IF_ERROR(check_box(entry.box, entry.global_shape));
  if (!entry.fragments.empty())
    SHW_RETURN_IF_ERROR(internal::check_fragments(entry.fragments, entry.global_shape));
  internal::MovingBox moving;
  moving.mapped.global_shape = Dims(entry.global_shape);
  moving.mapped.fragments = entry.fragments.empty() ? told_fragments(entry) : Dims(entry.fragments);
  moving.mapped.box = entry.box;
  moving.mapped.source = {Dims(entry.box.sizes.size(), 0), entry.box.sizes};
  moving.mapped.axes = Dims(entry.global_shape.size(), 0);
  std::iota(moving.mapped.axes.begin(), moving.mapped.axes.end(), 0);
  return moving;
}

// A prefix and a rule that match a name together.
struct Match {
  size_t rule = 0;
  std::string_view prefix;
  Captures captures;
};

}  // namespace

struct Mapping::Compiled {
  std::vector<MappingRule> rules;
  std::vector<CompiledRule> compiled;
  std::vector<NamePattern> prefixes;

  std::optional<Captures> captures_of(size_t rule, std::string_view name) const {
    std::optional<Captures> captures = compiled[rule].pattern.match(name);
    if (!captures.has_value()) return captures;
    const bool excepted = std::ranges::any_of(compiled[rule].except, [&](const NamePattern& each) {
      return each.match(name).has_value();
    });
    return excepted ? std::nullopt : std::move(captures);
  }

  // The name without the first prefix that it begins with.
  std::string_view prefix_of(std::string_view name) const {
    for (const NamePattern& prefix : prefixes) {
      if (const auto begin = prefix.match_beginning(name); begin.has_value())
        return name.substr(0, begin->size);
    }
    return {};
  }

  Result<std::optional<Match>> find(std::string_view name) const {
    const std::string_view prefix = prefix_of(name);
    std::optional<Match> found;
    for (size_t rule = 0; rule < rules.size(); ++rule) {
      std::optional<Captures> captures = captures_of(rule, name.substr(prefix.size()));
      if (!captures.has_value()) continue;
      if (found.has_value()) {
        return invalid_argument(
                   fmt::format("{} and {} of the mapping both match the entry '{}'; give one of "
                               "them an exception",
                               rule_text(found->rule, rules[found->rule]),
                               rule_text(rule, rules[rule]), escape_text(name)))
            .with_detail("tensor", name)
            .with_detail("rule", fmt::format("{},{}", found->rule + 1, rule + 1));
      }
      found = Match{rule, prefix, *std::move(captures)};
    }
    return found;
  }

  Result<std::vector<MappedBox>> finish(std::vector<internal::MovingBox> boxes,
                                        const MappingEntry& entry, std::string_view prefix) const {
    std::vector<MappedBox> out;
    out.reserve(boxes.size());
    for (internal::MovingBox& moving : boxes) {
      MappedBox& mapped = moving.mapped;
      mapped.name = fmt::format("{}{}{}", prefix, moving.name, moving.suffix);
      if (mapped.name.size() > kMaxNameBytes) {
        return invalid_argument(fmt::format("the name '{}' has {} bytes, the limit is {}",
                                            escape_text(mapped.name, 80), mapped.name.size(),
                                            kMaxNameBytes));
      }
      if (dtype_is_subbyte(entry.dtype) && mapped.role != BoxRole::kLeftOut) {
        SHW_RETURN_IF_ERROR(
            check_whole_bytes(mapped.name, entry.dtype, mapped.global_shape, mapped.box));
      }
      out.push_back(std::move(mapped));
    }
    return out;
  }

  Result<std::vector<MappedBox>> apply(const MappingEntry& entry, internal::MovingBox start,
                                       const Match& match) const {
    std::vector<internal::MovingBox> boxes;
    start.name = entry.name.substr(match.prefix.size());
    boxes.push_back(std::move(start));
    for (const internal::CompiledStep& step : compiled[match.rule].steps)
      SHW_RETURN_IF_ERROR(internal::apply_step(step, match.captures, &boxes));
    return finish(std::move(boxes), entry, match.prefix);
  }
};

Result<Mapping> Mapping::create(std::vector<MappingRule> rules, std::vector<std::string> prefixes) {
  auto compiled = std::make_shared<Compiled>();
  for (size_t i = 0; i < rules.size(); ++i) {
    Result<CompiledRule> rule = compile_rule(rules[i]);
    if (!rule.ok()) return in_rule(rule.status(), i, rules[i]);
    compiled->compiled.push_back(*std::move(rule));
  }
  for (const std::string& text : prefixes) {
    Result<NamePattern> prefix = NamePattern::parse(text);
    if (!prefix.ok()) return at_member(prefix.status(), "prefixes");
    compiled->prefixes.push_back(*std::move(prefix));
  }
  compiled->rules = std::move(rules);
  Mapping mapping;
  if (!compiled->rules.empty()) mapping.compiled_ = std::move(compiled);
  return mapping;
}

std::span<const MappingRule> Mapping::rules() const {
  return empty() ? std::span<const MappingRule>() : std::span(compiled_->rules);
}

Result<std::optional<size_t>> Mapping::rule_of(std::string_view name) const {
  std::optional<size_t> rule;
  if (empty()) return rule;
  SHW_ASSIGN_OR_RETURN(const std::optional<Match> match, compiled_->find(name));
  if (match.has_value()) rule = match->rule;
  return rule;
}

Result<std::vector<MappedBox>> Mapping::apply(const MappingEntry& entry) const {
  std::optional<Match> match;
  if (!empty()) {
    SHW_ASSIGN_OR_RETURN(match, compiled_->find(entry.name));
  }
  const auto refused = [&](Status status) {
    if (match.has_value())
      status = in_rule(std::move(status), match->rule, compiled_->rules[match->rule]);
    return std::move(status)
        .annotated(fmt::format("the entry '{}' cannot be mapped", escape_text(entry.name)))
        .with_detail("tensor", entry.name);
  };
  Result<internal::MovingBox> start = moving_box(entry);
  if (!start.ok()) return refused(start.status());
  if (box_is_empty(entry.box)) return std::vector<MappedBox>();
  if (!match.has_value()) {
    start->mapped.name = entry.name;
    return std::vector<MappedBox>{std::move(start->mapped)};
  }
  Result<std::vector<MappedBox>> mapped = compiled_->apply(entry, *std::move(start), *match);
  if (!mapped.ok()) return refused(mapped.status());
  return mapped;
}

Status Mapping::check_used(std::span<const std::string_view> names) const {
  std::vector<bool> used(rules().size(), false);
  for (const std::string_view name : names) {
    SHW_ASSIGN_OR_RETURN(const std::optional<size_t> rule, rule_of(name));
    if (rule.has_value()) used[*rule] = true;
  }
  std::vector<std::string> idle;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] || rules()[i].optional) continue;
    idle.push_back(rule_text(i, rules()[i]));
    numbers.push_back(i + 1);
  }
  if (idle.empty()) return {};
  return invalid_argument(
             fmt::format("{} of the mapping match{} none of {} entries; a rule that may do so is "
                         "\"optional\"",
                         fmt::join(idle, ", "), idle.size() == 1 ? "es" : "", names.size()))
      .with_detail("rule", fmt::format("{}", fmt::join(numbers, ",")));
}

}  // namespace shardwright
