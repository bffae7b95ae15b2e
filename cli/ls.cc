// SPDX-License-Identifier: Apache-2.0
//
// shardwright ls: every tensor and object with dtype, shape and size.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/entries.h"
#include "cli/run_steps.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct LsOptions {
  std::string path;
  std::string pattern;
};

Json tensor_json(const TensorFacts& tensor) {
  return {{"name", tensor.name},   {"listed", tensor.listed},        {"dtype", tensor.dtype},
          {"shape", tensor.shape}, {"kind", kind_name(tensor.kind)}, {"rank", tensor.rank},
          {"bytes", tensor.bytes}, {"chunks", tensor.chunks}};
}

Json object_json(const ObjectFacts& object) {
  return {{"name", object.name},
          {"listed", object.listed},
          {"content_type", object.content_type},
          {"rank", object.rank},
          {"bytes", object.bytes}};
}

int print_entries(const Session& session, const LsOptions& options, const Checkpoint& checkpoint) {
  Json out{{"schema", 1},
           {"path", options.path},
           {"tensors", Json::array()},
           {"objects", Json::array()}};
  Table table({false, false, true, false});
  uint64_t bytes = 0;
  bool any = false;
  for (const TensorFacts& tensor : list_tensors(checkpoint)) {
    if (!name_matches(options.pattern, tensor.listed)) continue;
    any = true;
    if (session.options.json) out["tensors"].push_back(tensor_json(tensor));
    table.add({tensor.dtype, shape_text(tensor.shape), size_text(tensor.bytes),
               printable(tensor.listed)});
    bytes += tensor.bytes;
  }
  for (const ObjectFacts& object : list_objects(checkpoint)) {
    if (!name_matches(options.pattern, object.listed)) continue;
    any = true;
    if (session.options.json) out["objects"].push_back(object_json(object));
    table.add({"object", printable(object.content_type), size_text(object.bytes),
               printable(object.listed)});
    bytes += object.bytes;
  }
  if (!any) require_match(options.pattern, "tensor or object", options.path);
  if (session.options.json) {
    out["bytes"] = bytes;
    Session::print_line(out.dump(-1, ' ', false, Json::error_handler_t::replace));
    return kExitFine;
  }
  Session::print(table.text());
  return kExitFine;
}

int ls(Session& session, const LsOptions& options) {
  Checkpoint checkpoint;
  try {
    checkpoint = session.open(options.path);
  } catch (const Failure& failure) {
    if (!options.pattern.empty() || !print_steps(session, options.path, failure)) throw;
    return kExitFine;
  }
  return print_entries(session, options, checkpoint);
}

}  // namespace

void add_ls(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand("ls", "List tensors and objects, or the steps of a run");
  auto options = std::make_shared<LsOptions>();
  command->add_option("PATH", options->path, "Checkpoint, or directory of a run")->required();
  command->add_option("PATTERN", options->pattern,
                      "Only names like this: '*' is any text, '?' one character");
  add_as_option(*command, session);
  add_step_option(*command, session);
  add_shared_options(*command, session);
  command->callback(
      [&session, run, options] { *run = [&session, options] { return ls(session, *options); }; });
}

}  // namespace shardwright::cli
