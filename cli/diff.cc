// SPDX-License-Identifier: Apache-2.0
//
// shardwright diff: what two checkpoints hold differently, whatever mesh, format or language wrote
// them. Values are compared by the digests that `shardwright digest` prints.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/entries.h"
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
  auto a = left.tensors.begin();
  auto b = right.tensors.begin();
  while (a != left.tensors.end() || b != right.tensors.end()) {
    if (b == right.tensors.end() || (a != left.tensors.end() && a->listed < b->listed)) {
      found.only_left.push_back(&*a++);
    } else if (a == left.tensors.end() || b->listed < a->listed) {
      found.only_right.push_back(&*b++);
    } else {
      const bool alike = a->dtype == b->dtype && a->shape == b->shape;
      (alike ? found.alike : found.dtypes_or_shapes).emplace_back(&*a++, &*b++);
    }
  }
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

Json names_of(const std::vector<const TensorFacts*>& tensors) {
  Json names = Json::array();
  for (const TensorFacts* tensor : tensors) names.push_back(tensor->listed);
  return names;
}

Json facts_of(const TensorFacts& tensor) {
  return {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
}

void print_differences_json(const DiffOptions& options, const Differences& found) {
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
                  {"values_compared", !options.without_values}};
  Session::print_line(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string facts_text(const TensorFacts& tensor) {
  return fmt::format("{} {}", tensor.dtype, shape_text(tensor.shape));
}

void print_differences(const DiffOptions& options, const Differences& found) {
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
  if (!found.none()) Session::print(table.text());
  const size_t differ = found.only_left.size() + found.only_right.size() +
                        found.dtypes_or_shapes.size() + found.values.size();
  Session::print_line(fmt::format(
      "{}: {} differ, {} {}", found.none() ? "equal" : "different", plural(differ, "tensor"),
      count_text(found.alike.size()),
      options.without_values ? "have one dtype and shape; values were not compared" : "are equal"));
}

int diff(Session& session, const DiffOptions& options) {
  const ComparedSide left = compared_side(session, options.left, options);
  const ComparedSide right = compared_side(session, options.right, options);
  if (left.tensors.empty() && right.tensors.empty())
    require_match(options.pattern, "tensor", options.left);
  Differences found = paired(left, right);
  if (!options.without_values) compare_values(left, right, &found);
  if (session.options.json) {
    print_differences_json(options, found);
  } else {
    print_differences(options, found);
  }
  return found.none() ? kExitFine : kExitDamage;
}

}  // namespace

void add_diff(CLI::App& app, Session& session, Run* run) {
  CLI::App* command =
      app.add_subcommand("diff", "Tensors that two checkpoints of any formats hold differently");
  auto options = std::make_shared<DiffOptions>();
  command->add_option("A", options->left, "Checkpoint")->required();
  command->add_option("B", options->right, "Checkpoint")->required();
  command->add_option("PATTERN", options->pattern,
                      "Only names like this: '*' is any text, '?' one character");
  command->add_flag("--no-values", options->without_values,
                    "Compare names, dtypes and shapes only; reads no tensor");
  add_shared_options(*command, session);
  command->callback(
      [&session, run, options] { *run = [&session, options] { return diff(session, *options); }; });
}

}  // namespace shardwright::cli
