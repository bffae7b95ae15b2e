// SPDX-License-Identifier: Apache-2.0
//
// shardwright info: a checkpoint as a whole, or the steps of a run.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_steps.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string field(std::string_view label, std::string_view value) {
  return fmt::format("  {:<11} {}\n", label, printable(value));
}

std::string dtypes_text(const Json& by_dtype) {
  std::string text;
  for (const auto& [name, bytes] : by_dtype.items()) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", name, size_text(bytes.get<uint64_t>()));
  }
  return text.empty() ? "none" : text;
}

std::string checkpoint_text(const std::string& path, const Json& info) {
  const Json& counts = info["counts"];
  const Json& bytes = info["bytes"];
  const std::string generation = info["generation"];
  std::string text = printable(path) + "\n";
  text += field("format", info["format"].get<std::string>() +
                              (generation.empty() ? "" : ", generation " + generation));
  const std::string created = info["created"];
  // Who saved it is known where the time is.
  if (!created.empty()) {
    text += field("saved", fmt::format("{} by {}", created,
                                       plural(info["world_size"].get<uint64_t>(), "rank")));
  }
  text +=
      field("tensors", fmt::format("{} in {}, {}", count_text(counts["tensors"].get<uint64_t>()),
                                   plural(counts["chunks"].get<uint64_t>(), "chunk"),
                                   size_text(bytes["tensors"].get<uint64_t>())));
  text += field("dtypes", dtypes_text(info["bytes_by_dtype"]));
  text += field("objects", fmt::format("{}, {}", count_text(counts["objects"].get<uint64_t>()),
                                       size_text(bytes["objects"].get<uint64_t>())));
  text += field("files", fmt::format("{}, {}", count_text(counts["files"].get<uint64_t>()),
                                     size_text(bytes["files"].get<uint64_t>())));
  text += field("digests", info["digests"].get<bool>() ? "on"
                           : info.contains("checksums")
                               ? "off: checksums are compared where records are read whole"
                               : "off: payload cannot be checked");
  for (const auto& [key, value] : info["metadata"].items()) {
    text += field("metadata", fmt::format("{} = {}", key, value.get<std::string>()));
  }
  for (const Json& name : info["incomplete"])
    text += field("incomplete", fmt::format("{} (elements are missing)", name.get<std::string>()));
  for (const Json& note : info["notes"]) text += field("note", note.get<std::string>());
  return text;
}

int print_checkpoint(const Session& session, const std::string& path,
                     const Checkpoint& checkpoint) {
  const Buffer buffer = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_checkpoint_info(checkpoint.get(), out, error);
      },
      "describe the checkpoint", Place::of_checkpoint(path));
  Json info = Json::parse(text_of(buffer));
  // The entries have a command of their own, ls.
  info.erase("tensors");
  info.erase("objects");
  if (session.options.json) {
    info["path"] = path;
    Session::print_line(dumped(info));
  } else {
    Session::print(checkpoint_text(path, info));
  }
  return kExitFine;
}

int info(Session& session, const std::string& path) {
  try {
    return print_checkpoint(session, path, session.open(path));
  } catch (const Failure& failure) {
    // A directory that is no checkpoint may hold the steps of a run; else the first failure is the
    // one to show.
    if (!print_steps(session, path, failure)) throw;
    return kExitFine;
  }
}

}  // namespace

void add_info(CLI::App& app, Session& session, Run* run) {
  CLI::App* command =
      app.add_subcommand("info", "Describe a checkpoint, or list the steps of a run");
  auto path = std::make_shared<std::string>();
  command
      ->add_option("PATH", *path,
                   "Checkpoint, or directory with step-00000100/ or iter_0000100/ directories")
      ->required();
  add_as_option(*command, session);
  add_step_option(*command, session);
  add_shared_options(*command, session);
  command->callback(
      [&session, run, path] { *run = [&session, path] { return info(session, *path); }; });
}

}  // namespace shardwright::cli
