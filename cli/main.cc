// SPDX-License-Identifier: Apache-2.0
//
// shardwright: looks at, checks and tidies checkpoints from a shell. Every command is one file; all
// of them use the C interface alone. Data goes to stdout, everything else to stderr. Exit codes: 0
// fine, 1 damage or a difference was found, 2 usage or could not run, 3 interrupted, 4 refused for
// safety.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

constexpr char kExamples[] =
    "\nExamples:\n"
    "  shardwright info /runs/llm/step-00001000    what is in a checkpoint\n"
    "  shardwright info /runs/llm                  which steps a run has, and the newest whole "
    "one\n"
    "  shardwright show CKPT 'layers.0.w[0:4, :]'  numbers of a slice\n"
    "  shardwright verify --deep CKPT              read and check every byte\n"
    "  shardwright digest CKPT                     one line per tensor, equal for every mesh and "
    "format\n"
    "  shardwright diff CKPT OTHER                 what two checkpoints hold differently\n"
    "  shardwright scan CKPT                       what its pickles would import and call\n"
    "  shardwright plan load CKPT --to mesh.json   what loading on another mesh would cost\n"
    "  shardwright convert CKPT DIR --format safetensors   files that other libraries load\n"
    "  shardwright convert CKPT DIR --format torch-dcp     what torch.distributed.checkpoint "
    "loads\n"
    "\nExit codes: 0 fine, 1 damage or a difference found, 2 usage or could not run, 3 "
    "interrupted, 4 refused for "
    "safety.";

// Only calls that are allowed in a signal handler.
void interrupted(int) {
  constexpr char kText[] = "error: interrupted\nnext: run the same command again; it starts over\n";
  const ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  ::_exit(written < 0 ? kExitFailed : kExitInterrupted);
}

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = interrupted;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// The command that the arguments name, as far as they do.
struct NamedCommand {
  const CLI::App* command;
  std::string words;    // "shardwright plan"
  int unknown = 0;      // place of the word where a command should stand and none does; 0 = none
  bool missing = true;  // a command should stand behind the words
};

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

NamedCommand named_command(const CLI::App& app, int argument_count, char** arguments) {
  NamedCommand named{&app, app.get_name()};
  for (int i = 1; i < argument_count; ++i) {
    const std::string word = arguments[i];
    const std::vector<std::string> names = commands_of(*named.command);
    if (names.empty()) break;
    if (word.starts_with('-')) {
      const CLI::Option* option = named.command->get_option_no_throw(word);
      if (option != nullptr && option->get_items_expected_max() > 0) ++i;  // its value
    } else if (std::find(names.begin(), names.end(), word) != names.end()) {
      named.command = named.command->get_subcommand(word);
      named.words += " " + word;
    } else {
      named.unknown = i;
      return named;
    }
  }
  named.missing = !commands_of(*named.command).empty();
  return named;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

// What the library of the options found wrong, with a command that helps.
Failure explain(const CLI::App& app, const CLI::ParseError& error, int argument_count,
                char** arguments) {
  const NamedCommand named = named_command(app, argument_count, arguments);
  Failure failure;
  failure.next = named.words + " --help";
  const std::vector<std::string> names = commands_of(*named.command);
  if (named.unknown == 0 && !named.missing) {
    failure.what = "the command line was not understood";
    failure.cause = error.what();
    return failure;
  }
  failure.cause = "the commands of " + named.words + " are " + joined(names, ", ");
  if (named.unknown == 0) {
    failure.what = "no command was given";
    return failure;
  }
  const std::string word = arguments[named.unknown];
  failure.what = "there is no command " + shell_word(word);
  const std::string nearest = nearest_word(word, names);
  if (nearest.empty()) return failure;
  std::vector<std::string> corrected{app.get_name()};
  for (int i = 1; i < argument_count; ++i)
    corrected.push_back(i == named.unknown ? nearest : shell_word(arguments[i]));
  failure.next = joined(corrected, " ");
  return failure;
}

int run(int argument_count, char** arguments) {
  CLI::App app("Looks at, checks and tidies training checkpoints.", "shardwright");
  Session session;
  Run command;
  app.require_subcommand(1);
  app.footer(kExamples);
  add_shared_options(app, session);
  app.set_version_flag("--version",
                       [] { return std::string("shardwright ") + shw_version_string(); });
  for (const auto add :
       {add_info, add_ls, add_tree, add_show, add_verify, add_digest, add_diff, add_scan, add_plan,
        add_convert, add_reshard, add_remove, add_gc, add_version}) {
    add(app, session, &command);
  }
  try {
    app.parse(argument_count, arguments);
    return command();
  } catch (const CLI::Success& answer) {
    return app.exit(answer);  // --help, --version
  } catch (const CLI::ParseError& error) {
    explain(app, error, argument_count, arguments).print();
    return kExitFailed;
  } catch (const Failure& failure) {
    failure.print();
    return failure.exit_code();
  }
}

}  // namespace
}  // namespace shardwright::cli

int main(int argument_count, char** arguments) {
  shardwright::cli::catch_interrupts();
  try {
    return shardwright::cli::run(argument_count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr,
                 "error: %s\nnext: report this with the output of: shardwright version --json\n",
                 error.what());
    return shardwright::cli::kExitFailed;
  }
}
