// SPDX-License-Identifier: Apache-2.0
//
// Unit: the parameters that are gathered and reduced together. Between uses each rank holds its
// shard of them; a host calls one function per phase (pre_forward, post_forward, pre_backward,
// post_backward), or the steps that these are made of. States and what is legal in them: see
// unit_state.h; an illegal call is FAILED_PRECONDITION. Once the context has failed every call is,
// until Hsdp::reset. Calls of one context come from any thread, one at a time, and in the same
// order on all ranks; calls of one unit may overlap only in that they wait for each other.
//
// A life: Hsdp::create_unit, add_parameters, seal (all ranks), then iterations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/collective/communicator.h"
#include "core/concurrency/mutex.h"
#include "core/device/lane_device.h"
#include "core/hsdp/options.h"
#include "core/hsdp/parameter_allocator.h"
#include "core/hsdp/schedule.h"
#include "core/hsdp/unit_layout.h"
#include "core/hsdp/unit_state.h"
#include "core/layout/box.h"

namespace shardwright::hsdp {

namespace internal {
class GroupGradients;
class Runtime;
class UnitGroup;
class UnitReduction;
}  // namespace internal

// A parameter as the host has it; dense and row-major. full: of the global shape, borrowed until
// the unit is sealed (owner, which may be null, is kept as long); empty: the shard begins as zero,
// and the host fills it. on_device: full is memory of the context's device, and what wrote it has
// ended; else of the host.
struct ParameterInput {
  ParameterSpec spec;
  std::span<const std::byte> full;
  std::shared_ptr<const void> owner{};  // co-owned with the host
  bool on_device = false;
};

// Elements in row-major order, in memory of the context's device, or of the host where a unit
// offloads shards and their gradients; valid until the next change of state of the unit, and those
// of a gradient as long as the owner lives.
struct ParameterView {
  std::span<std::byte> bytes;
  Dims shape;
  DType dtype = DType::kInvalid;
  std::shared_ptr<const void> owner{};  // null but for gradients
  device::DeviceNumber place{};
};

// The gradient of a whole parameter. take: it stays as it is until it was reduced, and is read
// where it lies; owner, which may be null, is kept as long. Else a copy is added, as it is of what
// lies in another memory than the units. on_device: as of ParameterInput.
struct GradientInput {
  size_t parameter = 0;
  DType dtype = DType::kInvalid;
  std::span<const std::byte> bytes;
  bool take = false;
  std::shared_ptr<const void> owner{};  // co-owned with the host
  bool on_device = false;
};

struct PhaseOptions {
  // Forward inside of backward (activation recomputation): gathers where needed, and neither
  // reshards nor counts as a run of the unit.
  bool recompute = false;
};

class Unit {
 public:
  // By Hsdp::create_unit.
  Unit(internal::Runtime& runtime, UnitId id, std::string name, const UnitOptions& options);
  ~Unit();
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  const std::string& name() const { return name_; }
  UnitId id() const { return id_; }
  const UnitOptions& options() const { return options_; }

  // All or none; they are numbered from 0 in the order in which they come. INVALID_ARGUMENT naming
  // the parameter: a size that does not fit the shape; what UnitLayout::create refuses comes from
  // seal.
  Status add_parameters(std::vector<ParameterInput> parameters);
  // Before seal. Null = memory of the library.
  Status set_allocator(std::shared_ptr<ParameterAllocator> allocator);
  // Collective over the mesh. Lays the unit out, compares that on all ranks (INVALID_ARGUMENT on
  // all of them, naming the unit and a rank that differs), and makes and fills the shards.
  Status seal();
  bool is_sealed() const;

  size_t parameter_count() const;
  const ParameterSpec& spec(size_t parameter) const;  // of a sealed unit
  // Of local shards and their gradients.
  device::DeviceNumber shard_place() const;
  Result<ParameterView> local(size_t parameter);
  Result<ParameterView> full(size_t parameter);      // only while UNSHARDED
  Result<ParameterView> gradient(size_t parameter);  // FAILED_PRECONDITION where there is none
  bool has_gradient(size_t parameter);
  // What this rank holds of it, padding excluded.
  Result<Box> box(size_t parameter);

  // Waits for the parameters, and gathers what probably comes next.
  Status pre_forward(const PhaseOptions& phase);
  Status post_forward(const PhaseOptions& phase);
  Status pre_backward();
  // Gradients were added; reduces and reshards as the settings say. Idempotent within a backward.
  Status post_backward();

  // The gather is under way when this returns; waiting for the result makes the unit UNSHARDED. The
  // shards of all ranks stay as they are until then; Hsdp::step_event ends it, too.
  Result<collective::WorkPtr> unshard();
  Status wait_unsharded();
  // A gather under way is waited for and dropped; its work does nothing then.
  Status reshard();
  // As the policy says after forward; a gather under way is waited for.
  Status reshard_after_forward();
  // All or none; where memory ends after the first, the context has failed.
  Status add_gradients(std::span<const GradientInput> gradients);
  // Packs what was added, reshards, and reduces; waiting for the result makes the gradient of the
  // shard.
  Result<collective::WorkPtr> reduce();

