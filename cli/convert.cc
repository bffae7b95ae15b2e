// SPDX-License-Identifier: Apache-2.0
//
// shardwright convert: saves a checkpoint again in another format, in bounded memory. Killed or
// interrupted it goes on when it is called again.
#include <cstdint>
#include <map>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/report_text.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::map<std::string, int32_t> kFormats = {{"native", SHW_FORMAT_NATIVE},
                                                 {"megatron", SHW_FORMAT_MEGATRON},
                                                 {"safetensors", SHW_FORMAT_SAFETENSORS},
                                                 {"torch-dcp", SHW_FORMAT_TORCH_DCP}};

struct ConvertOptions {
  std::string source;
  std::string target;
  std::string format = "native";
  std::string common = "file";
  std::string integrity = "off";
  uint64_t max_shard_bytes = 0;
  bool overwrite = false;
  bool without_comparison = false;
};

int convert(Session& session, const ConvertOptions& options) {
  shw_convert_options how = SHW_CONVERT_OPTIONS_INIT;
  how.format = kFormats.at(options.format);
  how.overwrite = options.overwrite ? SHW_OVERWRITE_REPLACE : SHW_OVERWRITE_REFUSE;
  how.max_shard_size = options.max_shard_bytes;
  how.common = options.common == "object" ? SHW_COMMON_OBJECT : SHW_COMMON_FILE;
  how.integrity = options.integrity == "sha256" ? SHW_INTEGRITY_SHA256 : SHW_INTEGRITY_OFF;
  if (options.without_comparison) how.flags |= SHW_CONVERT_WITHOUT_COMPARISON;
  const Report report = made_by<shw_report, shw_report_release>(
      [&](shw_report** out, shw_error** error) {
        return shw_convert(session.context(), nullptr, options.source.c_str(), nullptr,
                           options.target.c_str(), &how, out, error);
      },
      "convert the checkpoint", Place::of_path(options.source));
  Json json = json_of(report);
  if (session.options.json) {
    json["source"] = options.source;
    print_json(json);
    return kExitFine;
  }
  Session::print_line(fmt::format(
      "{}: {} of {} in {}{}", shell_word(options.target),
      plural(json["tensors"].get<uint64_t>(), "tensor"),
      size_text(json["bytes_total"].get<uint64_t>()), plural(json["files"].get<uint64_t>(), "file"),
      options.without_comparison ? "" : ", equal to the source by the digests of all tensors"));
  print_notes(json);
  return kExitFine;
}

}  // namespace

void add_convert(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand(
      "convert", "Save a checkpoint again in another format; goes on where it was cut off");
  auto options = std::make_shared<ConvertOptions>();
  command
      ->add_option("SOURCE", options->source,
                   "Checkpoint of any format that can be read, or a directory of Megatron's zarr "
                   "backend")
      ->required();
  command
      ->add_option("TARGET", options->target,
                   "Directory, or a file NAME.safetensors; never in the source")
      ->required();
  command
      ->add_option("--format,--to", options->format,
                   "native (the default), megatron, safetensors or torch-dcp")
      ->check(CLI::IsMember(kFormats));
  command
      ->add_option("--common", options->common,
                   "Where megatron keeps the common state: in its own file (the default), or as an "
                   "object among the data, as megatron-core from 0.19 on does")
      ->check(CLI::IsMember({"file", "object"}));
  command
      ->add_option("--integrity", options->integrity,
                   "sha256: megatron's integrity.json, which lists the SHA-256 of each file, made "
                   "while they are written; off (the default): none")
      ->check(CLI::IsMember({"off", "sha256"}));
  command
      ->add_option("--max-shard-size", options->max_shard_bytes,
                   "Bytes of tensors in one file, such as 2GB (0 = 5GB)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  command->add_flag("--overwrite", options->overwrite, "Replace another checkpoint at TARGET");
  command->add_flag("--no-compare", options->without_comparison,
                    "Do not compare the digests of all tensors in the end");
  add_shared_options(*command, session);
  command->callback([&session, run, options] {
    *run = [&session, options] { return convert(session, *options); };
  });
}

}  // namespace shardwright::cli
