// SPDX-License-Identifier: Apache-2.0
//
// Objects of one size are read part by part. JSON becomes a list of what it says: no blanks, one
// escape for a character, keys in their order, integers with all of their digits.
#include "cli/object_differences.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace shardwright::cli {
namespace {

using PlainJson = nlohmann::json;

constexpr uint64_t kComparedPartBytes = uint64_t{8} << 20;
constexpr uint64_t kMaxJsonBytes = uint64_t{64} << 20;  // longer ones are compared as bytes
constexpr size_t kMaxComparedDepth = 256;

// What a JSON text says, in one text that only equal ones have.
class JsonStatements final : public PlainJson::json_sax_t {
 public:
  bool null() override { return say('n', ""); }
  bool boolean(bool value) override { return say('b', value ? "1" : "0"); }
  bool number_integer(number_integer_t value) override { return say('i', fmt::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return say('i', fmt::to_string(value)); }
  // Integers that fit no machine word come here as well.
  bool number_float(number_float_t value, const string_t& text) override {
    const bool is_integer = text.find_first_of(".eE") == std::string::npos;
    return is_integer ? say('i', text) : say('f', fmt::to_string(value));
  }
  bool string(string_t& value) override { return say('s', value); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& value) override { return say('k', value); }
  bool start_object(size_t) override { return ++depth_ <= kMaxComparedDepth && say('{', ""); }
  bool end_object() override { return close('}'); }
  bool start_array(size_t) override { return ++depth_ <= kMaxComparedDepth && say('[', ""); }
  bool end_array() override { return close(']'); }
  bool parse_error(size_t, const std::string&, const PlainJson::exception&) override {
    return false;
  }
  std::string take() { return std::move(said_); }

 private:
  bool say(char kind, std::string_view text) {
    said_ += fmt::format("{}{}:{}", kind, text.size(), text);
    return true;
  }
  bool close(char kind) {
    --depth_;
    return say(kind, "");
  }

  std::string said_;
  size_t depth_ = 0;
};

std::optional<std::string> statements_of(std::string_view text) {
  JsonStatements statements;
  if (!PlainJson::sax_parse(text.begin(), text.end(), &statements)) return std::nullopt;
  return statements.take();
}

Buffer part_of(const ObjectSide& side, const ObjectFacts& object, uint64_t offset, uint64_t size) {
  return made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_checkpoint_read_object_part(side.checkpoint.get(), object.index, offset, size,
                                               out, error);
      },
      "read the object", Place::of_checkpoint(side.path, object.listed));
}

bool have_equal_bytes(const ObjectSide& left, const ObjectFacts& a, const ObjectSide& right,
                      const ObjectFacts& b) {
  if (a.bytes != b.bytes) return false;
  for (uint64_t done = 0; done < a.bytes; done += kComparedPartBytes) {
    const uint64_t size = std::min(kComparedPartBytes, a.bytes - done);
    const Buffer one = part_of(left, a, done, size);
    const Buffer other = part_of(right, b, done, size);
    if (text_of(one) != text_of(other)) return false;
  }
  return true;
}

bool say_the_same(const ObjectSide& left, const ObjectFacts& a, const ObjectSide& right,
                  const ObjectFacts& b) {
  if (a.content_type != "application/json" || std::max(a.bytes, b.bytes) > kMaxJsonBytes)
    return false;
  const auto one = statements_of(text_of(part_of(left, a, 0, a.bytes)));
  const auto other = statements_of(text_of(part_of(right, b, 0, b.bytes)));
  return one.has_value() && one == other;
}

}  // namespace

ObjectDifferences compare_objects(const ObjectSide& left, const ObjectSide& right,
                                  bool with_contents) {
  ObjectDifferences found;
  const auto are_equal = [&](const ObjectFacts& a, const ObjectFacts& b) {
    return a.content_type == b.content_type &&
           (!with_contents || have_equal_bytes(left, a, right, b) ||
            say_the_same(left, a, right, b));
  };
  pair_by_name(
      left.objects, right.objects, [&](const ObjectFacts& a) { found.only_left.push_back(&a); },
      [&](const ObjectFacts& b) { found.only_right.push_back(&b); },
      [&](const ObjectFacts& a, const ObjectFacts& b) {
        if (are_equal(a, b)) {
          ++found.equal;
        } else {
          found.different.emplace_back(&a, &b);
        }
      });
  return found;
}

}  // namespace shardwright::cli
