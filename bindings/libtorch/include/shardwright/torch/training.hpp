// SPDX-License-Identifier: Apache-2.0
//
// The units of a model together: their communicators, what happens between iterations, checkpoints.
// Part of hsdp.hpp; hosts use Context there.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <shardwright/torch/autograd.hpp>
#include <shardwright/torch/handles.hpp>
#include <shardwright/torch/unit.hpp>

namespace shardwright::hsdp {

// How ranks reach each other: names under which process groups are registered (c10d); nothing of
// ours runs over these groups themselves, but over Gloo groups made beside them, by their stores.
struct Options {
  std::string shard_group{};      // the ranks among which parameters are sharded
  std::string replicate_group{};  // those that hold the same shard; "" = there are none
  std::string all_group{};        // all ranks, replicas outermost; "" = shard_group
  std::string gloo{};             // a registered group with Gloo, where the groups have none
  double seconds = 1800;          // of each operation at most
  double poll_seconds = 0.5;      // how often a rank asks for failures of the others
  int32_t prefetch_depth = 1;     // units that are gathered ahead
  std::string plugin = "torch";   // name or path of libshardwright_torch.so
};

namespace detail {

using shardwright::detail::check;
using shardwright::detail::CollectiveHandle;
using shardwright::detail::CommunicatorHandle;
using shardwright::detail::ContextHandle;
using shardwright::detail::HsdpHandle;
using shardwright::detail::json_text;
using shardwright::detail::made;
using shardwright::detail::MeshHandle;
using shardwright::detail::ReportHandle;
using shardwright::detail::StateHandle;

class Training : public std::enable_shared_from_this<Training> {
 public:
  explicit Training(const Options& options) : options_(options) {
    context_ = made<ContextHandle>(
        [](shw_context** out, shw_error** err) { return shw_context_create(nullptr, out, err); });
    check([&](shw_error** err) {
      return shw_context_load_plugin(context_.get(), options_.plugin.c_str(), err);
    });
    open_communicators();
    make_mesh();
    connect();
    make_hsdp();
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  UnitState& add_unit(const std::string& name, torch::nn::Module& module,
                      const UnitOptions& options) {
    std::vector<FoundParameter> found;
    std::unordered_map<const void*, size_t> numbers;
    for (const auto& item : module.named_parameters()) {
      const at::Tensor& tensor = item.value();
      const std::string path = name + (name.empty() ? "" : ".") + item.key();
      const void* const key = tensor.unsafeGetTensorImpl();
      if (owned_.contains(key)) continue;
      const auto [place, is_first] = numbers.emplace(key, found.size());
      if (is_first) {
        found.push_back({path, {}, tensor});
      } else {
        found[place->second].aliases.push_back(path);
      }
    }
    if (found.empty())
      throw Error(SHW_INVALID_ARGUMENT,
                  "unit '" + name +
                      "' has no parameters that no unit before it has: make units of "
                      "children before those of their parents");
    auto unit = std::make_unique<UnitState>(hsdp_.get(), name, found, options, pool_);
    for (const FoundParameter& each : found)
      owned_.emplace(each.tensor.unsafeGetTensorImpl(), true);
    units_.push_back(std::move(unit));
    return *units_.back();
  }

  // ---- phases ----

  void enter(UnitState& unit) {
    const bool is_recompute = backward_task() != -1;
    if (!is_recompute) {
      if (waits_for_end_)
        throw Error(SHW_FAILED_PRECONDITION,
                    "a backward did not come to its end: call Context::reset on all ranks");
      look_for_changes();
    }
    unit.pre_forward(torch::GradMode::is_enabled() && !is_recompute);
  }
  void leave(UnitState& unit) {
    const bool is_recompute = backward_task() != -1;
    unit.post_forward(torch::GradMode::is_enabled() && !is_recompute, is_recompute);
  }
  void before_backward(UnitState& unit) {
    if (!waits_for_end_) {
      waits_for_end_ = true;
      torch::autograd::Engine::get_default_engine().queue_callback(
          [self = shared_from_this()] { self->end_backward(); });
    }
    unit.pre_backward();
  }
  void after_backward(UnitState& unit) { unit.post_backward(); }

  // ---- the whole ----

  torch::OrderedDict<std::string, at::Tensor> state_dict() const {
    torch::OrderedDict<std::string, at::Tensor> made_of;
    for (const auto& unit : units_) {
      for (const UnitParameter& each : unit->params()) made_of.insert(each.name, each.shard);
    }
    return made_of;
  }

  void set(int32_t key, int64_t value) {
    check([&](shw_error** err) { return shw_hsdp_set_i64(hsdp_.get(), key, value, err); });
  }

  void save(const std::string& path) {
    const StateHandle state = described();
    const CollectiveHandle collective = open_collective();
    static_cast<void>(made<ReportHandle>([&](shw_report** out, shw_error** err) {
      return shw_save(context_.get(), state.get(), nullptr, path.c_str(), collective.get(), nullptr,
                      out, err);
    }));
  }
  void load(const std::string& path) {
    const StateHandle state = described();
    const CollectiveHandle collective = open_collective();
    static_cast<void>(made<ReportHandle>([&](shw_report** out, shw_error** err) {
      return shw_load(context_.get(), state.get(), nullptr, path.c_str(), collective.get(), nullptr,
                      out, err);
    }));
    step_event();
  }

  void reset() {
    waits_for_end_ = false;
    open_communicators();
    connect();
    check([&](shw_error** err) { return shw_hsdp_reset(hsdp_.get(), err); });
    for (const auto& unit : units_) unit->drop_gradients();
  }
  void release_memory() { pool_->release(); }

  // Other ranks get ABORTED with the message.
  void abort(std::string_view message) noexcept {
    for (const Lane& lane : lanes_) {
      // Refused only where there is no communicator.
      [[maybe_unused]] const shw_status status = shw_communicator_abort(
          lane.communicator.get(), SHW_ABORTED, message.data(), message.size(), nullptr);
    }
  }

 private:
  // A communicator, and what it is for.
  struct Lane {
    int32_t axis = 0;
    int32_t lane = 0;
    CommunicatorHandle communicator;
  };

  std::string config(const std::string& group, const std::string& use) const {
    return "{\"group\": " + json_text(group) + ", \"use\": " + json_text(use) +
           ", \"gloo\": " + json_text(options_.gloo) +
           ", \"seconds\": " + std::to_string(options_.seconds) +
           ", \"poll_seconds\": " + std::to_string(options_.poll_seconds) + "}";
  }
  CommunicatorHandle open(const std::string& group, const std::string& use) const {
    const std::string text = config(group, use);
    return made<CommunicatorHandle>([&](shw_communicator** out, shw_error** err) {
      return shw_context_open_communicator(context_.get(), "torch", text.data(), text.size(), out,
                                           err);
    });
  }
  bool has_replicas() const { return !options_.replicate_group.empty(); }
  int32_t shard_axis() const { return has_replicas() ? 1 : 0; }

  // Gathers and reductions have one each: they travel at a time.
  void open_communicators() {
    lanes_.clear();
    lanes_.push_back({shard_axis(), SHW_HSDP_LANE_GATHER, open(options_.shard_group, "gather")});
    lanes_.push_back({shard_axis(), SHW_HSDP_LANE_REDUCE, open(options_.shard_group, "reduce")});
    if (has_replicas())
      lanes_.push_back({0, SHW_HSDP_LANE_GATHER, open(options_.replicate_group, "replicate")});
  }

  void make_mesh() {
    const shw_communicator* const shards = lanes_.front().communicator.get();
    std::vector<int64_t> shape{shw_communicator_size(shards)};
    int32_t rank = shw_communicator_rank(shards);
    if (has_replicas()) {
      const shw_communicator* const replicas = lanes_.back().communicator.get();
      rank += shw_communicator_rank(replicas) * static_cast<int32_t>(shape[0]);
      shape.insert(shape.begin(), shw_communicator_size(replicas));
    }
    shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
    spec.mesh_ndim = static_cast<int32_t>(shape.size());
    spec.mesh_shape = shape.data();
    mesh_ = made<MeshHandle>([&](shw_hsdp_mesh** out, shw_error** err) {
      return shw_hsdp_mesh_create(&spec, rank, out, err);
    });
  }
  void connect() {
    for (const Lane& lane : lanes_) {
      check([&](shw_error** err) {
        return shw_hsdp_mesh_set_communicator(mesh_.get(), lane.axis, lane.lane,
                                              lane.communicator.get(), err);
      });
    }
  }
  void make_hsdp() {
    shw_hsdp_options wanted = SHW_HSDP_OPTIONS_INIT;
    wanted.mesh = mesh_.get();
    wanted.shard_axis = shard_axis();
    wanted.replicate_axis = has_replicas() ? 0 : -1;
    wanted.prefetch_depth = options_.prefetch_depth == 0 ? -1 : options_.prefetch_depth;
    wanted.timeout_ns = static_cast<int64_t>(options_.seconds * 1e9);
    hsdp_ = made<HsdpHandle>([&](shw_hsdp** out, shw_error** err) {
      return shw_hsdp_create(context_.get(), &wanted, out, err);
    });
  }
  CollectiveHandle open_collective() const {
    if (has_replicas() && options_.all_group.empty())
      throw Error(
          SHW_FAILED_PRECONDITION,
          "checkpoints of a model with replicas need the group of all ranks: set all_group");
    const std::string text =
        config(options_.all_group.empty() ? options_.shard_group : options_.all_group, "calls");
    return made<CollectiveHandle>([&](shw_collective** out, shw_error** err) {
      return shw_context_open_collective(context_.get(), "torch", text.data(), text.size(), out,
                                         err);
    });
  }

  StateHandle described() {
    StateHandle state = made<StateHandle>(
        [](shw_state** out, shw_error** err) { return shw_state_create(out, err); });
    check([&](shw_error** err) {
      return shw_hsdp_add_to_state(hsdp_.get(), nullptr, 0, SHW_HSDP_PARAMS, state.get(), err);
    });
    return state;
  }

  // What an optimizer has written is seen.
  void look_for_changes() {
    bool changed = false;
    for (const auto& unit : units_) changed = unit->look_for_changes() || changed;
    if (changed) step_event();
  }
  void step_event() {
    check([&](shw_error** err) { return shw_hsdp_step_event(hsdp_.get(), 0, err); });
  }

  // What no unit has handed over is reduced by the library, in an order that does not depend on
  // which of them this rank has used.
  void end_backward() {
    waits_for_end_ = false;
    for (const auto& unit : units_) unit->hand_over();
    check([&](shw_error** err) { return shw_hsdp_finalize_backward(hsdp_.get(), err); });
    for (const auto& unit : units_) unit->take_gradients();
    check([&](shw_error** err) { return shw_hsdp_zero_grads(hsdp_.get(), err); });
  }

  const Options options_;
  ContextHandle context_;
  std::vector<Lane> lanes_;
  MeshHandle mesh_;
  HsdpHandle hsdp_;
  std::shared_ptr<RecycledMemory> pool_ = std::make_shared<RecycledMemory>();  // and its units
  std::vector<std::unique_ptr<UnitState>> units_;
  std::unordered_map<const void*, bool> owned_;  // parameters that have a unit
  bool waits_for_end_ = false;                   // the end of a backward will be told
};

// Of one run of a unit: the first gradient of its outputs that comes in a backward gathers the
// parameters.
class BeforeBackward {
 public:
  static BeforeBackward of(std::shared_ptr<Training> training, UnitState* unit) {
    return BeforeBackward(std::move(training), unit);
  }
  void operator()(at::Tensor& output) const {
    if (!torch::GradMode::is_enabled() || !output.requires_grad()) return;
    output.register_hook([training = training_, unit = unit_, seen = seen_](const at::Tensor&) {
      if (*seen == backward_task()) return;
      *seen = backward_task();
      training->before_backward(*unit);
    });
  }

 private:
  BeforeBackward(std::shared_ptr<Training> training, UnitState* unit)
      : training_(std::move(training)), unit_(unit), seen_(std::make_shared<int>(-1)) {}

  std::shared_ptr<Training> training_;
  UnitState* unit_;
  std::shared_ptr<int> seen_;  // the backward that has gathered; co-owned by the hooks
};

}  // namespace detail
}  // namespace shardwright::hsdp
