// SPDX-License-Identifier: Apache-2.0
//
// Parts of the command `plan`: estimates of described jobs, the page that shows one, the probe
// that measures a directory, and what is done with plan buffers. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "cli/handles.h"
#include "cli/session.h"

namespace shardwright::cli {

using PlanJson = nlohmann::ordered_json;

// The number that stands under a key.
inline uint64_t number(const PlanJson& json, const char* key) {
  return json.at(key).get<uint64_t>();
}

struct PlanEstimateOptions {
  bool load = false;
  std::string source;  // description or checkpoint
  std::string target;  // description; empty = the source's own layout
  int32_t owner = SHW_OWNER_BALANCED;
  int32_t preset = SHW_PRESET_NATIVE;
  uint64_t rank_bytes_per_second = 0;
  uint32_t ranks_per_node = 0;                   // of a load
  int32_t exchange = SHW_ESTIMATE_EXCHANGE_OFF;  // likewise
  uint64_t total_bytes_per_second = 0;
  std::string measure;  // directory; empty = nothing is measured
  uint64_t measure_bytes = uint64_t{256} << 20;
  std::string html;  // file to write, empty = none
  std::string out;   // file for the merged plan or the load plans, empty = none
  bool per_rank = false;
};
int estimate_plan(Session& session, const PlanEstimateOptions& options);

struct PlanFileOptions {
  std::string first;
  std::string second;
  uint64_t limit = 20;  // items or differences that text output lists
};
int show_plan(Session& session, const PlanFileOptions& options);
int diff_plans(Session& session, const PlanFileOptions& options);
int validate_plan(Session& session, const PlanFileOptions& options);
int describe_checkpoint(Session& session, const PlanFileOptions& options);

// All bytes of a file; a Failure when it cannot be read.
std::string read_file(const std::string& path);
// Writes a new file or replaces one in one step; a Failure when it cannot.
void write_file(const std::string& path, std::string_view bytes);

// Bytes per second of one rank that really saves and loads `bytes` in a directory.
struct MeasuredRates {
  uint64_t write_bytes_per_second = 0;
  uint64_t read_bytes_per_second = 0;
};
MeasuredRates measure_rates(Session& session, const std::string& directory, uint64_t bytes);

// A self-contained HTML page about an estimate; source and target are shown in its heading.
std::string estimate_page(const PlanJson& estimate, std::string_view source,
                          std::string_view target);

}  // namespace shardwright::cli
