// SPDX-License-Identifier: Apache-2.0
//
// shardwright digest: one digest per tensor of its row-major bytes. Equal tensors have equal
// digests, whatever mesh, format or language wrote them, so two lists can be compared with diff.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/entries.h"
#include "cli/session.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DigestOptions {
  std::string path;
  std::string pattern;
  std::string algorithm = "xxh3";
};

int digest(Session& session, const DigestOptions& options) {
  const Checkpoint checkpoint = session.open(options.path);
  const std::vector<TensorFacts> tensors = list_tensors(checkpoint, options.pattern);
  if (tensors.empty()) require_match(options.pattern, "tensor", options.path);
  std::vector<uint64_t> indices;
  indices.reserve(tensors.size());
  for (const TensorFacts& tensor : tensors) indices.push_back(tensor.index);
  const int32_t algorithm = options.algorithm == "sha256" ? SHW_DIGEST_SHA256 : SHW_DIGEST_XXH3;
  const std::vector<std::string> digests =
      content_digests(checkpoint, indices, algorithm, options.path);
  Json json = Json::object();
  std::string lines;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& text = digests[i];
    json[tensors[i].listed] = {
        {"dtype", tensors[i].dtype}, {"shape", tensors[i].shape}, {"digest", text}};
    lines += fmt::format("{}  {} {}  {}\n", text, tensors[i].dtype, shape_text(tensors[i].shape),
                         printable(tensors[i].listed));
  }
  if (session.options.json) {
    Session::print_line(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    Session::print(lines);
  }
  return kExitFine;
}

}  // namespace

void add_digest(CLI::App& app, Session& session, Run* run) {
  CLI::App* command =
      app.add_subcommand("digest", "Digest of every tensor, independent of mesh and format");
  auto options = std::make_shared<DigestOptions>();
  command->add_option("PATH", options->path, "Checkpoint")->required();
  command->add_option("PATTERN", options->pattern,
                      "Only names like this: '*' is any text, '?' one character");
  command->add_option("--algorithm", options->algorithm, "xxh3 (XXH3-128) or sha256")
      ->check(CLI::IsMember({"xxh3", "sha256"}));
  add_as_option(*command, session);
  add_step_option(*command, session);
  add_shared_options(*command, session);
  command->callback([&session, run, options] {
    *run = [&session, options] { return digest(session, *options); };
  });
}

}  // namespace shardwright::cli
