// SPDX-License-Identifier: Apache-2.0
//
// shardwright diff: what two checkpoints hold differently, whatever mesh, format or language wrote
// them. Values of tensors are compared by the digests that `shardwright digest` prints.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/entries.h"
#include "cli/object_differences.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DiffOptions {
  std::string left;
  std::string right;
  std::string pattern;
  bool without_values = false;
  bool without_objects = false;
};

// One of the two, with its tensors.
struct ComparedSide {
  const std::string& path;
  Checkpoint checkpoint;
  std::vector<TensorFacts> tensors;  // ascending by listed name
};

using TensorPair = std::pair<const TensorFacts*, const TensorFacts*>;

struct Differences {
  std::vector<const TensorFacts*> only_left;
  std::vector<const TensorFacts*> only_right;
  std::vector<TensorPair> dtypes_or_shapes;
  std::vector<TensorPair> values;
  std::vector<TensorPair> alike;  // in dtype and shape; without those of `values` once compared

  bool none() const {
    return only_left.empty() && only_right.empty() && dtypes_or_shapes.empty() && values.empty();
  }
};

ComparedSide compared_side(Session& session, const std::string& path, const DiffOptions& options) {
  ComparedSide side{path, session.open(path), {}};
  side.tensors = list_tensors(side.checkpoint, options.pattern);
  return side;
}

Differences paired(const ComparedSide& left, const ComparedSide& right) {
  Differences found;
  pair_by_name(
      left.tensors, right.tensors, [&](const TensorFacts& a) { found.only_left.push_back(&a); },
      [&](const TensorFacts& b) { found.only_right.push_back(&b); },
      [&](const TensorFacts& a, const TensorFacts& b) {
        const bool alike = a.dtype == b.dtype && a.shape == b.shape;
        (alike ? found.alike : found.dtypes_or_shapes).emplace_back(&a, &b);
      });
  return found;
}

std::vector<std::string> digests_of(const ComparedSide& side,
                                    const std::vector<uint64_t>& indices) {
  return content_digests(side.checkpoint, indices, SHW_DIGEST_XXH3, side.path);
}

void compare_values(const ComparedSide& left, const ComparedSide& right, Differences* found) {
  std::vector<uint64_t> left_indices;
  std::vector<uint64_t> right_indices;
  for (const auto& [a, b] : found->alike) {
    left_indices.push_back(a->index);
    right_indices.push_back(b->index);
  }
  const std::vector<std::string> left_digests = digests_of(left, left_indices);
  const std::vector<std::string> right_digests = digests_of(right, right_indices);
  std::vector<TensorPair> equal;
  for (size_t i = 0; i < found->alike.size(); ++i) {
    (left_digests[i] == right_digests[i] ? equal : found->values).push_back(found->alike[i]);
  }
  found->alike = std::move(equal);
}

template <typename Facts>
Json names_of(const std::vector<const Facts*>& entries) {
  Json names = Json::array();
  for (const Facts* entry : entries) names.push_back(entry->listed);
  return names;
}

ObjectSide objects_of(const ComparedSide& side, const DiffOptions& options) {
  ObjectSide objects{side.path, side.checkpoint, {}};
  if (options.without_objects) return objects;
  objects.objects = list_objects(side.checkpoint);
  std::erase_if(objects.objects, [&](const ObjectFacts& object) {
    return !name_matches(options.pattern, object.listed);
  });
  return objects;
}

