// SPDX-License-Identifier: Apache-2.0
//
// Training of an Mlp, one unit per layer, by SGD with momentum: on ranks that are threads, and by
// one process that adds in the same order. The two must have the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/hsdp/hsdp.h"
#include "tests/core/hsdp/mlp.h"
#include "tests/core/hsdp/rank_threads.h"

namespace shardwright::test {

// How gradients of several micro-batches become those of a step.
enum class Accumulation {
  kReduceEach,     // over both axes each time
  kScatterEach,    // over the shard axis each time, over the replicas at the last one
  kReduceAtTheEnd  // whole ones are summed on each rank
};

struct TrainingCase {
  MeshShape mesh;
  hsdp::HsdpOptions options{};  // axes come from the mesh
  hsdp::UnitOptions unit{};
  hsdp::UnitSettings settings{};
  std::vector<size_t> widths = {13, 37, 29, 3};
  int32_t weight_shard_dim = 0;
  bool replicate_parameters = false;
  bool replicate_biases = false;
  Accumulation accumulation = Accumulation::kReduceEach;
  int32_t micro_batches = 1;
  int32_t steps = 20;
  bool take_gradients = false;       // handed over instead of copied
  bool gradients_on_device = false;  // they lie in its memory already
  bool inline_lanes = false;
  // What the device is wrapped in.
  std::function<std::shared_ptr<device::LaneDevice>(std::shared_ptr<device::LaneDevice>)>
      wrap_device{};
  bool one_finalize = false;   // is_last_backward only at the last micro-batch
  std::vector<bool> frozen{};  // per parameter, as it begins
  int32_t unfreeze_step = -1;  // from this step on nothing is frozen

  size_t layers() const { return widths.size() - 1; }
};

// Weight and bias of each layer, in turns.
using Parameters = std::vector<Floats>;

// One rank. Public pieces, so that tests can put something between them.
class RankTrainer {
 public:
  static Result<std::unique_ptr<RankTrainer>> create(const TrainingCase& plan, int32_t rank,
                                                     std::shared_ptr<hsdp::HsdpMesh> mesh);

  Status run_step(int32_t step);
  Status forward(int32_t step, int32_t micro_batch);
  Status backward(int32_t step);
  Status optimize();
  // All parameters whole, as this rank computes with them.
  Result<Parameters> whole_parameters();
  // Fails the test where this rank's shards are not those parts of the parameters.
  Status expect_shards_of(const Parameters& parameters);
  // This rank's parts and momenta, to begin anew from.
  struct Snapshot {
    Parameters parts;
    Parameters momenta;
  };
  Result<Snapshot> snapshot();
  Status restore(const Snapshot& from);

  hsdp::Hsdp& context() { return *context_; }
  std::vector<hsdp::Unit*>& units() { return units_; }
  // Called after each layer's forward.
  std::function<Status(size_t layer)> after_forward{};

 private:
  explicit RankTrainer(const TrainingCase& plan, int32_t rank) : plan_(plan), rank_(rank) {}
  Status make_unit(size_t layer);
  Status set_flags(int32_t micro_batch);
  Result<Floats> whole(size_t layer, size_t parameter);
  Result<MlpLayer> layer_of(size_t layer, Parameters* memory);
  Status move_to_device(hsdp::GradientInput* input);
  Status hand_over(size_t layer, const MlpGradients& gradients);

  TrainingCase plan_;
  int32_t rank_;
  std::shared_ptr<device::LaneDevice> device_;  // co-owned with the context
  std::unique_ptr<hsdp::Hsdp> context_;
  std::vector<hsdp::Unit*> units_;
  Parameters momenta_;
  std::vector<Floats> inputs_;  // of each layer, then the output
};

// Parameters at the beginning, equal on all ranks.
Parameters first_parameters(const TrainingCase& plan);
// The input of a rank's micro-batch.
Floats micro_batch_of(const TrainingCase& plan, int32_t step, int32_t micro_batch, int32_t rank);
void apply_momentum(std::span<float> parameters, std::span<const float> gradients,
                    std::span<float> momenta);

// Values as they come back from a dtype; kInvalid = float32.
Floats rounded(const Floats& values, DType dtype);

// All ranks; the whole parameters of each at the end. Fails the test where a rank fails, or where
// its shards are not those of what is expected, if it is given.
std::vector<Parameters> train(const TrainingCase& plan, const Parameters* expected = nullptr);
// What one process makes of it.
Parameters train_alone(const TrainingCase& plan);
// train() has the bits of train_alone() on each rank.
void expect_trains_like_one_process(const TrainingCase& plan);

}  // namespace shardwright::test
