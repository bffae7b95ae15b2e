// SPDX-License-Identifier: Apache-2.0
#include "cli/run_steps.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

// Steps of a run; nothing when there are none.
Buffer list_steps(Session& session, const std::string& path) {
  shw_buffer* steps = nullptr;
  shw_error* error = nullptr;
  const shw_status status =
      shw_checkpoint_list_steps(session.context(), nullptr, path.c_str(), &steps, &error);
  const Error owned(error);
  return Buffer(status == SHW_OK ? steps : nullptr);
}

std::string step_text(const Json& run, const Json& step) {
  std::string text = step["state"];
  if (step["name"] == run["newest_whole"]) text += ", newest whole";
  if (step["name"] == run["tracked"]) text += ", latest by the tracker";
  return text;
}

std::string run_text(const std::string& path, const Json& run) {
  Table table({false, false, false});
  for (const Json& step : run["steps"]) {
    table.add({"  " + step["name"].get<std::string>(), step_text(run, step),
               printable(step["message"].get<std::string>())});
  }
  const std::string newest = run["newest_whole"];
  std::string text =
      fmt::format("{}\n{}{}\n", printable(path), table.text(),
                  newest.empty() ? "no step is whole" : "newest whole step: " + newest);
  const std::string tracker = run["tracker"];
  const std::string tracked = run["tracked"];
  if (tracker == "release") {
    text += "the tracker names the directory release\n";
  } else if (!tracker.empty() && tracked.empty()) {
    text += fmt::format(
        "note: latest_checkpointed_iteration.txt names iteration {}, which is not here\n",
        printable(tracker));
  } else if (!tracked.empty() && tracked != newest) {
    text += fmt::format("note: Megatron goes on from {}, which is not the newest whole step\n",
                        tracked);
  }
  return text;
}

}  // namespace

bool print_steps(Session& session, const std::string& path, const Failure& failure) {
  // A directory that is no checkpoint may hold the steps of a run; a tracker makes it one that no
  // format reads.
  if (session.options.step >= 0) return false;
  if (failure.status != SHW_NOT_FOUND && failure.status != SHW_INVALID_ARGUMENT &&
      failure.status != SHW_UNIMPLEMENTED)
    return false;
  const Buffer steps = list_steps(session, path);
  if (steps == nullptr) return false;
  Json run = Json::parse(text_of(steps));
  if (session.options.json) {
    run["path"] = path;
    Session::print_line(run.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    Session::print(run_text(path, run));
  }
  return true;
}

std::string path_of_step(Session& session, const std::string& run, int64_t number) {
  const Buffer steps = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_checkpoint_list_steps(session.context(), nullptr, run.c_str(), out, error);
      },
      "look for the steps of the run", Place::of_path(run));
  std::string names;
  const Json listed = Json::parse(text_of(steps));
  for (const Json& step : listed["steps"]) {
    const std::string name = step["name"];
    if (step["step"] == number)
      return fmt::format("{}{}{}", run, run.ends_with('/') ? "" : "/", name);
    names += (names.empty() ? "" : ", ") + name;
  }
  Failure failure;
  failure.status = SHW_NOT_FOUND;
  failure.what = fmt::format("the run has no step {}", number);
  failure.where = run;
  failure.cause = names.empty() ? "it has no steps" : "its steps are " + names;
  failure.next = "shardwright info " + shell_word(run);
  throw failure;
}

}  // namespace shardwright::cli