Json facts_of(const TensorFacts& tensor) {
  return {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
}

Json objects_json(const ObjectDifferences& found) {
  Json different = Json::array();
  for (const auto& [a, b] : found.different) different.push_back(a->listed);
  return {{"only_in_a", names_of(found.only_left)},
          {"only_in_b", names_of(found.only_right)},
          {"different", different},
          {"equal", found.equal}};
}

void print_differences_json(const DiffOptions& options, const Differences& found,
                            const ObjectDifferences& objects) {
  Json changed = Json::array();
  for (const auto& [a, b] : found.dtypes_or_shapes)
    changed.push_back({{"name", a->listed}, {"a", facts_of(*a)}, {"b", facts_of(*b)}});
  Json values = Json::array();
  for (const auto& [a, b] : found.values) values.push_back(a->listed);
  const Json json{{"schema", 1},
                  {"a", options.left},
                  {"b", options.right},
                  {"only_in_a", names_of(found.only_left)},
                  {"only_in_b", names_of(found.only_right)},
                  {"dtype_or_shape", changed},
                  {"values", values},
                  {"equal", found.alike.size()},
                  {"objects", options.without_objects ? Json() : objects_json(objects)},
                  {"values_compared", !options.without_values}};
  Session::print_line(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string facts_text(const TensorFacts& tensor) {
  return fmt::format("{} {}", tensor.dtype, shape_text(tensor.shape));
}

std::string facts_text(const ObjectFacts& object) {
  return fmt::format("object, {}, {}", printable(object.content_type), size_text(object.bytes));
}

void add_objects(const ObjectDifferences& found, Table* table) {
  for (const ObjectFacts* object : found.only_left)
    table->add({"only in A", printable(object->listed), facts_text(*object)});
  for (const ObjectFacts* object : found.only_right)
    table->add({"only in B", printable(object->listed), facts_text(*object)});
  for (const auto& [a, b] : found.different) {
    const bool alike = a->content_type == b->content_type && a->bytes == b->bytes;
    table->add(
        {"object", printable(a->listed),
         alike ? facts_text(*a) : fmt::format("{} in A, {} in B", facts_text(*a), facts_text(*b))});
  }
}

void print_differences(const DiffOptions& options, const Differences& found,
                       const ObjectDifferences& objects) {
  Table table({false, false, false});
  for (const TensorFacts* tensor : found.only_left)
    table.add({"only in A", printable(tensor->listed), facts_text(*tensor)});
  for (const TensorFacts* tensor : found.only_right)
    table.add({"only in B", printable(tensor->listed), facts_text(*tensor)});
  for (const auto& [a, b] : found.dtypes_or_shapes) {
    table.add({a->dtype == b->dtype ? "shape" : "dtype", printable(a->listed),
               fmt::format("{} in A, {} in B", facts_text(*a), facts_text(*b))});
  }
  for (const auto& [a, b] : found.values)
    table.add({"values", printable(a->listed), facts_text(*a)});
  add_objects(objects, &table);
  const bool equal = found.none() && objects.none();
  if (!equal) Session::print(table.text());
  const size_t differ = found.only_left.size() + found.only_right.size() +
                        found.dtypes_or_shapes.size() + found.values.size();
  Session::print_line(fmt::format(
      "{}: {} differ, {} {}", equal ? "equal" : "different", plural(differ, "tensor"),
      count_text(found.alike.size()),
      options.without_values ? "have one dtype and shape; values were not compared" : "are equal"));
  const size_t objects_differ =
      objects.only_left.size() + objects.only_right.size() + objects.different.size();
  if (objects_differ + objects.equal == 0) return;
  Session::print_line(fmt::format("{} differ, {} {}", plural(objects_differ, "object"),
                                  count_text(objects.equal),
                                  options.without_values ? "have one content type" : "are equal"));
}

int diff(Session& session, const DiffOptions& options) {
  const ComparedSide left = compared_side(session, options.left, options);
  const ComparedSide right = compared_side(session, options.right, options);
  const ObjectSide left_objects = objects_of(left, options);
  const ObjectSide right_objects = objects_of(right, options);
  if (left.tensors.empty() && right.tensors.empty() && left_objects.objects.empty() &&
      right_objects.objects.empty())
    require_match(options.pattern, "tensor or object", options.left);
  Differences found = paired(left, right);
  if (!options.without_values) compare_values(left, right, &found);
  const ObjectDifferences objects =
      compare_objects(left_objects, right_objects, !options.without_values);
  if (session.options.json) {
    print_differences_json(options, found, objects);
  } else {
    print_differences(options, found, objects);
  }
  return found.none() && objects.none() ? kExitFine : kExitDamage;
}

}  // namespace

void add_diff(CLI::App& app, Session& session, Run* run) {
  CLI::App* command =
      app.add_subcommand("diff", "What two checkpoints of any formats hold differently");
  auto options = std::make_shared<DiffOptions>();
  command->add_option("A", options->left, "Checkpoint")->required();
  command->add_option("B", options->right, "Checkpoint")->required();
  command->add_option("PATTERN", options->pattern,
                      "Only names like this: '*' is any text, '?' one character");
  command->add_flag("--no-values", options->without_values,
                    "Compare names, dtypes and shapes only; reads no tensor and no object");
  command->add_flag("--no-objects", options->without_objects, "Compare tensors only");
  add_shared_options(*command, session);
  command->callback(
      [&session, run, options] { *run = [&session, options] { return diff(session, *options); }; });
}

}  // namespace shardwright::cli
