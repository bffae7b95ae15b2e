// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/state_entries.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace shardwright::hsdp {
namespace {

constexpr int32_t kNotSharded = -1;

// Layouts of one context, one for each dimension that is cut.
class Layouts {
 public:
  explicit Layouts(const Hsdp& context) : context_(context) {}

  Result<Layout::Ptr> of(const Unit& unit, const ParameterSpec& spec) {
    const bool is_whole = spec.replicate || context_.options().shard_axis < 0;
    if (!is_whole && unit.options().layout_mode == LayoutMode::kRagged) return Layout::Ptr();
    const int32_t rank = static_cast<int32_t>(spec.shape.size());
    const int32_t dim = spec.shard_dim < 0 ? spec.shard_dim + rank : spec.shard_dim;
    return cut_along(is_whole ? kNotSharded : dim);
  }

 private:
  Result<Layout::Ptr> cut_along(int32_t dim) {
    if (const auto found = made_.find(dim); found != made_.end()) return found->second;
    const Mesh& mesh = context_.mesh().mesh();
    std::vector<Placement> placements(mesh.shape.size());
    if (dim != kNotSharded)
      placements[static_cast<size_t>(context_.options().shard_axis)] = {PlacementKind::kShard, dim};
    SHW_ASSIGN_OR_RETURN(Layout::Ptr layout, Layout::create(mesh, placements));
    return made_.emplace(dim, std::move(layout)).first->second;
  }

  const Hsdp& context_;
  std::map<int32_t, Layout::Ptr> made_;  // by dimension
};

Status check_gradients_are_there(const Unit& unit) {
  const GradientState state = unit.gradient_state();
  const bool settled = state == GradientState::kNone || state == GradientState::kReady;
  if (settled && !unit.has_partial()) return {};
  return failed_precondition(fmt::format(
      "gradients of unit '{}' are not all in the gradient of its shard ({}): finish "
      "the backward, with requires_all_reduce, before they are saved",
      unit.name(), gradient_state_name(unit.has_partial() ? GradientState::kPartial : state)));
}

TensorEntry entry_of(std::string name, const ParameterSpec& spec, const ParameterView& view,
                     Box box, Layout::Ptr layout) {
  TensorEntry entry;
  entry.name = std::move(name);
  entry.kind = EntryKind::kSharded;
  entry.local.data = view.bytes.data();
  entry.local.dtype = view.dtype;
  entry.local.device_type = view.place.type;
  entry.local.device_id = view.place.id;
  entry.local.shape = view.shape;
  entry.global_shape = spec.shape;
  entry.pieces.push_back({std::move(box), 0});
  entry.layout = std::move(layout);
  return entry;
}

}  // namespace

Result<Layout::Ptr> parameter_layout(const Hsdp& context, Unit& unit, size_t parameter) {
  SHW_RETURN_IF_ERROR(unit.box(parameter).status());
  return Layouts(context).of(unit, unit.spec(parameter));
}

Status add_to_state(Hsdp& context, std::string_view prefix, StateContent content, State* state) {
  Layouts layouts(context);
  std::vector<TensorEntry> entries;
  for (const auto& unit : context.units()) {
    if (!unit->is_sealed()) continue;
    const bool gradients = content == StateContent::kGradients;
    if (gradients) SHW_RETURN_IF_ERROR(check_gradients_are_there(*unit));
    for (size_t each = 0; each < unit->parameter_count(); ++each) {
      if (gradients && !unit->has_gradient(each)) continue;
      const ParameterSpec& spec = unit->spec(each);
      SHW_ASSIGN_OR_RETURN(const ParameterView view,
                           gradients ? unit->gradient(each) : unit->local(each));
      SHW_ASSIGN_OR_RETURN(Box box, unit->box(each));
      SHW_ASSIGN_OR_RETURN(Layout::Ptr layout, layouts.of(*unit, spec));
      entries.push_back(
          entry_of(std::string(prefix) + spec.fqn, spec, view, std::move(box), std::move(layout)));
    }
  }
  if (std::shared_ptr<WindowAccess> access = context.memory_access(); access != nullptr) {
    const device::DeviceNumber there = context.device().number();
    state->add_access({there.type, there.id, std::move(access)});
  }
  return state->add_tensors(entries);
}

}  // namespace shardwright::hsdp
