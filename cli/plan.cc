// SPDX-License-Identifier: Apache-2.0
//
// shardwright plan: what a save or load would do and cost, and a look at plan buffers.
#include "cli/plan.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace shardwright::cli {
namespace {

constexpr char kEstimateFooter[] =
    "\nSOURCE is a checkpoint, or a JSON description of a job (docs/formats/mesh.md; '-' reads\n"
    "standard input). MESH.json lays the tensors of SOURCE out on another mesh, by listing them "
    "or\n"
    "by rules such as {\"match\": \"*\", \"placements\": {\"dp\": \"Shard(0)\"}}.";

using Words = std::vector<std::pair<std::string, int32_t>>;

Words owners() {
  return {{"balanced", SHW_OWNER_BALANCED},
          {"lowest_rank", SHW_OWNER_LOWEST_RANK},
          {"exact", SHW_OWNER_EXACT}};
}

Words presets() {
  return {{"native", SHW_PRESET_NATIVE},
          {"hyperparallel", SHW_PRESET_HYPERPARALLEL},
          {"torch", SHW_PRESET_TORCH},
          {"megatron", SHW_PRESET_MEGATRON}};
}

Words exchanges() {
  return {{"off", SHW_ESTIMATE_EXCHANGE_OFF}, {"always", SHW_ESTIMATE_EXCHANGE_ALWAYS}};
}

void add_estimate(CLI::App& plan, Session& session, Run* run, bool load) {
  CLI::App* command = plan.add_subcommand(load ? "load" : "save",
                                          load ? "Estimate a load before anything is read"
                                               : "Estimate a save before anything is written");
  auto options = std::make_shared<PlanEstimateOptions>();
  options->load = load;
  command->add_option("SOURCE", options->source, "Checkpoint or description")->required();
  command->add_option("--to", options->target,
                      load ? "Description of the job that loads (SOURCE's own)"
                           : "Description of another job that saves these tensors (SOURCE's own)");
  command->add_option("--owner", options->owner, "Who writes a replica (balanced)")
      ->transform(CLI::CheckedTransformer(owners()));
  command->add_option("--preset", options->preset, "Planner behaviour (native)")
      ->transform(CLI::CheckedTransformer(presets()));
  command
      ->add_option("--bandwidth", options->rank_bytes_per_second,
                   "Bytes per second of one rank, such as 2GB, for the estimated time")
      ->transform(CLI::AsSizeValue(true));
  command
      ->add_option("--total-bandwidth", options->total_bytes_per_second,
                   "Bytes per second that all ranks share, such as 500GB")
      ->transform(CLI::AsSizeValue(true));
  if (load) {
    command
        ->add_option("--ranks-per-node", options->ranks_per_node,
                     "Ranks of one machine, which share what they read (each reads alone)")
        ->check(CLI::Range(1, 64));
    command
        ->add_option("--exchange", options->exchange,
                     "Whether nodes send each other what several of them want: off or always (off)")
        ->transform(CLI::CheckedTransformer(exchanges()));
  }
  CLI::Option* measure = command->add_option(
      "--measure", options->measure, "Measure the bandwidth by a small save and load in DIR");
  command->add_option("--measure-size", options->measure_bytes, "Bytes of that save (256MiB)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 36))
      ->needs(measure);
  measure->excludes("--bandwidth");
  command->add_option("--html", options->html, "Write a page with pictures to FILE");
  command->add_option(
      "--out", options->out,
      load ? "Write the load plans of all ranks to FILE" : "Write the merged plan to FILE");
  command->add_flag("--per-rank", options->per_rank, "List every rank");
  command->footer(kEstimateFooter);
  add_shared_options(*command, session);
  command->callback([&session, run, options] {
    *run = [&session, options] { return estimate_plan(session, *options); };
  });
}

using FileCommand = int (*)(Session&, const PlanFileOptions&);
struct FileCommandText {
  const char* name;
  const char* help;
  const char* first;
  const char* second;  // null = takes one argument
  bool limited;        // has --limit
};

void add_file_command(CLI::App& plan, Session& session, Run* run, const FileCommandText& text,
                      FileCommand function) {
  CLI::App* command = plan.add_subcommand(text.name, text.help);
  auto options = std::make_shared<PlanFileOptions>();
  command->add_option(text.first, options->first, "")->required();
  if (text.second != nullptr) command->add_option(text.second, options->second, "")->required();
  if (text.limited) command->add_option("--limit", options->limit, "Most items of each list (20)");
  add_shared_options(*command, session);
  command->callback([&session, run, options, function] {
    *run = [&session, options, function] { return function(session, *options); };
  });
}

}  // namespace

void add_plan(CLI::App& app, Session& session, Run* run) {
  CLI::App* command =
      app.add_subcommand("plan", "Estimate a save or load before it happens; look at plan buffers");
  command->require_subcommand(1);
  add_estimate(*command, session, run, false);
  add_estimate(*command, session, run, true);
  add_file_command(
      *command, session, run,
      {"describe", "Print what a checkpoint stores as a JSON description", "CKPT", nullptr, false},
      describe_checkpoint);
  add_file_command(*command, session, run,
                   {"show", "Print a file of plan buffers", "FILE", nullptr, true}, show_plan);
  add_file_command(*command, session, run,
                   {"diff", "Compare two files of plan buffers", "FILE", "OTHER", true},
                   diff_plans);
  add_file_command(
      *command, session, run,
      {"validate", "Check a file of plan buffers in all respects", "FILE", nullptr, false},
      validate_plan);
}

}  // namespace shardwright::cli
