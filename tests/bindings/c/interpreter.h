// SPDX-License-Identifier: Apache-2.0
//
// Interpreter of the contract over the C interface. A step either succeeds, fails with a status of
// the library (Failed), or gives a result that is wrong (std::runtime_error). One thread, ranks
// aside.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/bindings/c/handles.h"
#include "tests/bindings/c/planning.h"
#include "tests/bindings/c/values.h"

namespace contract {

// Memory of one tensor step.
struct HostTensor {
  Bytes bytes;
  int32_t dtype = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // empty = row-major
  bool read_only = false;
};

// Options of a step as a C struct; the texts live as long as this.
struct SaveOptions {
  explicit SaveOptions(const Json& words);
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  std::string metadata;
  std::vector<uint64_t> offsets;
  std::string globs;
  std::vector<uint64_t> glob_offsets = {0};
  std::vector<int32_t> kinds;
};
shw_load_options load_options(const Json& words);

class Interpreter {
 public:
  Interpreter(shw_context* context, std::filesystem::path root);
  void run(const Json& step);
  // Compares the digests of a scenario with the checkpoint of the last save.
  void check_digests(const Json& wanted);

 private:
  void make_tensor(const Json& step);
  void make_state(const Json& step);
  void make_storage(const Json& step);
  void add_tensor(shw_state* state, const Json& entry);
  static State mapped(const State& state, const Json& rules);
  void add_object(shw_state* state, const Json& entry);
  void save_or_load(const Json& step);
  void run_ranks(const Json& step);
  void start_job(const Json& step);
  void look(const Json& step);
  void load_all(const Json& step);
  void latest(const Json& step);
  void convert(const Json& step);
  void expect_tensor(const Json& step);
  bool run_planner(const Json& step);
  bool run_save_planner(const Json& step);
  bool run_load_planner(const Json& step);
  void write_items(const Json& step);
  void write_item_digests(const Json& step);
  Bytes join(const Json& ids, std::vector<uint64_t>* offsets);
  std::string path_of(const Json& step) const;
  shw_storage* storage_of(const Json& step) const;
  std::string digest(shw_checkpoint* checkpoint, const std::string& name, int32_t rank,
                     const std::string& algorithm);

  shw_context* context_;
  std::filesystem::path root_;
  // Replaced tensors stay alive: earlier states point to them.
  std::vector<std::unique_ptr<HostTensor>> memory_;
  std::map<std::string, HostTensor*> tensors_;
  std::map<std::string, State> states_;
  std::map<std::string, Storage> storages_;
  std::map<std::string, Checkpoint> checkpoints_;
  std::map<std::string, int32_t> views_;  // whose rank_local entries a checkpoint shows, -1 = all
  std::map<std::string, Bytes> plans_;
  PlanningSteps planning_{&plans_};
  std::map<std::string, SavePlanner> save_planners_;
  std::map<std::string, LoadPlanner> load_planners_;
  std::map<std::string, Job> jobs_;
  Json last_save_;
};

}  // namespace contract
