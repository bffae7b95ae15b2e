// SPDX-License-Identifier: Apache-2.0
//
// The top of a description: meshes and the number of ranks come first, for entries refer to them.
#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/job_description/entry_reader_internal.h"
#include "core/job_description/job_description.h"
#include "core/job_description/mesh_reader_internal.h"

namespace shardwright::job_description {
namespace {

using internal::EntryReader;
using internal::MeshReader;

constexpr int64_t kSchema = 1;
constexpr std::string_view kTopKeys[] = {"schema",  "description", "ranks", "meshes",
                                         "tensors", "objects",     "rules"};

Status check_schema(JsonValueView root) {
  const JsonValueView schema = root.member("schema");
  if (!schema.exists())
    return root.wrong(fmt::format("a description needs \"schema\": {}", kSchema));
  SHW_ASSIGN_OR_RETURN(const int64_t version,
                       internal::read_integer(schema, "'schema'", 1, INT64_MAX));
  if (version == kSchema) return {};
  return unimplemented(fmt::format("the description has schema {}, this version reads schema {}",
                                   version, kSchema))
      .with_detail("needed_version", fmt::to_string(version));
}

Status read_rank_count(JsonValueView root, const MeshReader& meshes, JobDescription* job) {
  const JsonValueView ranks = root.member("ranks");
  if (!ranks.exists()) {
    if (meshes.empty()) return root.wrong("a description needs 'meshes' or 'ranks'");
    job->rank_count = meshes.highest_rank() + 1;
    return {};
  }
  SHW_ASSIGN_OR_RETURN(const int64_t count,
                       internal::read_integer(ranks, "'ranks'", 1, kMaxWorldSize));
  job->rank_count = static_cast<int32_t>(count);
  if (meshes.highest_rank() < job->rank_count) return {};
  return ranks.wrong(fmt::format("a mesh names rank {} in a job of {} ranks", meshes.highest_rank(),
                                 job->rank_count));
}

Status read_entries(JsonValueView root, MeshReader* meshes, JobDescription* job) {
  EntryReader entries(meshes, job);
  const JsonValueView tensors = root.member("tensors");
  if (tensors.exists()) SHW_RETURN_IF_ERROR(entries.read_tensors(tensors));
  const JsonValueView objects = root.member("objects");
  if (objects.exists()) SHW_RETURN_IF_ERROR(entries.read_objects(objects));
  const JsonValueView rules = root.member("rules");
  if (rules.exists()) SHW_RETURN_IF_ERROR(entries.read_rules(rules));
  return entries.check_names();
}

}  // namespace

Result<JobDescription> read_job_description(std::string_view json) {
  SHW_ASSIGN_OR_RETURN(const JsonTree tree, JsonTree::parse(json));
  const JsonValueView root = tree.root();
  SHW_RETURN_IF_ERROR(internal::need_type(root, JsonType::kObject, "a description"));
  SHW_RETURN_IF_ERROR(check_schema(root));
  SHW_RETURN_IF_ERROR(root.check_keys("a description", kTopKeys));
  JobDescription job;
  const JsonValueView description = root.member("description");
  if (description.exists()) {
    SHW_RETURN_IF_ERROR(internal::need_type(description, JsonType::kText, "'description'"));
    job.description = description.text();
  }
  MeshReader meshes(&job);
  const JsonValueView named = root.member("meshes");
  if (named.exists()) SHW_RETURN_IF_ERROR(meshes.read_meshes(named));
  SHW_RETURN_IF_ERROR(read_rank_count(root, meshes, &job));
  SHW_RETURN_IF_ERROR(read_entries(root, &meshes, &job));
  return job;
}

}  // namespace shardwright::job_description
