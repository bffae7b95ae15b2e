// SPDX-License-Identifier: Apache-2.0
//
// shardwright tree: names as a tree with sizes; equal numbered layers are folded unless --all is
// given.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/entries.h"
#include "cli/name_tree.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TreeOptions {
  std::string path;
  bool all = false;
  size_t depth = 0;  // 0 = no limit
};

void add_lines(const TreeNode& node, size_t level, const TreeOptions& options, Table* table) {
  for (const TreeNode& child : node.children) {
    const bool closed = options.depth > 0 && level + 1 >= options.depth && !child.children.empty();
    std::string facts = child.facts;
    if (facts.empty() || closed)
      facts = count_text(child.entries) + (child.entries == 1 ? " entry" : " entries");
    table->add({std::string(level * 2, ' ') + printable(child.part), size_text(child.bytes),
                printable(facts)});
    if (!closed) add_lines(child, level + 1, options, table);
  }
}

Json node_json(const TreeNode& node, size_t level, const TreeOptions& options) {
  Json json{{"part", node.part}, {"entries", node.entries}, {"bytes", node.bytes}};
  if (!node.facts.empty()) json["facts"] = node.facts;
  if (!node.children.empty() && (options.depth == 0 || level < options.depth)) {
    json["children"] = Json::array();
    for (const TreeNode& child : node.children)
      json["children"].push_back(node_json(child, level + 1, options));
  }
  return json;
}

int tree(Session& session, const TreeOptions& options) {
  const Checkpoint checkpoint = session.open(options.path);
  std::vector<TreeEntry> entries;
  for (const TensorFacts& tensor : list_tensors(checkpoint)) {
    entries.push_back({tensor.listed, tensor.dtype + " " + shape_text(tensor.shape), tensor.bytes});
  }
  for (const ObjectFacts& object : list_objects(checkpoint)) {
    entries.push_back({object.listed, object.content_type, object.bytes});
  }
  TreeNode root = make_tree(entries);
  if (!options.all) fold_numbered(&root);
  if (session.options.json) {
    Json json = node_json(root, 0, options);
    json.erase("part");
    Json out{{"schema", 1}, {"path", options.path}};
    out.update(json);
    Session::print_line(out.dump(-1, ' ', false, Json::error_handler_t::replace));
    return kExitFine;
  }
  Table table({false, true, false});
  add_lines(root, 0, options, &table);
  Session::print(table.text());
  return kExitFine;
}

}  // namespace

void add_tree(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand("tree", "Names as a tree with sizes, equal layers folded");
  auto options = std::make_shared<TreeOptions>();
  command->add_option("PATH", options->path, "Checkpoint")->required();
  command->add_flag("--all", options->all, "Do not fold equal numbered layers");
  command->add_option("--depth", options->depth, "Levels to show (0 = all)");
  add_as_option(*command, session);
  add_step_option(*command, session);
  add_shared_options(*command, session);
  command->callback(
      [&session, run, options] { *run = [&session, options] { return tree(session, *options); }; });
}

}  // namespace shardwright::cli
