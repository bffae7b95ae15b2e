// SPDX-License-Identifier: Apache-2.0
//
// shardwright: looks at, checks and tidies checkpoints from a shell. Every command is one file; all
// of them use the C interface alone. Data goes to stdout, everything else to stderr. Exit codes: 0
// fine, 1 damage or a difference was found, 2 usage or could not run, 3 interrupted, 4 refused for
// safety.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "cli/session.h"

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
    "  shardwright plan load CKPT --to mesh.json   what loading on another mesh would cost\n"
    "\nExit codes: 0 fine, 1 damage found, 2 usage or could not run, 3 interrupted, 4 refused for "
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

int run(int argument_count, char** arguments) {
  CLI::App app("Looks at, checks and tidies training checkpoints.", "shardwright");
  Session session;
  Run command;
  app.require_subcommand(1);
  app.footer(kExamples);
  app.set_version_flag("--version",
                       [] { return std::string("shardwright ") + shw_version_string(); });
  for (const auto add : {add_info, add_ls, add_tree, add_show, add_verify, add_digest, add_plan,
                         add_gc, add_version}) {
    add(app, session, &command);
  }
  try {
    app.parse(argument_count, arguments);
    return command();
  } catch (const CLI::Success& answer) {
    return app.exit(answer);  // --help, --version
  } catch (const CLI::ParseError& error) {
    Failure failure;
    failure.what = "the command line was not understood";
    failure.cause = error.what();
    failure.next = "shardwright --help";
    failure.print();
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
