// SPDX-License-Identifier: Apache-2.0
//
// Only the last '*' that was passed is ever tried again: what lies between two of them ends the
// earlier the earlier it begins, since '#' takes whole runs of digits, so the first place where it
// fits leaves the most to all that follows.
#include "core/state/name_pattern.h"

#include <charconv>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright {
namespace {

// Length of the number that begins at `at`, 0 when none does.
size_t number_at(std::string_view name, size_t at) {
  if (at > 0 && is_digit(name[at - 1])) return 0;
  size_t end = at;
  while (end < name.size() && is_digit(name[end])) ++end;
  const bool leading_zero = end - at > 1 && name[at] == '0';
  return leading_zero ? 0 : end - at;
}

Status wrong_pattern(std::string_view text, std::string_view what) {
  return invalid_argument(fmt::format("the pattern '{}' {}", escape_text(text, 200), what));
}

Status wrong_form(std::string_view text, std::string_view what) {
  return invalid_argument(fmt::format("the name '{}' {}", escape_text(text, 200), what));
}

}  // namespace

Result<NamePattern> NamePattern::parse(std::string_view text) {
  if (text.empty()) return invalid_argument("a pattern is empty; '*' matches every name");
  if (!is_valid_utf8(text)) return wrong_pattern(text, "is not valid UTF-8");
  NamePattern pattern;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '*' || c == '#') {
      if (!pattern.parts_.empty() && pattern.parts_.back().kind != Kind::kText)
        return wrong_pattern(text, "has two of '*' and '#' side by side");
      pattern.parts_.push_back({c == '*' ? Kind::kAny : Kind::kNumber, ""});
      pattern.captures_number_.push_back(c == '#');
      continue;
    }
    if (c == '\\') {
      ++i;
      if (i == text.size() || (text[i] != '*' && text[i] != '#' && text[i] != '\\'))
        return wrong_pattern(text, "has a backslash before neither '*', '#' nor a backslash");
    }
    if (pattern.parts_.empty() || pattern.parts_.back().kind != Kind::kText)
      pattern.parts_.push_back({});
    pattern.parts_.back().text += text[i];
  }
  return pattern;
}

std::optional<NamePattern::Beginning> NamePattern::match_up_to(std::string_view name,
                                                               bool whole) const {
  Beginning found;
  size_t at = 0;
  size_t part = 0;
  // The last '*': its part, where it begins and ends, and how many captures come before it.
  size_t any_part = parts_.size();
  size_t any_begin = 0;
  size_t any_end = 0;
  size_t any_captures = 0;
  const auto step = [&] {  // over one part; false when it does not fit
    if (parts_[part].kind == Kind::kText) {
      if (!name.substr(at).starts_with(parts_[part].text)) return false;
      at += parts_[part].text.size();
    } else {
      const size_t digits = number_at(name, at);
      if (digits == 0) return false;
      found.captures.push_back(name.substr(at, digits));
      at += digits;
    }
    ++part;
    return true;
  };
  while (true) {
    if (part == parts_.size() && (!whole || at == name.size())) {
      found.size = at;
      return found;
    }
    if (part < parts_.size() && parts_[part].kind == Kind::kAny) {
      any_part = part++;
      any_begin = any_end = at;
      any_captures = found.captures.size();
      found.captures.emplace_back();
      // The last part of a pattern takes all that is left.
      if (whole && part == parts_.size()) at = any_end = name.size();
    } else if (part == parts_.size() || !step()) {
      if (any_part == parts_.size() || any_end == name.size()) return std::nullopt;
      at = ++any_end;
      part = any_part + 1;
      found.captures.resize(any_captures + 1);
    } else {
      continue;
    }
    found.captures[any_captures] = name.substr(any_begin, any_end - any_begin);
  }
}

std::optional<Captures> NamePattern::match(std::string_view name) const {
  std::optional<Beginning> found = match_up_to(name, true);
  if (!found.has_value()) return std::nullopt;
  return std::move(found->captures);
}

std::optional<NamePattern::Beginning> NamePattern::match_beginning(std::string_view name) const {
  return match_up_to(name, false);
}

Result<NameForm> NameForm::parse(std::string_view text, size_t captures, bool counts) {
  if (!is_valid_utf8(text)) return wrong_form(text, "is not valid UTF-8");
  NameForm form;
  form.parts_.push_back({});
  bool counted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      form.parts_.back().text += c;
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == c) {
      form.parts_.back().text += text[i++];
      continue;
    }
    const size_t end = c == '{' ? text.find('}', i) : std::string_view::npos;
    if (end == std::string_view::npos)
      return wrong_form(text, "has a brace by itself; '{{' and '}}' are braces");
    const std::string_view inside = text.substr(i + 1, end - i - 1);
    int64_t capture = 0;
    if (inside != "#") {
      const auto [last, error] =
          std::from_chars(inside.data(), inside.data() + inside.size(), capture);
      if (error != std::errc() || last != inside.data() + inside.size() || capture < 1 ||
          static_cast<uint64_t>(capture) > captures) {
        return wrong_form(text, fmt::format("has '{{{}}}', but its pattern remembers {} parts",
                                            escape_text(inside, 40), captures));
      }
    } else if (!counts) {
      return wrong_form(text, "has '{#}', but nothing is counted here");
    }
    counted = counted || capture == 0;
    form.parts_.back().capture = capture;
    form.parts_.push_back({});
    i = end;
  }
  if (counts && !counted)
    return wrong_form(text, "lacks '{#}', so that several entries would share it");
  return form;
}

std::string NameForm::fill(const Captures& captures, int64_t counted) const {
  std::string name;
  for (const Part& part : parts_) {
    name += part.text;
    if (part.capture == 0) name += fmt::to_string(counted);
    if (part.capture > 0) name += captures[static_cast<size_t>(part.capture) - 1];
  }
  return name;
}

Result<int64_t> captured_number(std::string_view digits) {
  int64_t number = 0;
  const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc() && last == digits.data() + digits.size()) return number;
  return invalid_argument(fmt::format("the number {} does not fit 63 bits", digits));
}

}  // namespace shardwright
