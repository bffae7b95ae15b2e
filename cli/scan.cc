// SPDX-License-Identifier: Apache-2.0
//
// shardwright scan: what would the pickles of a place import and call? Nothing of them is run.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ScanOptions {
  std::string path;
  std::string target;
};

Json parsed(const Buffer& buffer) {
  return Json::parse(text_of(buffer));
}

std::string place_of(const Json& place) {
  const std::string record = place["record"];
  return printable(fmt::format("{}{}{} at {}", place["file"].get<std::string>(),
                               record.empty() ? "" : ", ", record,
                               place["offset"].get<uint64_t>()));
}

std::string uses_of(const Json& global) {
  const auto calls = global["calls"].get<uint64_t>();
  const auto instances = global["instances"].get<uint64_t>();
  std::string text;
  if (calls > 0) text += " called " + plural(calls, "time");
  if (instances > 0)
    text += fmt::format("{} {} made", text.empty() ? "" : ",", plural(instances, "object"));
  return text.empty() ? " named only" : text;
}

std::string scan_text(const Json& scan) {
  std::string text =
      fmt::format("{} in {}: {} not known\n", plural(scan["pickles"].get<uint64_t>(), "pickle"),
                  plural(scan["files"].get<uint64_t>(), "file"),
                  plural(scan["unknown"].get<uint64_t>(), "import"));
  for (const Json& global : scan["globals"]) {
    const std::string name = global["name"];
    text +=
        printable(fmt::format("  {:<8}{}{}{}", global["known"].get<bool>() ? "known" : "UNKNOWN",
                              global["module"].get<std::string>(), name.empty() ? "" : ".", name)) +
        ":" + uses_of(global) + "  (" + place_of(global) + ")\n";
  }
  for (const Json& failure : scan["failures"])
    text += "  UNREAD  " + place_of(failure) + ": " +
            printable(failure["message"].get<std::string>()) + "\n";
  for (const Json& note : scan["notes"])
    text += "  note: " + printable(note.get<std::string>()) + "\n";
  return text;
}

std::string clean_text(const Json& cleaning) {
  std::string text =
      "clean metadata written to " + printable(cleaning["target"].get<std::string>()) + "\n";
  for (const Json& file : cleaning["files"]) {
    text += fmt::format("  {}: {} replaced by None\n", printable(file["file"].get<std::string>()),
                        plural(file["replaced"].get<uint64_t>(), "value"));
    for (const Json& name : file["left_out"])
      text += "    left out: " + printable(name.get<std::string>()) + "\n";
  }
  return text;
}

int scan(Session& session, const ScanOptions& options) {
  const Buffer found = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_scan_pickles(session.context(), nullptr, options.path.c_str(), out, error);
      },
      "scan the pickles", Place::of_path(options.path));
  Json json = parsed(found);
  std::string text = scan_text(json);
  if (!options.target.empty()) {
    const Buffer cleaned = made_by<shw_buffer, shw_buffer_release>(
        [&](shw_buffer** out, shw_error** error) {
          return shw_clean_pickles(session.context(), nullptr, options.path.c_str(), nullptr,
                                   options.target.c_str(), out, error);
        },
        "write clean metadata", Place(options.path));
    json["sanitized"] = parsed(cleaned);
    text += clean_text(json["sanitized"]);
  }
  if (session.options.json) {
    Session::print_line(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    Session::print(text);
  }
  if (json["unknown"].get<uint64_t>() > 0) return kExitRefused;
  return json["unread"].get<uint64_t>() > 0 ? kExitDamage : kExitFine;
}

}  // namespace

void add_scan(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand(
      "scan", "List what pickles would import and call; exit code 4 when something is not known");
  auto options = std::make_shared<ScanOptions>();
  command->add_option("PATH", options->path, "Checkpoint, file or directory")->required();
  command->add_option("--sanitize", options->target,
                      "Write metadata without what is not known there: a new directory, or a new "
                      "file for a file");
  add_shared_options(*command, session);
  command->callback(
      [&session, run, options] { *run = [&session, options] { return scan(session, *options); }; });
}

}  // namespace shardwright::cli
