// SPDX-License-Identifier: Apache-2.0
#include "cli/element_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "cli/small_float.h"
#include "shardwright/shardwright.h"

namespace shardwright::cli {
namespace {

constexpr int kPrecision = 8;  // digits behind the point
constexpr double kLargestPositional =
    1e8;  // from here on, and below kSmallestPositional: exponents
constexpr double kSmallestPositional = 1e-4;
constexpr double kLargestRatio = 1000;

// "-1.25e+02" as {negative, "125", 2}.
struct Digits {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

Digits digits_of(std::string_view scientific) {
  Digits result;
  if (scientific.starts_with('-')) {
    result.negative = true;
    scientific.remove_prefix(1);
  }
  const size_t e = scientific.find('e');
  for (const char c : scientific.substr(0, e)) {
    if (c != '.') result.digits += c;
  }
  result.exponent = std::atoi(std::string(scientific.substr(e + 1)).c_str());
  return result;
}

std::string scientific_text(double value, int digits_behind_point) {
  char buffer[64];
  const int size = std::snprintf(buffer, sizeof buffer, "%.*e", digits_behind_point, value);
  return std::string(buffer, static_cast<size_t>(size));
}

// Shortest digits that read back to the same value of the type.
Digits shortest_digits(ElementType type, double value) {
  char buffer[64];
  if (type.bits == 64) {
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    return digits_of({buffer, static_cast<size_t>(end - buffer)});
  }
  if (type.bits == 32) {
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value),
                                   std::chars_format::scientific)
                         .ptr;
    return digits_of({buffer, static_cast<size_t>(end - buffer)});
  }
  const Gap gap = small_float_gap(*small_float_of(type), value);
  std::string text;
  for (int digits = 0; digits < 17; ++digits) {
    text = scientific_text(value, digits);
    const double distance = std::fabs(std::strtod(text.c_str(), nullptr)) - std::fabs(value);
    if (distance < gap.above / 2 && -distance < gap.below / 2) break;
  }
  return digits_of(text);
}

void trim_zeros(std::string* fraction) {
  fraction->erase(fraction->find_last_not_of('0') + 1);
}

// A number cut at the point; exponent is used by the exponent form only.
struct NumberParts {
  std::string whole;
  std::string fraction;
  int exponent = 0;
};

NumberParts positional_parts(const Digits& digits, double value) {
  const std::string sign = digits.negative ? "-" : "";
  const int point = digits.exponent + 1;  // digits in front of the point
  const auto count = static_cast<int>(digits.digits.size());
  if (count - point > kPrecision) {
    std::string text = fmt::format("{:.{}f}", std::fabs(value), kPrecision);
    const size_t dot = text.find('.');
    NumberParts parts{sign + text.substr(0, dot), text.substr(dot + 1)};
    trim_zeros(&parts.fraction);
    return parts;
  }
  std::string all = digits.digits;
  if (point <= 0) all.insert(0, static_cast<size_t>(1 - point), '0');
  if (count < point) all.append(static_cast<size_t>(point - count), '0');
  const size_t cut = point <= 0 ? 1 : static_cast<size_t>(point);
  NumberParts parts{sign + all.substr(0, cut), all.substr(cut)};
  trim_zeros(&parts.fraction);
  return parts;
}

NumberParts exponent_parts(Digits digits, double value) {
  if (digits.digits.size() > kPrecision + 1) digits = digits_of(scientific_text(value, kPrecision));
  NumberParts parts{(digits.negative ? "-" : "") + digits.digits.substr(0, 1),
                    digits.digits.substr(1), digits.exponent};
  trim_zeros(&parts.fraction);
  return parts;
}

// One form for a column of real numbers.
class RealFormat {
 public:
  RealFormat(ElementType type, const std::vector<double>& values, bool always_sign)
      : type_(type), always_sign_(always_sign) {
    choose_form(values);
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      const NumberParts parts = parts_of(value);
      whole_width_ = std::max(whole_width_, parts.whole.size());
      fraction_width_ = std::max(fraction_width_, parts.fraction.size());
      exponent_digits_ =
          std::max<size_t>(exponent_digits_, std::abs(parts.exponent) >= 100 ? 3 : 2);
    }
    for (const double value : values) {
      if (!std::isfinite(value)) widen(special_text(value).size());
    }
  }

  std::string word(double value) const {
    if (!std::isfinite(value)) return fmt::format("{:>{}}", special_text(value), width());
    NumberParts parts = parts_of(value);
    if (exponents_) {
      if (parts.fraction.size() < fraction_width_) parts = padded(value);
      return fmt::format("{:>{}}.{}e{}{:0{}}", parts.whole, whole_width_, parts.fraction,
                         parts.exponent < 0 ? '-' : '+', std::abs(parts.exponent),
                         exponent_digits_);
    }
    return fmt::format("{:>{}}.{:<{}}", parts.whole, whole_width_, parts.fraction, fraction_width_);
  }

