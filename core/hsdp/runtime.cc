// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/runtime_internal.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/hsdp/reduction_internal.h"
#include "core/hsdp/staged_communicator_internal.h"
#include "core/hsdp/unit.h"

namespace shardwright::hsdp::internal {
namespace {

constexpr int32_t kMaxLanes = 3;

Status check_axis(const HsdpMesh& mesh, int32_t axis, std::string_view what) {
  const int32_t axes = static_cast<int32_t>(mesh.mesh().shape.size());
  if (axis >= -1 && axis < axes) return {};
  return invalid_argument(
      fmt::format("the {} axis {} is not one of the {} of the mesh", what, axis, axes));
}

Status check_options(const HsdpOptions& options, const HsdpMesh& mesh) {
  SHW_RETURN_IF_ERROR(check_axis(mesh, options.shard_axis, "shard"));
  SHW_RETURN_IF_ERROR(check_axis(mesh, options.replicate_axis, "replicate"));
  if (options.shard_axis >= 0 && options.shard_axis == options.replicate_axis)
    return invalid_argument(
        fmt::format("axis {} cannot both shard and replicate", options.shard_axis));
  if (options.lanes < 0 || options.lanes > kMaxLanes)
    return invalid_argument(fmt::format("lanes is {}, not 0 to {}", options.lanes, kMaxLanes));
  if (options.max_inflight_reduce < 1)
    return invalid_argument(
        fmt::format("max_inflight_reduce is {}, below 1", options.max_inflight_reduce));
  if (options.prefetch_depth < 0)
    return invalid_argument(fmt::format("prefetch_depth is {}, below 0", options.prefetch_depth));
  return {};
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(const HsdpOptions& options,
                                                 std::shared_ptr<HsdpMesh> mesh,
                                                 std::shared_ptr<device::LaneDevice> device) {
  if (mesh == nullptr || device == nullptr)
    return invalid_argument("a context needs a mesh and a device");
  SHW_RETURN_IF_ERROR(check_options(options, *mesh));
  auto runtime = std::unique_ptr<Runtime>(new Runtime());
  runtime->options_ = options;
  runtime->mesh_ = std::move(mesh);
  runtime->device_ = std::move(device);
  SHW_ASSIGN_OR_RETURN(runtime->work_, device::make_memory_work(runtime->device_));
  SHW_ASSIGN_OR_RETURN(runtime->host_work_,
                       device::make_memory_work(device::make_host_lane_device(true)));
  runtime->memory_ = std::make_shared<UnitMemory>(runtime->device_, runtime->work_);
  runtime->pinned_ =
      std::make_shared<UnitMemory>(runtime->device_, runtime->work_, MemoryPlace::kPinned);
  SHW_RETURN_IF_ERROR(runtime->make_channels());
  SHW_RETURN_IF_ERROR(runtime->make_lanes());
  return runtime;
}

Runtime::~Runtime() = default;

Home Runtime::shard_home(bool offloads) {
  if (offloads) return {pinned_.get(), host_work_.get(), {}};
  return {memory_.get(), work_.get(), device_->number()};
}

// Tasks of another device's lanes may not call it, which waiting for a transport does: what is done
// beside the caller there is what is put on its lanes anyway.
Status Runtime::make_lanes() {
  if (!device_->is_host()) return {};
  const size_t count = static_cast<size_t>(options_.lanes);
  for (size_t each = 0; each < count; ++each) {
    SHW_ASSIGN_OR_RETURN(std::unique_ptr<device::Lane> lane,
                         device_->make_lane(static_cast<int32_t>(each)));
    lanes_.push_back(std::move(lane));
  }
  for (size_t role = 0; count > 0 && role < lane_of_role_.size(); ++role)
    lane_of_role_[role] = lanes_[std::min(role, count - 1)].get();
  return {};
}

Result<std::shared_ptr<Channel>> Runtime::make_channel(int32_t axis, CommunicatorLane lane) const {
  if (mesh_->axis_size(axis) == 1) return std::shared_ptr<Channel>();
  collective::CommunicatorPtr communicator = mesh_->communicator(axis, lane);
  if (communicator == nullptr)
    return failed_precondition(fmt::format("{} has {} ranks and no communicator",
                                           axis_text(mesh_->mesh(), static_cast<size_t>(axis)),
                                           mesh_->axis_size(axis)));
  return make_channel(std::move(communicator));
}

Result<std::shared_ptr<Channel>> Runtime::make_channel(
    collective::CommunicatorPtr communicator) const {
  const bool reaches_host = communicator->can(collective::kReachesHostMemory);
  const bool reaches_units =
      device_->is_host() ? reaches_host : communicator->can(collective::kReachesDeviceMemory);
  if (!reaches_host && !reaches_units)
    return invalid_argument(fmt::format("communicator '{}' does not reach the memory of the host{}",
                                        communicator->name(),
                                        device_->is_host() ? "" : ", nor that of a device"));
  Channel::Reach reach{communicator, communicator, communicator, work_};
  if (!reaches_units)
    reach.of_units = make_staged_communicator(communicator, StagedThrough::kHost, work_, pinned_);
  if (!reaches_host)
    reach.of_host = make_staged_communicator(communicator, StagedThrough::kDevice, work_, memory_);
  return std::make_shared<Channel>(std::move(reach), options_.timeout_ns,
                                   compared_steps_ < options_.order_guard_steps);
}

Status Runtime::make_channels() {
  const int32_t shard = options_.shard_axis;
  SHW_ASSIGN_OR_RETURN(gather_, make_channel(shard, CommunicatorLane::kGather));
  reduce_ = gather_;
  if (mesh_->communicator(shard, CommunicatorLane::kReduce) !=
      mesh_->communicator(shard, CommunicatorLane::kGather)) {
    SHW_ASSIGN_OR_RETURN(reduce_, make_channel(shard, CommunicatorLane::kReduce));
  }
  SHW_ASSIGN_OR_RETURN(replicate_,
                       make_channel(options_.replicate_axis, CommunicatorLane::kReduce));
  secondary_.clear();
  if (replicate_ != nullptr && !replicate_->sums_in_order(options_.unordered))
    return failed_precondition(
        fmt::format("communicator '{}' sums in an order of its own; choose `unordered` where "
                    "results may depend on it",
                    replicate_->communicator_name()));
  return {};
}

Result<Channel*> Runtime::secondary_channel(int32_t size) {
  if (const auto found = secondary_.find(size); found != secondary_.end())
    return found->second.get();
  collective::CommunicatorPtr communicator =
      mesh_->secondary_communicator(options_.shard_axis, size);
  if (communicator == nullptr)
    return failed_precondition(fmt::format(
        "parameters are to be kept by {} ranks after forward, and the mesh has no communicator of "
        "{} neighbours on its shard axis",
        size, size));
  SHW_ASSIGN_OR_RETURN(std::shared_ptr<Channel> channel, make_channel(std::move(communicator)));
  return secondary_.emplace(size, std::move(channel)).first->second.get();
}

Status Runtime::check_usable() const {
  if (failure_.ok()) return {};
  return failed_precondition(
      fmt::format("the context has failed and must be reset, with new communicators: {}",
                  failure_.to_string()));
}

// Not those of the mesh, which may have new ones already.
std::vector<collective::CommunicatorPtr> Runtime::used_communicators() const {
  std::vector<collective::CommunicatorPtr> used;
  for (const auto& each : {gather_, reduce_, replicate_})
    if (each != nullptr) used.push_back(each->communicator());
  for (const auto& [size, each] : secondary_) used.push_back(each->communicator());
  return used;
}

Status Runtime::fail(const Status& cause) {
  if (!failure_.ok()) return failure_;
  failure_ = cause;
  failed_communicators_ = used_communicators();
  for (const auto& each : failed_communicators_) each->abort(cause);
  return failure_;
}

void Runtime::release() {
  bool pending = !reductions_.empty();
  for (const Unit* each : units_) pending = pending || each->state() == UnitState::kGathering;
  // Lanes that wait for other ranks are woken, and those ranks told.
  if (pending)
    static_cast<void>(fail(aborted("a rank released its context with operations under way")));
  give_up();
}

void Runtime::give_up() {
  reductions_.clear();
  for (Unit* each : units_) each->give_up_gather();
}

Status Runtime::renew() {
  for (const auto& each : mesh_->all_communicators()) {
    if (std::ranges::find(failed_communicators_, each) == failed_communicators_.end()) continue;
    return failed_precondition(fmt::format(
        "communicator '{}' has failed ({}); the mesh needs new ones before the context is reset",
        each->name(), failure_.to_string()));
  }
  // Without a failure, too: a host that knew of one may have set new ones.
  SHW_RETURN_IF_ERROR(make_channels());
  failure_ = {};
  failed_communicators_.clear();
  schedule_.abandon();
  running_.clear();
  nested_ = false;
  return {};
}

// All or nothing where there is no memory.
void Runtime::add_unit(Unit* unit) {
  units_.reserve(units_.size() + 1);
  schedule_.add_unit(unit->id());
  units_.push_back(unit);
}

std::vector<UnitId> Runtime::begin_forward(UnitId unit) {
  if (!running_.empty()) nested_ = true;
  running_.push_back(unit);
  return schedule_.forward(unit, static_cast<size_t>(options_.prefetch_depth));
}

std::vector<UnitId> Runtime::begin_backward(UnitId unit) {
  return schedule_.backward(unit, static_cast<size_t>(options_.prefetch_depth));
}

bool Runtime::end_forward(UnitId unit) {
  // Those inside it that never ended were left by an exception.
  while (!running_.empty() && running_.back() != unit) running_.pop_back();
  if (running_.empty()) return false;
  running_.pop_back();
  if (!running_.empty()) return false;
  const bool is_root = nested_;
  nested_ = false;
  return is_root;
}

void Runtime::finish_iteration() {
  schedule_.finish();
  running_.clear();
  nested_ = false;
}

Status Runtime::prefetch(const std::vector<UnitId>& units, Direction direction) {
  uint64_t ahead = 0;
  for (const UnitId each : units) {
    Unit& unit = *units_[static_cast<size_t>(each)];
    // Its seal failed, on all ranks: it takes no part in training, though its creation foretold it.
    if (!unit.is_sealed()) continue;
    ahead += unit.gathered_bytes();
    if (options_.prefetch_bytes_max > 0 && ahead > options_.prefetch_bytes_max) break;
    SHW_RETURN_IF_ERROR(direction == Direction::kForward ? unit.start_unshard()
                                                         : unit.start_unshard_for_backward());
  }
  return {};
}

Status Runtime::make_room_for_reduction() {
  // Sums that travel over the replicas had the time of one unit.
  while (!reductions_.empty() && !reductions_.front()->is_scattering())
    SHW_RETURN_IF_ERROR(finish_reductions(reductions_.front()->number()));
  const size_t allowed = static_cast<size_t>(options_.max_inflight_reduce) - 1;
  size_t scattering = 0;
  for (const auto& each : reductions_)
    if (each->is_scattering()) ++scattering;
  for (size_t each = 0; scattering > allowed; ++each, --scattering) {
    if (const Status outcome = reductions_[each]->finish_scatter(); !outcome.ok())
      return fail(outcome);
  }
  while (!reductions_.empty() && reductions_.front()->has_come())
    SHW_RETURN_IF_ERROR(finish_reductions(reductions_.front()->number()));
  return {};
}

void Runtime::add_reduction(std::unique_ptr<UnitReduction> reduction) {
  reduction->set_number(++issued_reductions_);
  reductions_.push_back(std::move(reduction));
}

Status Runtime::finish_reductions(uint64_t last) {
  // All sums over the replicas are on their way before the first is waited for.
  for (const auto& each : reductions_) {
    if (each->number() > last) break;
    if (const Status outcome = each->finish_scatter(); !outcome.ok()) return fail(outcome);
  }
  while (!reductions_.empty() && reductions_.front()->number() <= last) {
    if (const Status outcome = reductions_.front()->finish(); !outcome.ok()) return fail(outcome);
    reductions_.pop_front();
  }
  return {};
}

Result<bool> Runtime::bring_on_reductions(uint64_t last, int64_t timeout_ns) {
  const bool issue_waits = replicate_ != nullptr && !replicate_->issues_without_waiting();
  for (const auto& each : reductions_) {
    if (each->number() > last) break;
    const Result<bool> came = each->wait_scatter(timeout_ns);
    if (!came.ok()) return fail(came.status());
    if (!*came || (timeout_ns == 0 && issue_waits)) return false;
    if (const Status outcome = each->finish_scatter(); !outcome.ok()) return fail(outcome);
  }
  while (!reductions_.empty() && reductions_.front()->number() <= last) {
    const Result<bool> came = reductions_.front()->wait_sums(timeout_ns);
    if (!came.ok()) return fail(came.status());
    if (!*came) return false;
    SHW_RETURN_IF_ERROR(finish_reductions(reductions_.front()->number()));
  }
  return true;
}

GradientState Runtime::gradient_state(UnitId unit) const {
  GradientState result = GradientState::kNone;
  for (const auto& each : reductions_) {
    if (each->unit() != unit) continue;
    result = each->is_scattering() ? GradientState::kScattering : GradientState::kReplicating;
  }
  return result;
}

bool Runtime::has_ended(uint64_t reduction) const {
  return reductions_.empty() || reductions_.front()->number() > reduction;
}

std::string Runtime::unit_name(UnitId unit) const {
  return unit < units_.size() ? units_[static_cast<size_t>(unit)]->name()
                              : fmt::format("number {}", unit);
}

Status Runtime::compare_order() {
  if (compared_steps_ >= options_.order_guard_steps) return {};
  const bool last = ++compared_steps_ == options_.order_guard_steps;
  std::vector<std::pair<Channel*, int32_t>> channels = {{gather_.get(), options_.shard_axis}};
  if (reduce_ != gather_) channels.emplace_back(reduce_.get(), options_.shard_axis);
  channels.emplace_back(replicate_.get(), options_.replicate_axis);
  for (const auto& [channel, axis] : channels)
    if (channel != nullptr) SHW_RETURN_IF_ERROR(compare_order(*channel, axis, 0, last));
  for (const auto& [size, channel] : secondary_) {
    const int32_t first = mesh_->coordinate(options_.shard_axis) / size * size;
    SHW_RETURN_IF_ERROR(compare_order(*channel, options_.shard_axis, first, last));
  }
  return {};
}

Status Runtime::compare_order(Channel& channel, int32_t axis, int32_t first_coordinate, bool last) {
  const OrderGuard::Names names{
      [this](UnitId unit) { return unit_name(unit); },
      [&](int32_t rank) { return mesh_->rank_at(axis, first_coordinate + rank); }};
  const Status outcome = channel.compare_order(names, last);
  return outcome.ok() ? outcome : fail(outcome);
}

}  // namespace shardwright::hsdp::internal
