// SPDX-License-Identifier: Apache-2.0
//
// shardwright verify: is every byte where it should be? Without --deep sizes and indexes only, and
// it says so.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/report_text.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyOptions {
  std::string path;
  bool deep = false;
};

std::string damage_text(const Json& damage) {
  std::string text = fmt::format("  {}\n", printable(damage["message"].get<std::string>()));
  const auto add = [&](std::string_view label, const Json& value) {
    if (value.is_string() && !value.get<std::string>().empty()) {
      text += fmt::format("    {:<7}{}\n", label, printable(value.get<std::string>()));
    }
  };
  add("tensor", damage["tensor"]);
  add("box", damage["box"]);
  add("file", damage["file"]);
  const auto offset = damage["offset"].get<uint64_t>();
  const auto length = damage["length"].get<uint64_t>();
  if (length > 0) text += fmt::format("    {:<7}{} to {}\n", "bytes", offset, offset + length);
  return text;
}

int verify(Session& session, const VerifyOptions& options) {
  const Checkpoint checkpoint = session.open(options.path);
  const uint64_t flags = options.deep ? SHW_VERIFY_DEEP : 0;
  const Report report = made_by<shw_report, shw_report_release>(
      [&](shw_report** out, shw_error** error) {
        return shw_checkpoint_find_damage(checkpoint.get(), flags, out, error);
      },
      "verify the checkpoint", Place::of_checkpoint(options.path));
  Json json = json_of(report);
  const Json damage = json["damage"];
  const int code = damage.empty() ? kExitFine : kExitDamage;
  if (session.options.json) {
    json["path"] = options.path;
    json["whole"] = damage.empty();
    print_json(json);
    return code;
  }
  const auto bytes = json["bytes_read"].get<uint64_t>();
  if (damage.empty()) {
    const bool digests = json["digests"].get<bool>() || json.contains("checksums");
    Session::print_line(options.deep
                            ? fmt::format("whole{}: {} read{}: {} and {}",
                                          digests ? "" : " as far as sizes and indexes tell",
                                          size_text(bytes), digests ? " and checked" : "",
                                          plural(json["chunks"].get<uint64_t>(), "chunk"),
                                          plural(json["objects"].get<uint64_t>(), "object"))
                            : std::string("whole as far as sizes and indexes tell"));
  } else {
    Session::print_line(fmt::format("damaged: {}", plural(damage.size(), "finding")));
    for (const Json& finding : damage) Session::print(damage_text(finding));
  }
  print_notes(json);
  return code;
}

}  // namespace

void add_verify(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand("verify", "Check a checkpoint for damage");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("PATH", options->path, "Checkpoint")->required();
  command->add_flag("--deep", options->deep, "Read and check every byte, padding included");
  add_as_option(*command, session);
  add_step_option(*command, session);
  add_shared_options(*command, session);
  command->callback([&session, run, options] {
    *run = [&session, options] { return verify(session, *options); };
  });
}

}  // namespace shardwright::cli
