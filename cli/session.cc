// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/run_steps.h"

namespace shardwright::cli {

shw_context* Session::context() {
  if (context_ == nullptr) {
    shw_context_options wanted = SHW_CONTEXT_OPTIONS_INIT;
    wanted.threads = options.threads;
    wanted.memory_budget = options.memory_bytes;
    context_ = made_by<shw_context, shw_context_release>(
        [&](shw_context** out, shw_error** error) {
          return shw_context_create(&wanted, out, error);
        },
        "start the library", "");
  }
  return context_.get();
}

Checkpoint Session::open(const std::string& path) {
  const std::string at = options.step < 0 ? path : path_of_step(*this, path, options.step);
  shw_checkpoint_options how = SHW_CHECKPOINT_OPTIONS_INIT;
  how.format = options.format;
  return made_by<shw_checkpoint, shw_checkpoint_release>(
      [&](shw_checkpoint** out, shw_error** error) {
        return shw_checkpoint_open(context(), nullptr, at.c_str(), &how, out, error);
      },
      "open the checkpoint", Place::of_path(at));
}

void Session::print(std::string_view text) {
  const size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return;
  Failure failure;
  failure.status = SHW_UNKNOWN;
  failure.what = "cannot write the output";
  failure.cause = std::strerror(errno);
  failure.next = "check the disk or the program that reads the output";
  throw failure;
}

void Session::print_line(std::string_view text) {
  print(std::string(text) + "\n");
}

void add_as_option(CLI::App& command, Session& session) {
  const std::map<std::string, int32_t> formats = {{"native", SHW_FORMAT_NATIVE},
                                                  {"megatron", SHW_FORMAT_MEGATRON},
                                                  {"safetensors", SHW_FORMAT_SAFETENSORS},
                                                  {"torch-dcp", SHW_FORMAT_TORCH_DCP},
                                                  {"torch_dcp", SHW_FORMAT_TORCH_DCP}};
  command
      .add_option("--as", session.options.format,
                  "Format to open it as: native, megatron, safetensors or torch-dcp")
      ->transform(CLI::CheckedTransformer(formats));
}

void add_step_option(CLI::App& command, Session& session) {
  command
      .add_option("--step,--iteration", session.options.step,
                  "Number of the step, where PATH is the directory of a run")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()));
}

void add_shared_options(CLI::App& command, Session& session) {
  command.add_flag("--json", session.options.json, "Print one JSON object instead of text");
  command.add_option("--threads", session.options.threads, "Worker threads (0 = cores, at most 8)")
      ->check(CLI::Range(0, 1024));
  command
      .add_option("--memory,--mem", session.options.memory_bytes,
                  "Staging memory, such as 512MiB (0 = 256 MiB)")
      ->transform(CLI::AsSizeValue(false));
}

}  // namespace shardwright::cli
