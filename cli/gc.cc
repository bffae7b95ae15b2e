// SPDX-License-Identifier: Apache-2.0
//
// shardwright gc: removes what crashed saves left behind. A dry run unless --apply is given.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/report_text.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNanosecondsPerHour = 3600e9;

struct GcOptions {
  std::string path;
  bool apply = false;
  double grace_hours = 24;
};

int gc(Session& session, const GcOptions& options) {
  // 0 means the default to the library, so "no grace" is negative.
  const auto grace_ns = options.grace_hours == 0
                            ? int64_t{-1}
                            : static_cast<int64_t>(options.grace_hours * kNanosecondsPerHour);
  const Report report = made_by<shw_report, shw_report_release>(
      [&](shw_report** out, shw_error** error) {
        return shw_checkpoint_gc(session.context(), nullptr, options.path.c_str(), grace_ns,
                                 options.apply ? SHW_GC_APPLY : 0, out, error);
      },
      "look for unused generations", Place::of_path(options.path));
  Json json = json_of(report);
  if (session.options.json) {
    json["path"] = options.path;
    json["applied"] = options.apply;
    print_json(json);
    return kExitFine;
  }
  print_removed(json, options.apply);
  uint64_t total = 0;
  for (const Json& removed : json["removed"]) total += removed["bytes"].get<uint64_t>();
  Session::print_line(
      fmt::format("{}, {}", plural(json["removed"].size(), "generation"), size_text(total)));
  print_notes(json);
  if (!options.apply && !json["removed"].empty()) {
    Session::print_line(
        fmt::format("to remove: shardwright gc --apply {}", shell_word(options.path)));
  }
  return kExitFine;
}

}  // namespace

void add_gc(CLI::App& app, Session& session, Run* run) {
  CLI::App* command =
      app.add_subcommand("gc", "Remove generations that no checkpoint names (dry run first)");
  auto options = std::make_shared<GcOptions>();
  command->add_option("PATH", options->path, "Checkpoint")->required();
  command->add_flag("--apply", options->apply, "Remove; without it only say what would go");
  command->add_option("--grace-hours", options->grace_hours, "Younger generations stay (24)")
      ->check(CLI::Range(0.0, 1e6));
  add_shared_options(*command, session);
  command->callback(
      [&session, run, options] { *run = [&session, options] { return gc(session, *options); }; });
}

}  // namespace shardwright::cli
