// SPDX-License-Identifier: Apache-2.0
//
// Each function stands for one of the runtime and takes and gives back what that one does, in the
// same order: peaks depend on it. tests/core/hsdp/estimate_test.cc holds the two together.
#include "core/hsdp/estimate.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/hsdp/parameter_groups.h"
#include "core/hsdp/schedule.h"

namespace shardwright::hsdp {
namespace {

uint64_t bytes_of(DType dtype, int64_t elements) {
  return static_cast<uint64_t>(dtype_bits(dtype)) / 8 * static_cast<uint64_t>(elements);
}

std::vector<bool> trained_members(const UnitLayout& layout, const DTypePolicy& dtypes) {
  std::vector<bool> members;
  for (const ParameterSpec& spec : layout.specs())
    members.push_back(!spec.frozen && carries_gradients(dtypes.stored));
  return members;
}

// Bytes of every buffer of a group.
struct GroupBytes {
  GroupBytes(const EstimatedGroup& group, int32_t shard_size, int32_t secondary_size)
      : ragged(group.layout.mode() == LayoutMode::kRagged),
        casts(group.dtypes.casts_parameters()),
        keeps_sum(group.dtypes.reduce == group.dtypes.gradient) {
    const UnitLayout& layout = group.layout;
    const bool replicated = layout.size() > 0 && layout.slot(0).is_replicated;
    const int64_t held = replicated ? layout.replicated_elements() : layout.shard_elements();
    whole = replicated || shard_size == 1;
    shard = bytes_of(group.dtypes.stored, held);
    staging = bytes_of(group.dtypes.compute, held);
    gathered = whole ? 0 : bytes_of(group.dtypes.compute, layout.gathered_elements());
    parameters = bytes_of(group.dtypes.compute, replicated ? held : layout.gathered_elements());
    secondary = secondary_size > 0 ? gathered / static_cast<uint64_t>(secondary_size) : 0;
    const std::vector<bool> members = trained_members(layout, group.dtypes);
    trained = std::ranges::find(members, true) != members.end();
    if (!trained) return;
    const UnitLayout kept = layout.keeping(members);
    const int64_t sum = replicated ? kept.replicated_elements() : kept.shard_elements();
    packed = bytes_of(group.dtypes.reduce, replicated ? sum : kept.gathered_elements());
    scattered = bytes_of(group.dtypes.reduce, sum);
    gradient = bytes_of(group.dtypes.gradient, sum);
    for (size_t each = 0; each < members.size(); ++each)
      if (members[each]) local += bytes_of(group.dtypes.reduce, layout.slot(each).elements());
  }

  bool ragged;
  bool casts;
  bool keeps_sum;  // as the gradient of the shard
  bool whole = false;
  bool trained = false;
  uint64_t shard = 0;
  uint64_t staging = 0;
  uint64_t gathered = 0;
  uint64_t parameters = 0;
  uint64_t secondary = 0;
  uint64_t packed = 0;
  uint64_t scattered = 0;
  uint64_t gradient = 0;
  uint64_t local = 0;
};

enum class Parameters { kSharded, kGathering, kUnsharded, kSecondary };

// A group, and which of its buffers are there.
struct Group {
  GroupBytes bytes;
  bool has_parameters = false;
  bool has_secondary = false;
  bool has_gradient = false;
  bool has_partial = false;
};

struct SimulatedUnit {
  const EstimatedUnit* given = nullptr;
  std::vector<Group> groups;
  Parameters state = Parameters::kSharded;
};

struct Reduction {
  UnitId unit = 0;
  bool is_scattering = true;
};

class Simulation {
 public:
  Simulation(std::span<const EstimatedUnit> units, const HsdpOptions& options,
             const EstimatedWorld& world)
      : options_(options), world_(world) {
    for (const EstimatedUnit& given : units) {
      const bool keeps = given.settings.reshard_after_forward == ReshardPolicy::kSecondary;
      SimulatedUnit unit{&given, {}, Parameters::kSharded};
      const UnitId id = units_.size();
      for (const EstimatedGroup& group : given.groups) {
        unit.groups.push_back(
            {GroupBytes(group, world.shard_size, keeps ? given.settings.secondary_size : 0)});
        add(BufferKind::kShard, id, unit.groups.back().bytes.shard);
      }
      units_.push_back(std::move(unit));
      schedule_.add_unit(id);
    }
  }

