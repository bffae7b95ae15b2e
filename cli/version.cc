// SPDX-License-Identifier: Apache-2.0
//
// shardwright version: release, interface and how the library was built.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/session.h"

namespace shardwright::cli {
namespace {

int version(const Session& session) {
  uint32_t major = 0;
  uint32_t minor = 0;
  shw_abi_version(&major, &minor);
  const auto build = nlohmann::ordered_json::parse(shw_build_info(), nullptr, false);
  if (session.options.json) {
    const nlohmann::ordered_json out{
        {"schema", 1},
        {"version", shw_version_string()},
        {"interface", fmt::format("{}.{}", major, minor)},
        {"build", build.is_discarded() ? nlohmann::ordered_json() : build}};
    Session::print_line(out.dump());
    return kExitFine;
  }
  Session::print_line(
      fmt::format("shardwright {}, interface {}.{}", shw_version_string(), major, minor));
  if (build.is_object()) {
    for (const auto& [key, value] : build.items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      Session::print_line(fmt::format("  {:<12}{}", key, text));
    }
  }
  return kExitFine;
}

}  // namespace

void add_version(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand("version", "Release, interface and build of the library");
  command->add_flag("--json", session.options.json, "Print one JSON object instead of text");
  command->callback([&session, run] { *run = [&session] { return version(session); }; });
}

}  // namespace shardwright::cli
