// SPDX-License-Identifier: Apache-2.0
//
// What all commands share: the options in front of and behind the command's name, the library's
// context, and opening a checkpoint. One session per process. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/handles.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace shardwright::cli {

struct SharedOptions {
  bool json = false;
  uint32_t threads = 0;              // 0 = cores up to 8
  uint64_t memory_bytes = 0;         // staging memory, 0 = the library's default
  int32_t format = SHW_FORMAT_AUTO;  // that checkpoints are opened as
  int64_t step = -1;                 // of the run that a path names; -1 = the path is a checkpoint
};

class Session {
 public:
  SharedOptions options;

  // Made at the first call, lives as long as the session.
  shw_context* context();
  Checkpoint open(const std::string& path);

  // Writes to stdout; a broken pipe or a full disk is a Failure.
  static void print(std::string_view text);
  static void print_line(std::string_view text);

 private:
  Context context_;
};

// Each adds one command to the application. When the command was given, *run gives its exit code.
using Run = std::function<int()>;
void add_info(CLI::App& app, Session& session, Run* run);
void add_ls(CLI::App& app, Session& session, Run* run);
void add_tree(CLI::App& app, Session& session, Run* run);
void add_show(CLI::App& app, Session& session, Run* run);
void add_verify(CLI::App& app, Session& session, Run* run);
void add_scan(CLI::App& app, Session& session, Run* run);
void add_digest(CLI::App& app, Session& session, Run* run);
void add_diff(CLI::App& app, Session& session, Run* run);
void add_plan(CLI::App& app, Session& session, Run* run);
void add_convert(CLI::App& app, Session& session, Run* run);
void add_reshard(CLI::App& app, Session& session, Run* run);
void add_remove(CLI::App& app, Session& session, Run* run);
void add_gc(CLI::App& app, Session& session, Run* run);
void add_version(CLI::App& app, Session& session, Run* run);

// Adds --as, of commands that open a checkpoint.
void add_as_option(CLI::App& command, Session& session);
// Adds --step, of commands whose path may be a run's directory.
void add_step_option(CLI::App& command, Session& session);
// Adds --json, --threads and --memory.
void add_shared_options(CLI::App& command, Session& session);

}  // namespace shardwright::cli
