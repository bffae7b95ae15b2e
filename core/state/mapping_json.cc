// SPDX-License-Identifier: Apache-2.0
//
// The JSON form of a mapping. What has the wrong type or is unknown is told with its place in the
// text; what does not fit together is found when the rules are put together.
#include "core/state/mapping_json.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright {
namespace {

constexpr int64_t kSchema = 1;
constexpr std::string_view kRule = "the rule";

class MappingReader {
 public:
  explicit MappingReader(std::span<const MappingParameter> parameters) : parameters_(parameters) {}

  Result<Mapping> read(JsonValueView root) {
    SHW_RETURN_IF_ERROR(
        only(root, "the mapping", {"schema", "description", "parameters", "prefixes", "rules"}));
    int64_t schema = 0;
    SHW_RETURN_IF_ERROR(integer(root, "schema", true, &schema));
    if (schema != kSchema) {
      return root.member("schema").unsupported(
          fmt::format("schema {} of mappings is not known, only {}", schema, kSchema));
    }
    std::string description;  // for readers
    SHW_RETURN_IF_ERROR(text(root, "description", false, &description));
    SHW_RETURN_IF_ERROR(declare_parameters(root));
    std::vector<std::string> prefixes;
    SHW_RETURN_IF_ERROR(texts(root, "prefixes", &prefixes));
    const JsonValueView list = root.member("rules");
    if (!list.exists()) return root.wrong("the mapping has no \"rules\"");
    SHW_RETURN_IF_ERROR(need(list, JsonType::kArray, "rules", "a list of rules"));
    std::vector<MappingRule> rules;
    for (JsonValueView at = list.first(); at.exists(); at = at.next()) {
      where_ = fmt::format("rule {}: ", rules.size() + 1);
      MappingRule& rule = rules.emplace_back();
      SHW_RETURN_IF_ERROR(read_rule(at, &rule));
    }
    return Mapping::create(std::move(rules), std::move(prefixes));
  }

 private:
  // "rule 2: split.count: what" with line and column.
  Status wrong(JsonValueView at, std::string_view member, std::string_view what) const {
    return at.wrong(fmt::format("{}{}: {}", where_, member, what)).with_detail("parameter", member);
  }
  std::string member_name(std::string_view key) const { return step_ + std::string(key); }

  Status need(JsonValueView at, JsonType type, std::string_view member,
              std::string_view what) const {
    if (at.type() == type) return {};
    return wrong(at, member, fmt::format("is not {}", what));
  }

  Status only(JsonValueView object, std::string_view noun,
              std::initializer_list<std::string_view> keys) const {
    SHW_RETURN_IF_ERROR(need(object, JsonType::kObject, noun, "an object"));
    return object.check_keys(place_of(noun), std::span(keys.begin(), keys.size()));
  }

  // "the mapping", "rule 2", "split of rule 2".
  std::string place_of(std::string_view noun) const {
    if (where_.empty()) return std::string(noun);
    const std::string_view rule = std::string_view(where_).substr(0, where_.size() - 2);
    return noun == kRule ? std::string(rule) : fmt::format("{} of {}", noun, rule);
  }