  UnitSettings settings() const;
  // INVALID_ARGUMENT where a value is none; FAILED_PRECONDITION where the mesh has no communicator
  // for a secondary size.
  Status set_settings(const UnitSettings& settings);
  // What set_settings refuses.
  Status check_settings(const UnitSettings& settings) const;
  // Instead of what the schedule foretells; empty restores that. Units of the same context.
  Status set_forward_prefetch(std::span<Unit* const> units);
  Status set_backward_prefetch(std::span<Unit* const> units);
  // Takes effect at the next pre_forward.
  Status set_frozen(size_t parameter, bool frozen);
  bool is_frozen(size_t parameter) const;  // now; also what is not floating point

  UnitState state() const;
  GradientState gradient_state() const;
  uint64_t gathered_bytes() const;  // F of one gather
  int64_t padding_bytes() const;    // of this rank's shard

  // For the context.
  Status start_unshard();
  Status start_unshard_for_backward();  // nothing where backward does without
  void give_up_gather();
  Status finish_iteration();   // what was gathered in vain is dropped
  Status forget_parameters();  // SHARDED; a gather is waited for and dropped
  void drop_everything();      // gradients, too
  void drop_gradients();       // of the shard
  bool has_partial() const;
  bool has_pending_gradients() const;
  std::vector<internal::GroupGradients*> gradients();

 private:
  struct Place {
    size_t group = 0;
    size_t index = 0;
  };

  bool offloads() const;
  Status check_sealed() const SHW_REQUIRES(mutex_);
  Status check_parameter(size_t parameter) const SHW_REQUIRES(mutex_);
  Status make_groups() SHW_REQUIRES(mutex_);
  Status agree_on_layout() SHW_REQUIRES(mutex_);
  Status apply_frozen() SHW_REQUIRES(mutex_);
  Result<UnitStep> step_of(UnitCall call) const SHW_REQUIRES(mutex_);
  Status start_gather(UnitStep step) SHW_REQUIRES(mutex_);
  // False after timeout_ns (negative = no limit).
  Result<bool> finish_gather(int64_t timeout_ns) SHW_REQUIRES(mutex_);
  Status discard_gather() SHW_REQUIRES(mutex_);
  void free_parameters() SHW_REQUIRES(mutex_);
  Status follow_policy() SHW_REQUIRES(mutex_);
  Status reshard_step(UnitCall call) SHW_REQUIRES(mutex_);
  bool keeps_secondary() const SHW_REQUIRES(mutex_);
  Status unshard_and_wait();
  Status check_gradient(const GradientInput& gradient) const SHW_REQUIRES(mutex_);
  Status add_gradient(const GradientInput& gradient) SHW_REQUIRES(mutex_);
  Status begin_reduction();
  Result<std::unique_ptr<internal::UnitReduction>> pack_gradients() SHW_REQUIRES(mutex_);
  Result<bool> wait_gather(uint64_t number, int64_t timeout_ns);
  Status set_prefetch(std::span<Unit* const> units, std::vector<UnitId>* list);
  class GatherWork;
  class ReductionWork;

  internal::Runtime& runtime_;
  const UnitId id_;
  const std::string name_;
  const UnitOptions options_;
  mutable Mutex mutex_;
  std::vector<ParameterInput> inputs_ SHW_GUARDED_BY(mutex_);  // until sealed: with full tensors
  std::shared_ptr<ParameterAllocator> allocator_ SHW_GUARDED_BY(mutex_);  // co-owned with the host
  std::vector<Place> places_ SHW_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<internal::UnitGroup>> groups_ SHW_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<internal::GroupGradients>> gradients_ SHW_GUARDED_BY(mutex_);
  UnitSettings settings_ SHW_GUARDED_BY(mutex_);
  std::vector<bool> frozen_ SHW_GUARDED_BY(mutex_);
  bool frozen_changed_ SHW_GUARDED_BY(mutex_) = false;
  std::vector<UnitId> forward_prefetch_ SHW_GUARDED_BY(mutex_);
  std::vector<UnitId> backward_prefetch_ SHW_GUARDED_BY(mutex_);
  UnitState state_ SHW_GUARDED_BY(mutex_) = UnitState::kSharded;
  bool sealed_ SHW_GUARDED_BY(mutex_) = false;
  uint64_t gathers_ SHW_GUARDED_BY(mutex_) = 0;        // issued; the number of the last one
  uint64_t ended_gathers_ SHW_GUARDED_BY(mutex_) = 0;  // those up to here were finished or dropped
  bool ran_forward_ SHW_GUARDED_BY(mutex_) = false;    // since its last reduction
  bool is_root_ SHW_GUARDED_BY(mutex_) = false;        // others ran inside its forward
};

}  // namespace shardwright::hsdp