  // The second iteration begins with what the first one kept.
  MemoryStats run() {
    for (int32_t iteration = 0; iteration < 2; ++iteration) {
      forward();
      backward();
      finish_iteration();
      step();
    }
    return ledger_.stats();
  }

 private:
  bool has_root() const { return !units_.empty() && units_.front().given->is_root; }

  void add(BufferKind kind, UnitId unit, uint64_t bytes) {
    ledger_.open(unit);
    ledger_.add(kind, unit, bytes);
  }
  void remove(BufferKind kind, UnitId unit, uint64_t bytes) { ledger_.remove(kind, unit, bytes); }

  void forward();
  void backward();
  void step();
  void start_gather(UnitId unit);
  void finish_gather(UnitId unit);
  void free_full(UnitId unit);
  void free_parameters(UnitId unit);
  void release_secondary(UnitId unit);
  void follow_policy(UnitId unit);
  void unshard_and_wait(UnitId unit);
  void prefetch(const std::vector<UnitId>& next, bool is_backward);
  void pre_forward(UnitId unit);
  void post_forward(UnitId unit);
  void pre_backward(UnitId unit);
  void add_gradients(UnitId unit);
  void post_backward(UnitId unit);
  void pack(UnitId unit);
  void make_room();
  bool has_come(const Reduction& reduction) const;
  void finish_scatter(Reduction* reduction);
  void finish(Reduction* reduction);
  void finish_iteration();