 private:
  void choose_form(const std::vector<double>& values) {
    double largest = 0;
    double smallest = 0;
    for (const double value : values) {
      const double magnitude = std::fabs(value);
      if (!std::isfinite(value) || magnitude == 0) continue;
      largest = std::max(largest, magnitude);
      smallest = smallest == 0 ? magnitude : std::min(smallest, magnitude);
    }
    exponents_ =
        smallest != 0 && (largest >= kLargestPositional || smallest < kSmallestPositional ||
                          largest / smallest > kLargestRatio);
  }

  NumberParts parts_of(double value) const {
    const Digits digits = shortest_digits(type_, value);
    NumberParts parts =
        exponents_ ? exponent_parts(digits, value) : positional_parts(digits, value);
    if (always_sign_ && !digits.negative) parts.whole.insert(0, 1, '+');
    return parts;
  }

  // NumPy fills a column of exponents with the value's own digits, not with zeros.
  NumberParts padded(double value) const {
    const Digits digits = digits_of(scientific_text(value, static_cast<int>(fraction_width_)));
    const std::string sign = digits.negative ? "-" : always_sign_ ? "+" : "";
    return {sign + digits.digits.substr(0, 1), digits.digits.substr(1), digits.exponent};
  }

  std::string special_text(double value) const {
    const std::string_view text = std::isnan(value) ? "nan" : "inf";
    const bool negative = !std::isnan(value) && value < 0;
    return fmt::format("{}{}", negative ? "-" : always_sign_ ? "+" : "", text);
  }

  size_t width() const {
    return whole_width_ + 1 + fraction_width_ + (exponents_ ? 2 + exponent_digits_ : 0);
  }
  void widen(size_t wanted) {
    if (width() < wanted) whole_width_ += wanted - width();
  }

  ElementType type_;
  bool always_sign_;
  bool exponents_ = false;
  size_t whole_width_ = 0;
  size_t fraction_width_ = 0;
  size_t exponent_digits_ = 2;
};

std::vector<std::string> real_words(ElementType type, const std::vector<double>& values,
                                    bool always_sign) {
  const RealFormat format(type, values, always_sign);
  std::vector<std::string> words;
  words.reserve(values.size());
  for (const double value : values) words.push_back(format.word(value));
  return words;
}

std::vector<std::string> complex_words(ElementType type, const std::vector<Element>& elements) {
  const ElementType half = part_type(type);
  std::vector<double> real;
  std::vector<double> imaginary;
  for (const Element& element : elements) {
    real.push_back(element.real);
    imaginary.push_back(element.imaginary);
  }
  std::vector<std::string> words = real_words(half, real, false);
  const std::vector<std::string> second = real_words(half, imaginary, true);
  for (size_t i = 0; i < words.size(); ++i) {
    // The j stands behind the last digit; spaces that keep the column follow it.
    const size_t end = second[i].find_last_not_of(' ') + 1;
    words[i] += second[i].substr(0, end) + "j" + second[i].substr(end);
  }
  return words;
}

std::string plain_word(const Element& element) {
  switch (element.kind) {
    case Element::Kind::kBool:
      return element.unsigned_integer != 0 ? "True" : "False";
    case Element::Kind::kInteger:
      return fmt::to_string(element.integer);
    default:
      return fmt::to_string(element.unsigned_integer);
  }
}

std::string real_json(ElementType type, double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  const Digits digits = shortest_digits(type, value);
  const std::string fraction = digits.digits.substr(1);
  return fmt::format("{}{}{}{}e{}", digits.negative ? "-" : "", digits.digits.substr(0, 1),
                     fraction.empty() ? "" : ".", fraction, digits.exponent);
}

}  // namespace

std::vector<std::string> element_words(ElementType type, const std::vector<Element>& elements,
                                       bool single) {
  if (elements.empty()) return {};
  if (elements.front().kind == Element::Kind::kComplex) return complex_words(type, elements);
  if (elements.front().kind == Element::Kind::kReal) {
    std::vector<double> values;
    values.reserve(elements.size());
    for (const Element& element : elements) values.push_back(element.real);
    std::vector<std::string> words = real_words(type, values, false);
    // A number by itself reads "2.0", in an array "2.".
    if (single && words.front().ends_with('.')) words.front() += '0';
    return words;
  }
  std::vector<std::string> words;
  // NumPy keeps the width of "False" for arrays of bools, whatever they hold.
  size_t width = elements.front().kind == Element::Kind::kBool && !single ? 5 : 0;
  for (const Element& element : elements) {
    words.push_back(plain_word(element));
    width = std::max(width, words.back().size());
  }
  for (std::string& word : words) word.insert(0, width - word.size(), ' ');
  return words;
}

std::string element_json(ElementType type, const Element& element) {
  switch (element.kind) {
    case Element::Kind::kBool:
      return element.unsigned_integer != 0 ? "true" : "false";
    case Element::Kind::kReal:
      return real_json(type, element.real);
    case Element::Kind::kComplex: {
      const ElementType half = part_type(type);
      return fmt::format("[{},{}]", real_json(half, element.real),
                         real_json(half, element.imaginary));
    }
    default:
      return plain_word(element);
  }
}

}  // namespace shardwright::cli
