// SPDX-License-Identifier: Apache-2.0
//
// shardwright reshard: saves a checkpoint of Megatron for a job with other parallel sizes. Killed
// or interrupted it goes on when it is called again.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/plan.h"
#include "cli/report_text.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::map<std::string, int32_t> kLayouts = {
    {"fully_reshardable", SHW_OPTIMIZER_FULLY_RESHARDABLE},
    {"dp_reshardable", SHW_OPTIMIZER_DP_RESHARDABLE}};

struct ReshardOptions {
  std::string source;
  std::string target;
  std::string job;
  std::string map;
  uint32_t tensor = 0;
  uint32_t pipeline = 0;
  uint32_t expert = 0;
  uint32_t expert_tensor = 0;
  uint32_t data = 0;
  std::vector<uint32_t> layers;
  std::string optimizer = "fully_reshardable";
  bool dry_run = false;
  bool overwrite = false;
  bool without_comparison = false;
};

int reshard(Session& session, const ReshardOptions& options) {
  shw_reshard_options how = SHW_RESHARD_OPTIONS_INIT;
  const std::string job = options.job.empty() ? "" : read_file(options.job);
  const std::string map = options.map.empty() ? "" : read_file(options.map);
  if (!options.job.empty()) how.job = job.c_str();
  if (!options.map.empty()) how.map = map.c_str();
  how.tensor_parallel = options.tensor;
  how.pipeline_parallel = options.pipeline;
  how.expert_parallel = options.expert;
  how.expert_tensor_parallel = options.expert_tensor;
  how.data_parallel = options.data;
  how.pipeline_layers = options.layers.data();
  how.pipeline_layer_count = options.layers.size();
  how.optimizer = kLayouts.at(options.optimizer);
  how.overwrite = options.overwrite ? SHW_OVERWRITE_REPLACE : SHW_OVERWRITE_REFUSE;
  if (options.dry_run) how.flags |= SHW_RESHARD_DRY_RUN;
  if (options.without_comparison) how.flags |= SHW_RESHARD_WITHOUT_COMPARISON;
  const Report report = made_by<shw_report, shw_report_release>(
      [&](shw_report** out, shw_error** error) {
        return shw_reshard(session.context(), nullptr, options.source.c_str(), nullptr,
                           options.target.c_str(), &how, out, error);
      },
      "reshard the checkpoint", Place::of_path(options.source));
  Json json = json_of(report);
  if (session.options.json) {
    json["source"] = options.source;
    print_json(json);
    return kExitFine;
  }
  const uint64_t files = json["files"].get<uint64_t>();
  Session::print_line(fmt::format("{}: {} of {}{}{}", shell_word(options.target),
                                  plural(json["tensors"].get<uint64_t>(), "tensor"),
                                  size_text(json["bytes_total"].get<uint64_t>()),
                                  files == 0 ? "" : " in " + plural(files, "file"),
                                  options.without_comparison || options.dry_run
                                      ? ""
                                      : ", read back and compared with the source"));
  print_notes(json);
  return kExitFine;
}

}  // namespace

void add_reshard(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand(
      "reshard", "Save a checkpoint of Megatron for a job with other parallel sizes");
  auto options = std::make_shared<ReshardOptions>();
  command
      ->add_option("SOURCE", options->source, "Directory that Megatron saved, such as iter_0001000")
      ->required();
  command->add_option("TARGET", options->target, "Directory; never in the source")->required();
  command->add_option("--to", options->job, "JSON file with the sizes of the target job");
  command->add_option("--tp", options->tensor, "Tensor-parallel size (0 = as in the source)");
  command->add_option("--pp", options->pipeline, "Pipeline-parallel size (0 = as in the source)");
  command->add_option("--ep", options->expert, "Expert-parallel size (0 = as in the source)");
  command->add_option(
      "--etp", options->expert_tensor,
      "Tensor-parallel size of experts (0 = that of the rest, or as in the source)");
  command->add_option("--dp", options->data, "Data-parallel size (0 = 1)");
  command
      ->add_option("--pipeline-layers", options->layers,
                   "Layers of each pipeline stage, as in 3,1; else all have as many")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--optimizer", options->optimizer,
                   "fully_reshardable (the default): any job loads it; dp_reshardable: in buckets")
      ->check(CLI::IsMember(kLayouts));
  command->add_option(
      "--map", options->map,
      "JSON file: what lies where in buckets, rules of a mapping, size of new buckets");
  command->add_flag("--dry-run", options->dry_run, "Prove everything, and write nothing");
  command->add_flag("--overwrite", options->overwrite, "Replace another checkpoint at TARGET");
  command->add_flag("--no-compare", options->without_comparison,
                    "Do not read back what was written and compare it");
  add_shared_options(*command, session);
  command->callback([&session, run, options] {
    *run = [&session, options] { return reshard(session, *options); };
  });
}

}  // namespace shardwright::cli