  const HsdpOptions& options_;
  const EstimatedWorld& world_;
  std::vector<SimulatedUnit> units_;
  Schedule schedule_;
  std::deque<Reduction> reductions_;
  MemoryLedger ledger_;
};

void Simulation::forward() {
  for (UnitId unit = 0; unit < units_.size(); ++unit) {
    pre_forward(unit);
    if (unit > 0 || !has_root()) post_forward(unit);
  }
  if (has_root()) post_forward(0);
}

void Simulation::backward() {
  if (has_root()) pre_backward(0);
  for (UnitId unit = units_.size(); unit-- > 0;) {
    if (unit > 0 || !has_root()) pre_backward(unit);
    add_gradients(unit);
    post_backward(unit);
  }
}

// The optimizer has used the gradients, and parameters have changed.
void Simulation::step() {
  for (UnitId unit = 0; unit < units_.size(); ++unit) {
    for (Group& group : units_[unit].groups) {
      if (std::exchange(group.has_gradient, false))
        remove(BufferKind::kShardGradient, unit, group.bytes.gradient);
    }
    if (units_[unit].state != Parameters::kSharded) free_parameters(unit);
  }
}

void Simulation::start_gather(UnitId unit) {
  for (const Group& group : units_[unit].groups) {
    if (group.bytes.gathered == 0) continue;
    add(BufferKind::kGathered, unit, group.bytes.gathered);
    if (group.bytes.casts && !group.has_secondary)
      add(BufferKind::kCastStaging, unit, group.bytes.staging);
  }
  units_[unit].state = Parameters::kGathering;
}

void Simulation::finish_gather(UnitId unit) {
  SimulatedUnit& simulated = units_[unit];
  const bool keeps = simulated.given->settings.reshard_after_forward == ReshardPolicy::kSecondary;
  const bool has_allocator = simulated.given->has_allocator;
  for (const Group& group : simulated.groups) {
    if (group.bytes.gathered > 0 && group.bytes.casts && !group.has_secondary)
      remove(BufferKind::kCastStaging, unit, group.bytes.staging);
  }
  for (Group& group : simulated.groups) {
    const GroupBytes& bytes = group.bytes;
    if (keeps && !bytes.whole && !group.has_secondary) {
      add(BufferKind::kSecondary, unit, bytes.secondary);
      group.has_secondary = true;
    }
    const bool in_place = bytes.ragged && bytes.gathered > 0 && !has_allocator;
    const bool is_given = bytes.whole && !bytes.casts;  // out where it lies
    if (in_place) {
      if (group.has_parameters) remove(BufferKind::kParameters, unit, bytes.parameters);
      ledger_.move(BufferKind::kGathered, BufferKind::kParameters, bytes.gathered);
      group.has_parameters = true;
      continue;
    }
    if (!has_allocator && !is_given && !group.has_parameters) {
      add(BufferKind::kParameters, unit, bytes.parameters);
      group.has_parameters = true;
    }
    if (bytes.gathered > 0) remove(BufferKind::kGathered, unit, bytes.gathered);
  }
  simulated.state = Parameters::kUnsharded;
}

void Simulation::free_full(UnitId unit) {
  if (units_[unit].given->settings.keep_unsharded_memory) return;
  for (Group& group : units_[unit].groups) {
    if (std::exchange(group.has_parameters, false))
      remove(BufferKind::kParameters, unit, group.bytes.parameters);
  }
}

void Simulation::release_secondary(UnitId unit) {
  for (Group& group : units_[unit].groups) {
    if (std::exchange(group.has_secondary, false))
      remove(BufferKind::kSecondary, unit, group.bytes.secondary);
  }
}

void Simulation::free_parameters(UnitId unit) {
  SimulatedUnit& simulated = units_[unit];
  if (simulated.state == Parameters::kGathering) {
    for (const Group& group : simulated.groups) {
      if (group.bytes.gathered == 0) continue;
      remove(BufferKind::kGathered, unit, group.bytes.gathered);
      if (group.bytes.casts && !group.has_secondary)
        remove(BufferKind::kCastStaging, unit, group.bytes.staging);
    }
  }
  free_full(unit);
  release_secondary(unit);
  simulated.state = Parameters::kSharded;
}

void Simulation::follow_policy(UnitId unit) {
  SimulatedUnit& simulated = units_[unit];
  const EstimatedUnit& given = *simulated.given;
  switch (given.settings.reshard_after_forward) {
    case ReshardPolicy::kKeep:
      return;
    case ReshardPolicy::kAutomatic:
      if (given.is_root) return;
      break;
    case ReshardPolicy::kSecondary:
      if (std::ranges::all_of(simulated.groups, [](const Group& group) {
            return group.bytes.whole || group.has_secondary;
          })) {
        free_full(unit);
        simulated.state = Parameters::kSecondary;
        return;
      }
      break;
    case ReshardPolicy::kReshard:
      break;
  }
  free_parameters(unit);
}

void Simulation::unshard_and_wait(UnitId unit) {
  const Parameters state = units_[unit].state;
  if (state == Parameters::kUnsharded) return;
  if (state != Parameters::kGathering) start_gather(unit);
  finish_gather(unit);
}

void Simulation::prefetch(const std::vector<UnitId>& next, bool is_backward) {
  uint64_t ahead = 0;
  for (const UnitId unit : next) {
    for (const Group& group : units_[unit].groups) ahead += group.bytes.gathered;
    if (options_.prefetch_bytes_max > 0 && ahead > options_.prefetch_bytes_max) return;
    const Parameters state = units_[unit].state;
    if (is_backward && !units_[unit].given->settings.unshard_in_backward) continue;
    if (state == Parameters::kSharded || state == Parameters::kSecondary) start_gather(unit);
  }
}

void Simulation::pre_forward(UnitId unit) {
  unshard_and_wait(unit);
  prefetch(schedule_.forward(unit, static_cast<size_t>(options_.prefetch_depth)), false);
}

void Simulation::post_forward(UnitId unit) {
  follow_policy(unit);
}

void Simulation::pre_backward(UnitId unit) {
  if (units_[unit].given->settings.unshard_in_backward) {
    unshard_and_wait(unit);
    release_secondary(unit);
  }
  prefetch(schedule_.backward(unit, static_cast<size_t>(options_.prefetch_depth)), true);
}

void Simulation::add_gradients(UnitId unit) {
  if (!units_[unit].given->adds_gradients) return;
  for (const Group& group : units_[unit].groups) {
    if (group.bytes.trained) add(BufferKind::kLocalGradient, unit, group.bytes.local);
  }
}

void Simulation::post_backward(UnitId unit) {
  SimulatedUnit& simulated = units_[unit];
  const UnitSettings& settings = simulated.given->settings;
  if (simulated.state == Parameters::kGathering || simulated.state == Parameters::kSecondary)
    free_parameters(unit);
  if (settings.requires_gradient_sync) {
    make_room();
    pack(unit);
  }
  if (simulated.state == Parameters::kUnsharded && settings.reshard_after_backward)
    free_parameters(unit);
}

void Simulation::pack(UnitId unit) {
  bool travels = false;
  for (const Group& group : units_[unit].groups) {
    if (!group.bytes.trained) continue;
    travels = true;
    add(BufferKind::kPacked, unit, group.bytes.packed);
    if (group.bytes.whole) continue;
    add(BufferKind::kScattered, unit, group.bytes.scattered);
    if (world_.gradients_land) add(BufferKind::kLanding, unit, group.bytes.packed);
  }
  for (const Group& group : units_[unit].groups) {
    if (group.bytes.trained && units_[unit].given->adds_gradients)
      remove(BufferKind::kLocalGradient, unit, group.bytes.local);
  }
  if (travels) reductions_.push_back({unit, true});
}

void Simulation::make_room() {
  while (!reductions_.empty() && !reductions_.front().is_scattering) {
    finish(&reductions_.front());
    reductions_.pop_front();
  }
  const auto allowed = static_cast<size_t>(options_.max_inflight_reduce) - 1;
  auto scattering = static_cast<size_t>(
      std::ranges::count_if(reductions_, [](const Reduction& each) { return each.is_scattering; }));
  for (size_t each = 0; scattering > allowed; ++each, --scattering)
    finish_scatter(&reductions_[each]);
  while (!reductions_.empty() && has_come(reductions_.front())) {
    finish(&reductions_.front());
    reductions_.pop_front();
  }
}

// Nothing of it is under way any more, not over the replicas either.
bool Simulation::has_come(const Reduction& reduction) const {
  const SimulatedUnit& unit = units_[reduction.unit];
  return !reduction.is_scattering &&
         (world_.replicate_size == 1 || std::ranges::all_of(unit.groups, [](const Group& group) {
            return group.has_partial || group.bytes.scattered == 0;
          }));
}

void Simulation::finish_scatter(Reduction* reduction) {
  if (!std::exchange(reduction->is_scattering, false)) return;
  const UnitId unit = reduction->unit;
  const bool waits = world_.replicate_size > 1 && !units_[unit].given->settings.requires_all_reduce;
  for (Group& group : units_[unit].groups) {
    if (!group.bytes.trained) continue;
    if (group.bytes.whole) {
      ledger_.move(BufferKind::kPacked, BufferKind::kScattered, group.bytes.packed);
    } else {
      remove(BufferKind::kPacked, unit, group.bytes.packed);
      if (world_.gradients_land) remove(BufferKind::kLanding, unit, group.bytes.packed);
    }
    if (!waits) continue;
    if (std::exchange(group.has_partial, true)) {
      remove(BufferKind::kScattered, unit, group.bytes.scattered);
    } else {
      ledger_.move(BufferKind::kScattered, BufferKind::kPartial, group.bytes.scattered);
    }
  }
}

void Simulation::finish(Reduction* reduction) {
  finish_scatter(reduction);
  const UnitId unit = reduction->unit;
  for (Group& group : units_[unit].groups) {
    if (!group.bytes.trained || group.has_partial) continue;
    group.has_gradient = true;
    if (group.bytes.keeps_sum) {
      ledger_.move(BufferKind::kScattered, BufferKind::kShardGradient, group.bytes.scattered);
      continue;
    }
    add(BufferKind::kShardGradient, unit, group.bytes.gradient);
    remove(BufferKind::kScattered, unit, group.bytes.scattered);
  }
}

void Simulation::finish_iteration() {
  for (Reduction& each : reductions_) finish_scatter(&each);
  for (Reduction& each : reductions_) finish(&each);
  reductions_.clear();
  schedule_.finish();
  for (UnitId unit = 0; unit < units_.size(); ++unit) {
    const Parameters state = units_[unit].state;
    const bool is_used = state == Parameters::kUnsharded;
    if (state == Parameters::kSharded) continue;
    if (!is_used || units_[unit].given->settings.reshard_after_backward) free_parameters(unit);
  }
}

}  // namespace

Result<std::vector<EstimatedGroup>> estimated_groups(std::span<const ParameterSpec> parameters,
                                                     const UnitOptions& options, int32_t world) {
  SHW_ASSIGN_OR_RETURN(
      std::vector<ParameterGroup> kinds,
      group_parameters(std::vector<ParameterSpec>(parameters.begin(), parameters.end()), options));
  std::vector<EstimatedGroup> groups;
  for (ParameterGroup& kind : kinds) {
    SHW_ASSIGN_OR_RETURN(UnitLayout layout,
                         UnitLayout::create(std::move(kind.specs), world, options.layout_mode));
    groups.push_back({std::move(layout), kind.dtypes});
  }
  return groups;
}

MemoryStats estimate_memory(std::span<const EstimatedUnit> units, const HsdpOptions& options,
                            const EstimatedWorld& world) {
  return Simulation(units, options, world).run();
}

}  // namespace shardwright::hsdp