  Status declare_parameters(JsonValueView root) {
    std::vector<std::string> names;
    SHW_RETURN_IF_ERROR(texts(root, "parameters", &names));
    declared_.insert(names.begin(), names.end());
    for (const MappingParameter& given : parameters_) {
      if (declared_.contains(given.name)) continue;
      return invalid_argument(
                 fmt::format("the mapping has no parameter '{}'; it has {}",
                             escape_text(given.name, 80),
                             names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))))
          .with_detail("parameter", given.name);
    }
    return {};
  }

  Status read_rule(JsonValueView at, MappingRule* rule) {
    step_.clear();
    SHW_RETURN_IF_ERROR(only(at, kRule, {"match", "except", "optional", "steps"}));
    SHW_RETURN_IF_ERROR(text(at, "match", true, &rule->match));
    SHW_RETURN_IF_ERROR(texts(at, "except", &rule->except));
    SHW_RETURN_IF_ERROR(boolean(at, "optional", &rule->optional));
    const JsonValueView steps = at.member("steps");
    if (!steps.exists()) return {};
    SHW_RETURN_IF_ERROR(need(steps, JsonType::kArray, "steps", "a list of steps"));
    for (JsonValueView step = steps.first(); step.exists(); step = step.next()) {
      step_.clear();
      SHW_RETURN_IF_ERROR(need(step, JsonType::kObject, "steps", "a list of objects"));
      SHW_RETURN_IF_ERROR(read_step(step, rule));
    }
    return {};
  }

  Status read_step(JsonValueView object, MappingRule* rule) {
    if (object.size() != 1)
      return wrong(object, "steps", "a step is an object of one member, its name");
    const JsonValueView step = object.first();
    const std::string_view name = step.key();
    MappingStep out;
    Status status;
    if (name == "split") {
      status = read_split(step, &out.emplace<SplitStep>());
    } else if (name == "concat") {
      status = read_concat(step, &out.emplace<ConcatStep>());
    } else if (name == "rename") {
      status = text(object, "rename", true, &out.emplace<RenameStep>().name);
    } else if (name == "insert_axis") {
      status = read_insert(step, &out.emplace<InsertAxisStep>());
    } else if (name == "drop_axis") {
      status = read_drop(step, &out.emplace<DropAxisStep>());
    } else if (name == "pad") {
      status = read_pad(step, &out.emplace<PadStep>());
    } else {
      status = step.wrong_key(fmt::format(
          "{}there is no step '{}'; steps are split, concat, rename, insert_axis, drop_axis, pad",
          where_, escape_text(name, 80)));
    }
    SHW_RETURN_IF_ERROR(status);
    rule->steps.push_back(std::move(out));
    return {};
  }

  Status read_split(JsonValueView at, SplitStep* step) {
    SHW_RETURN_IF_ERROR(only(at, "split", {"axis", "count", "sizes", "suffixes", "name", "of"}));
    step_ = "split.";
    SHW_RETURN_IF_ERROR(axis(at, &step->axis));
    SHW_RETURN_IF_ERROR(integer(at, "count", false, &step->count));
    SHW_RETURN_IF_ERROR(integers(at, "sizes", &step->sizes));
    SHW_RETURN_IF_ERROR(texts(at, "suffixes", &step->suffixes));
    SHW_RETURN_IF_ERROR(text(at, "name", false, &step->name));
    std::string of = "part";
    SHW_RETURN_IF_ERROR(text(at, "of", false, &of));
    if (of != "part" && of != "tensor")
      return wrong(at.member("of"), "split.of", "is neither \"part\" nor \"tensor\"");
    step->whole_tensor = of == "tensor";
    return {};
  }

  Status read_concat(JsonValueView at, ConcatStep* step) {
    SHW_RETURN_IF_ERROR(only(at, "concat", {"axis", "index", "from", "count", "sizes"}));
    step_ = "concat.";
    SHW_RETURN_IF_ERROR(axis(at, &step->axis));
    SHW_RETURN_IF_ERROR(index(at, &step->index));
    SHW_RETURN_IF_ERROR(integer(at, "count", false, &step->count));
    return integers(at, "sizes", &step->sizes);
  }

  Status read_insert(JsonValueView at, InsertAxisStep* step) {
    SHW_RETURN_IF_ERROR(only(at, "insert_axis", {"axis", "index", "from", "count"}));
    step_ = "insert_axis.";
    SHW_RETURN_IF_ERROR(axis(at, &step->axis));
    SHW_RETURN_IF_ERROR(index(at, &step->index));
    return integer(at, "count", true, &step->count);
  }

  Status read_drop(JsonValueView at, DropAxisStep* step) {
    SHW_RETURN_IF_ERROR(only(at, "drop_axis", {"axis", "name"}));
    step_ = "drop_axis.";
    SHW_RETURN_IF_ERROR(axis(at, &step->axis));
    return text(at, "name", true, &step->name);
  }

  Status read_pad(JsonValueView at, PadStep* step) {
    SHW_RETURN_IF_ERROR(only(at, "pad", {"axis", "size", "real"}));
    step_ = "pad.";
    SHW_RETURN_IF_ERROR(axis(at, &step->axis));
    SHW_RETURN_IF_ERROR(integer(at, "size", true, &step->size));
    SHW_RETURN_IF_ERROR(integer(at, "real", false, &step->real));
    if (!at.member("real").exists() || step->real != 0) return {};
    return wrong(at.member("real"), member_name("real"), "0 is not positive");
  }

  Status axis(JsonValueView object, int32_t* out) const {
    int64_t value = 0;
    SHW_RETURN_IF_ERROR(integer(object, "axis", true, &value));
    if (!std::in_range<int32_t>(value))
      return wrong(object.member("axis"), member_name("axis"), "is out of range");
    *out = static_cast<int32_t>(value);
    return {};
  }

  // A number, or "{2}", what the second sign of the pattern matched, and "from" where that begins.
  Status index(JsonValueView object, MappingIndex* out) const {
    const JsonValueView at = object.member("index");
    if (at.exists() && at.type() == JsonType::kText && at.text().starts_with('{')) {
      const std::string_view text = at.text();
      const std::string_view digits =
          text.substr(1, text.size() - std::min<size_t>(2, text.size()));
      const bool number = !digits.empty() && digits.size() <= 4 && digits[0] != '0' &&
                          digits.find_first_not_of("0123456789") == std::string_view::npos;
      if (!number || text.back() != '}')
        return wrong(at, member_name("index"), "is neither a number nor a capture such as \"{1}\"");
      out->capture = 0;
      for (const char digit : digits)
        out->capture = out->capture * 10 + static_cast<size_t>(digit - '0');
      return integer(object, "from", false, &out->value);
    }
    if (object.member("from").exists())
      return wrong(object.member("from"), member_name("from"), "needs an index such as \"{1}\"");
    return integer(object, "index", true, &out->value);
  }

  Status integer(JsonValueView object, std::string_view key, bool needed, int64_t* out) const {
    const JsonValueView at = object.member(key);
    if (at.exists()) return value(at, member_name(key), out);
    return needed ? wrong(object, member_name(key), "is missing") : Status();
  }

  // An integer, or "$name" of a parameter.
  Status value(JsonValueView at, const std::string& member, int64_t* out) const {
    if (at.type() == JsonType::kText && at.text().starts_with('$')) {
      const std::string_view name = at.text().substr(1);
      if (!declared_.contains(name)) {
        return wrong(at, member,
                     fmt::format("the parameter '{}' is not listed in \"parameters\"",
                                 escape_text(name, 80)));
      }
      const auto given = std::ranges::find(parameters_, name, &MappingParameter::name);
      if (given == parameters_.end()) {
        return wrong(at, member,
                     fmt::format("the parameter '{}' was not given", escape_text(name, 80)));
      }
      *out = given->value;
      return {};
    }
    if (at.type() != JsonType::kInteger)
      return wrong(at, member, "is neither an integer nor a parameter such as \"$layers\"");
    *out = at.integer();
    return {};
  }

  Status integers(JsonValueView object, std::string_view key, std::vector<int64_t>* out) const {
    const JsonValueView list = object.member(key);
    if (!list.exists()) return {};
    SHW_RETURN_IF_ERROR(need(list, JsonType::kArray, member_name(key), "a list of integers"));
    for (JsonValueView at = list.first(); at.exists(); at = at.next())
      SHW_RETURN_IF_ERROR(value(at, member_name(key), &out->emplace_back()));
    return {};
  }

  Status text(JsonValueView object, std::string_view key, bool needed, std::string* out) const {
    const JsonValueView at = object.member(key);
    if (!at.exists()) return needed ? wrong(object, member_name(key), "is missing") : Status();
    SHW_RETURN_IF_ERROR(need(at, JsonType::kText, member_name(key), "a text"));
    *out = at.text();
    return {};
  }

  Status texts(JsonValueView object, std::string_view key, std::vector<std::string>* out) const {
    const JsonValueView list = object.member(key);
    if (!list.exists()) return {};
    SHW_RETURN_IF_ERROR(need(list, JsonType::kArray, member_name(key), "a list of texts"));
    for (JsonValueView at = list.first(); at.exists(); at = at.next()) {
      SHW_RETURN_IF_ERROR(need(at, JsonType::kText, member_name(key), "a list of texts"));
      out->emplace_back(at.text());
    }
    return {};
  }

  Status boolean(JsonValueView object, std::string_view key, bool* out) const {
    const JsonValueView at = object.member(key);
    if (!at.exists()) return {};
    SHW_RETURN_IF_ERROR(need(at, JsonType::kBoolean, member_name(key), "true or false"));
    *out = at.integer() != 0;
    return {};
  }

  std::span<const MappingParameter> parameters_;
  std::set<std::string, std::less<>> declared_;
  std::string where_;  // "rule 2: "
  std::string step_;   // "split."
};

}  // namespace

Result<Mapping> read_mapping(JsonValueView root, std::span<const MappingParameter> parameters) {
  return MappingReader(parameters).read(root);
}

Result<Mapping> Mapping::parse(std::string_view json,
                               std::span<const MappingParameter> parameters) {
  SHW_ASSIGN_OR_RETURN(const JsonTree tree, JsonTree::parse(json, {}));
  return read_mapping(tree.root(), parameters);
}

}  // namespace shardwright
