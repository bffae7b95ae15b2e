// SPDX-License-Identifier: Apache-2.0
//
// shardwright remove: takes entries out of a checkpoint of torch DCP or Megatron, with the files
// that hold nothing else. A dry run unless --apply is given.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/report_text.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RemoveOptions {
  std::string path;
  std::string prefix;
  bool whole_parts = false;
  bool apply = false;
};

void print_removal(const RemoveOptions& options, const Json& json) {
  print_removed(json, options.apply);
  const auto entries = json["removed"].size();
  Session::print_line(fmt::format("{} {}, and {} of {} that nothing else lies in",
                                  count_text(entries), entries == 1 ? "entry" : "entries",
                                  plural(json["files"].get<uint64_t>(), "file"),
                                  size_text(json["bytes_files"].get<uint64_t>())));
  print_notes(json);
  if (!options.apply) {
    Session::print_line(fmt::format("to remove: shardwright remove --apply {}--prefix {} {}",
                                    options.whole_parts ? "--whole-parts " : "",
                                    shell_word(options.prefix), shell_word(options.path)));
  }
}

int remove(Session& session, const RemoveOptions& options) {
  const uint64_t flags =
      (options.apply ? SHW_REMOVE_APPLY : 0U) | (options.whole_parts ? SHW_REMOVE_WHOLE_PARTS : 0U);
  const Report report = made_by<shw_report, shw_report_release>(
      [&](shw_report** out, shw_error** error) {
        return shw_checkpoint_remove(session.context(), nullptr, options.path.c_str(),
                                     options.prefix.c_str(), flags, out, error);
      },
      "remove entries of the checkpoint", Place::of_path(options.path));
  Json json = json_of(report);
  if (session.options.json) {
    json["path"] = options.path;
    json["applied"] = options.apply;
    print_json(json);
  } else {
    print_removal(options, json);
  }
  return kExitFine;
}

}  // namespace

void add_remove(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand(
      "remove",
      "Take tensors and objects out of a checkpoint of torch DCP or Megatron (dry run first)");
  auto options = std::make_shared<RemoveOptions>();
  command->add_option("PATH", options->path, "Checkpoint")->required();
  command->add_option("--prefix", options->prefix, "What their names begin with")->required();
  command->add_flag(
      "--whole-parts", options->whole_parts,
      "Names end behind the prefix, or go on with '.' or '/': layer1 without layer10");
  command->add_flag("--apply", options->apply, "Remove; without it only say what would go");
  add_shared_options(*command, session);
  command->callback([&session, run, options] {
    *run = [&session, options] { return remove(session, *options); };
  });
}

}  // namespace shardwright::cli
