// SPDX-License-Identifier: Apache-2.0
//
// Runs the behaviour contract of the bindings over the C interface: contract_runner contract.json
// [FOLDER]. A line per scenario, at the end "N passed, N failed, N skipped".
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "tests/bindings/c/interpreter.h"

namespace {

using contract::Failed;
using contract::Json;
using contract::matches;
using contract::member;
using contract::text_of;

// "" when the error has these details and no others; else which is wrong.
std::string check_details(const Json& wanted, const Failed& failed) {
  const std::string found = Json(failed.details).dump() + " of: " + failed.message;
  for (const auto& [key, value] : wanted.items()) {
    const auto detail = failed.details.find(key);
    if (detail == failed.details.end() || !matches(text_of(value), detail->second))
      return "detail " + key + " is not " + value.dump() + " in " + found;
  }
  for (const auto& [key, value] : failed.details) {
    if (!wanted.contains(key)) return "detail " + key + " was not expected, in " + found;
  }
  return "";
}

// "" when the scenario held; else what did not.
std::string check_end(const Json& scenario, const Failed* failed) {
  const std::string wanted = text_of(scenario, "code");
  const std::string found = failed != nullptr ? shw_status_name(failed->status) : "OK";
  if (wanted != found)
    return wanted + " was expected, got " + found +
           (failed != nullptr ? ": " + failed->message : "");
  if (failed == nullptr) return "";
  const std::string problem = check_details(scenario.value("details", Json::object()), *failed);
  if (!problem.empty()) return problem;
  for (const Json& text : member(scenario, "says")) {
    if (failed->message.find(text_of(text)) == std::string::npos)
      return "the message lacks '" + text_of(text) + "': " + failed->message;
  }
  return "";
}

std::string run_steps(const Json& scenario, contract::Interpreter* interpreter) {
  const Json& steps = scenario["steps"];
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    try {
      interpreter->run(steps[i]);
    } catch (const Failed& failed) {
      if (last) return check_end(scenario, &failed);
      return "step " + std::to_string(i) + " (" + text_of(steps[i], "op") + "): " + failed.message;
    }
  }
  const std::string problem = check_end(scenario, nullptr);
  if (problem.empty()) interpreter->check_digests(member(scenario, "digest"));
  return problem;
}

std::string run_scenario(const Json& scenario, shw_context* context,
                         const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  std::string problem;
  try {
    contract::Interpreter interpreter(context, directory);
    problem = run_steps(scenario, &interpreter);
  } catch (const Failed& failed) {
    problem = failed.message;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  return problem;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: contract_runner contract.json [FOLDER]\n";
    return 2;
  }
  const Json contract = Json::parse(std::ifstream(argv[1]));
  shw_context* context = nullptr;
  if (shw_context_create(nullptr, &context, nullptr) != SHW_OK) return 1;
  const auto scratch =
      std::filesystem::temp_directory_path() / ("c-contract-" + std::to_string(getpid()));
  int passed = 0, failed = 0, skipped = 0;
  for (const Json& scenario : contract["scenarios"]) {
    const std::string name = text_of(scenario, "name");
    const std::string reason = text_of(member(scenario, "skip"), "c");
    if (!reason.empty()) {
      std::cout << "skipped: " << name << ": " << reason << "\n";
      ++skipped;
      continue;
    }
    const std::string problem = run_scenario(
        scenario, context, argc == 3 ? std::filesystem::path(argv[2]) / name : scratch);
    if (argc == 2) std::filesystem::remove_all(scratch);
    std::cout << (problem.empty() ? "passed: " : "FAILED: ") << name
              << (problem.empty() ? "" : ": ") << problem << "\n";
    ++(problem.empty() ? passed : failed);
  }
  shw_context_release(context);
  std::cout << passed << " passed, " << failed << " failed, " << skipped << " skipped\n";
  return failed == 0 ? 0 : 1;
}
