// SPDX-License-Identifier: Apache-2.0
//
// What a reshard is told and finds. Input: a byte that chooses, then a map, a job, nested values as
// JSON or as a pickle, arguments as a pickle, or buckets and parameters of small numbers. Values
// that were taken apart have canonical paths; what is assigned lies in its bucket, and of the
// places of a group none meet.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "core/reshard/argument_sizes.h"
#include "core/reshard/assign_buckets.h"
#include "core/reshard/reshard_map.h"
#include "core/reshard/target_job.h"
#include "core/reshard/value_tree.h"

namespace {

using namespace shardwright;           // NOLINT: a program of one file
using namespace shardwright::reshard;  // NOLINT

void check(bool holds) {
  if (!holds) std::abort();
}

void check_entries(const Result<Value>& value) {
  if (!value.ok()) return;
  std::vector<exec::ViewObject> objects;
  add_entries(*value, {{PathPartKind::kText, "common"}}, &objects);
  for (const exec::ViewObject& object : objects) {
    const auto parts = parse_path(object.path);
    check(!parts.ok() || join_path(*parts) == object.name);
  }
}

// A parameter and a run of as many elements hold the same where their bytes are equal.
class Bytes final : public Contents {
 public:
  std::vector<std::byte> parameters;
  std::span<const std::byte> runs;

  Result<ContentDigest> of_parameter(size_t number) override {
    return ContentDigest{parameters[number]};
  }
  Result<ContentDigest> of_run(const StoredRun& run, DType) override {
    if (runs.empty()) return ContentDigest{};
    const auto at = static_cast<size_t>(run.begin / 64 + static_cast<int64_t>(run.tensor));
    return ContentDigest{runs[at % runs.size()]};
  }
  Result<bool> are_zeros(const StoredRun& run) override {
    return runs.empty() || runs[static_cast<size_t>(run.begin) % runs.size()] == std::byte{0};
  }
};

void assign(std::span<const std::byte> input) {
  if (input.size() < 8) return;
  plan::Catalog catalog;
  plan::CatalogBuilder builder(&catalog);
  Bytes contents;
  const size_t count = 1 + static_cast<size_t>(input[0]) % 6;
  for (size_t p = 0; p < count; ++p) {
    const auto byte = static_cast<int64_t>(input[1 + p % (input.size() - 1)]);
    const Dims shape{1 + byte % 96};
    const std::string name = "decoder.layers." + std::to_string(byte % 3) +
                             (p % 2 == 0 ? ".input_layernorm." : ".odd.") + std::to_string(p);
    plan::CatalogBuilder::Tensor tensor;
    tensor.name = name;
    tensor.dtype = DType::kFloat32;
    tensor.shape = shape;
    const plan::CatalogBuilder::Chunk chunk{whole_box(shape), 0};
    check(builder.add_tensor(tensor, {&chunk, 1}).ok());
    contents.parameters.push_back(std::byte(byte % 4));
  }
  contents.runs = input.subspan(4);
  std::vector<Bucket> buckets;
  for (size_t b = 0; b < 2; ++b) {
    Bucket bucket;
    bucket.group = static_cast<uint32_t>(input[b]) % 2;
    bucket.number = static_cast<uint32_t>(b);
    bucket.states = {{"param", 0}, {"exp_avg", 0}};
    for (size_t k = 0; k < 4; ++k) {
      bucket.bounds.push_back(bucket.elements);
      bucket.elements += 1 + static_cast<int64_t>(input[4 + (b + k) % (input.size() - 4)]) % 96;
    }
    bucket.bounds.push_back(bucket.elements);
    bucket.is_gathered = (static_cast<uint32_t>(input[b]) & 4U) != 0;
    buckets.push_back(std::move(bucket));
  }
  const std::vector<LocalParameter> parameters = find_local_parameters(catalog);
  const auto assigned = assign_buckets({catalog, buckets, parameters, {}}, &contents);
  if (!assigned.ok()) return;
  std::set<std::pair<size_t, int64_t>> places;
  for (const Assigned& each : *assigned) {
    check(each.begin >= 0);
    check(each.begin + parameters[each.parameter].elements <= buckets[each.bucket].elements);
    check(places.emplace(each.bucket, each.begin).second);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: {
      const auto map = read_map(text);
      check(map.ok() || !map.status().message().empty());
      break;
    }
    case 1: {
      TargetJob job;
      if (read_target_job(text, &job).ok()) check(check_target_job(job).ok());
      break;
    }
    case 2:
      check_entries(value_of_json(text));
      break;
    case 3:
      check_entries(value_of_pickle(bytes));
      break;
    case 4:
      static_cast<void>(
          set_argument_sizes(bytes, "application/python-pickle", {{"world_size", 4}}));
      break;
    default:
      assign(bytes);
  }
  return 0;
}
