// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/group_gradients_internal.h"

#include <algorithm>

#include "core/base/without_exceptions.h"
#include "core/hsdp/runtime_internal.h"

namespace shardwright::hsdp::internal {
namespace {

// Subsets of the trained parameters that are remembered; a host that trains others each time pays
// for a layout each time.
constexpr size_t kMaxSubsets = 64;

void join(const std::vector<bool>& more, std::vector<bool>* members) {
  for (size_t each = 0; each < more.size(); ++each)
    if (more[each]) (*members)[each] = true;
}

GradientSetPtr make_set(const UnitLayout& layout, std::vector<bool> members) {
  auto kept = std::make_shared<const UnitLayout>(layout.keeping(members));
  return std::make_shared<GradientSet>(GradientSet{std::move(members), std::move(kept)});
}

uint64_t width(DType dtype) {
  return static_cast<uint64_t>(dtype_bits(dtype)) / 8;
}

}  // namespace

GroupGradients::GroupGradients(UnitGroup& group)
    : group_(group),
      local_(group.size()),
      in_partial_(group.size(), false),
      in_gradient_(group.size(), false) {}

device::MemoryWork& GroupGradients::work() const {
  return group_.owner().runtime->work();
}

Status GroupGradients::set_trained(const std::vector<bool>& members) {
  if (trained_ != nullptr && trained_->members == members) return {};
  const bool any = std::ranges::find(members, true) != members.end();
  GradientSetPtr next = any ? make_set(group_.layout(), members) : nullptr;
  if (next == nullptr || trained_ == nullptr) {
    clear_partial();
    clear_shard_gradient();
  } else {
    const DTypePolicy& dtypes = group_.dtypes();
    if (partial_) {
      SHW_ASSIGN_OR_RETURN(Buffer moved,
                           spread(*trained_, travelling_sum(partial_.bytes()), *next));
      if (moved) partial_ = std::move(moved);
    }
    if (gradient_) {
      SHW_ASSIGN_OR_RETURN(
          Buffer moved,
          spread(*trained_, {gradient_->bytes(), dtypes.gradient, group_.home()}, *next));
      if (moved) SHW_RETURN_IF_ERROR(keep_gradient(std::move(moved)));
    }
  }
  for (size_t each = 0; each < members.size(); ++each) {
    if (members[each]) continue;
    local_[each].clear();
    in_partial_[each] = false;
    in_gradient_[each] = false;
  }
  trained_ = std::move(next);
  subsets_.clear();
  return {};
}

bool GroupGradients::has_local() const {
  return std::ranges::any_of(local_, [](const auto& each) { return !each.is_empty(); });
}

void GroupGradients::clear_local() {
  for (LocalGradient& each : local_) each.clear();
}

GradientSetPtr GroupGradients::travelling(UnusedPolicy unused) {
  if (trained_ == nullptr || unused == UnusedPolicy::kZero) return trained_;
  std::vector<bool> members = trained_->members;
  for (size_t each = 0; each < members.size(); ++each)
    if (local_[each].is_empty()) members[each] = false;
  if (members == trained_->members) return trained_;
  if (std::ranges::find(members, true) == members.end()) return nullptr;
  if (const auto found = subsets_.find(members); found != subsets_.end()) return found->second;
  if (subsets_.size() >= kMaxSubsets) subsets_.clear();
  GradientSetPtr made = make_set(group_.layout(), members);
  subsets_.emplace(std::move(members), made);
  return made;
}

uint64_t GroupGradients::sum_bytes(const GradientSet& set) const {
  const int64_t elements =
      group_.is_replicated() ? set.layout->replicated_elements() : set.layout->shard_elements();
  return width(group_.dtypes().reduce) * static_cast<uint64_t>(elements);
}

uint64_t GroupGradients::packed_bytes(const GradientSet& set) const {
  const int64_t elements =
      group_.is_replicated() ? set.layout->replicated_elements() : set.layout->gathered_elements();
  return width(group_.dtypes().reduce) * static_cast<uint64_t>(elements);
}

Status GroupGradients::pack(const GradientSet& set, std::span<std::byte> packed) {
  const Packer packer(*set.layout, group_.dtypes().reduce, &work());
  for (size_t each = 0; each < group_.size(); ++each) {
    if (!set.members[each]) continue;
    const GradientBytes& local = local_[each].bytes();
    if (local_[each].is_empty()) {
      SHW_RETURN_IF_ERROR(packer.pack_nothing(each, packed));
    } else {
      SHW_RETURN_IF_ERROR(packer.pack(each, {local.dtype, local.bytes}, packed));
    }
  }
  // Rows of the shard that are no parameter's; each parameter's own padding is written by pack.
  if (set.layout->mode() == LayoutMode::kRagged && !group_.is_replicated())
    return packer.zero_padding(packed);
  return {};
}

GroupGradients::Sum GroupGradients::travelling_sum(std::span<std::byte> bytes) const {
  return {bytes, group_.dtypes().reduce, group_.owner().runtime->shard_home(false)};
}

// The parameters of both sets, where `to` has them; zero elsewhere. No buffer: they have the same
// place in every set, and `sum` itself is now as it would be.
Result<Buffer> GroupGradients::spread(const GradientSet& from, const Sum& sum,
                                      const GradientSet& to) {
  const int32_t rank = group_.shard_rank();
  device::MemoryWork& work = *sum.home.work;
  if (group_.layout().mode() == LayoutMode::kRagged && !group_.is_replicated()) {
    SHW_RETURN_IF_ERROR(Packer(*to.layout, sum.dtype, &work).zero_padding(rank, sum.bytes));
    return Buffer();
  }
  const uint64_t bytes = sum_bytes(to) / width(group_.dtypes().reduce) * width(sum.dtype);
  SHW_ASSIGN_OR_RETURN(
      Buffer result, sum.home.memory->acquire(BufferKind::kScattered, group_.owner().unit, bytes));
  SHW_RETURN_IF_ERROR(work.zero(result.bytes()));
  const Packer source(*from.layout, sum.dtype);
  const Packer target(*to.layout, sum.dtype);
  for (size_t each = 0; each < group_.size(); ++each) {
    if (!from.members[each] || !to.members[each]) continue;
    SHW_RETURN_IF_ERROR(work.copy(source.local(each, rank, std::span<const std::byte>(sum.bytes)),
                                  target.local(each, rank, result.bytes())));
  }
  return result;
}

Status GroupGradients::add_partial(const GradientSet& set, Buffer sum) {
  if (trained_ == nullptr) return {};  // frozen meanwhile
  if (set.layout != trained_->layout) {
    SHW_ASSIGN_OR_RETURN(Buffer moved, spread(set, travelling_sum(sum.bytes()), *trained_));
    if (moved) sum = std::move(moved);
  }
  if (partial_) {
    SHW_RETURN_IF_ERROR(work().add_to(group_.dtypes().reduce, sum.bytes(), partial_.bytes()));
  } else {
    SHW_RETURN_IF_ERROR(sum.retag(BufferKind::kPartial));
    partial_ = std::move(sum);
  }
  join(set.members, &in_partial_);
  return {};
}

Result<Buffer> GroupGradients::join_partial(GradientSetPtr* set, Buffer sum) {
  if (!partial_ || trained_ == nullptr) return sum;
  SHW_RETURN_IF_ERROR(add_partial(**set, std::move(sum)));
  Buffer result = std::move(partial_);
  partial_ = Buffer();
  SHW_RETURN_IF_ERROR(result.retag(BufferKind::kScattered));
  // As many as have one; the others are zero in it.
  *set = in_partial_ == trained_->members
             ? trained_
             : std::make_shared<GradientSet>(GradientSet{in_partial_, trained_->layout});
  in_partial_.assign(group_.size(), false);
  return result;
}

// In the gradient dtype, where the sum lies.
Result<Buffer> GroupGradients::as_gradient(Buffer sum) {
  const DTypePolicy& dtypes = group_.dtypes();
  if (dtypes.reduce == dtypes.gradient) {
    SHW_RETURN_IF_ERROR(sum.retag(BufferKind::kShardGradient));
    return sum;
  }
  const uint64_t bytes = sum.bytes().size() / width(dtypes.reduce) * width(dtypes.gradient);
  SHW_ASSIGN_OR_RETURN(Buffer cast, group_.owner().runtime->memory().acquire(
                                        BufferKind::kShardGradient, group_.owner().unit, bytes));
  SHW_RETURN_IF_ERROR(work().cast(dtypes.reduce, sum.bytes(), dtypes.gradient, cast.bytes()));
  return cast;
}

// A gradient of an offloaded shard, where that lies. It is there when this returns: the host goes
// on with it.
Result<Buffer> GroupGradients::bring_home(Buffer gradient) {
  SHW_ASSIGN_OR_RETURN(
      Buffer here, group_.home().memory->acquire(BufferKind::kShardGradient, group_.owner().unit,
                                                 gradient.bytes().size()));
  SHW_RETURN_IF_ERROR(work().download(gradient.bytes(), here.bytes()));
  SHW_RETURN_IF_ERROR(work().finish());
  return here;
}

Status GroupGradients::add_to_shard(const GradientSet& set, Buffer sum) {
  if (trained_ == nullptr) return {};  // frozen meanwhile
  const DTypePolicy& dtypes = group_.dtypes();
  if (set.layout != trained_->layout) {
    SHW_ASSIGN_OR_RETURN(Buffer moved, spread(set, travelling_sum(sum.bytes()), *trained_));
    if (moved) sum = std::move(moved);
  }
  const bool offloads = group_.owner().offloads;
  if (gradient_ && !offloads) {
    SHW_RETURN_IF_ERROR(
        work().add_cast(dtypes.reduce, sum.bytes(), dtypes.gradient, gradient_->bytes()));
  } else {
    SHW_ASSIGN_OR_RETURN(Buffer gradient, as_gradient(std::move(sum)));
    if (offloads) {
      SHW_ASSIGN_OR_RETURN(gradient, bring_home(std::move(gradient)));
    }
    SHW_RETURN_IF_ERROR(gradient_ ? group_.home().work->add_to(dtypes.gradient, gradient.bytes(),
                                                               gradient_->bytes())
                                  : keep_gradient(std::move(gradient)));
  }
  join(set.members, &in_gradient_);
  return {};
}

Status GroupGradients::keep_gradient(Buffer sum) {
  return without_exceptions("keeping a gradient", [&] {
    gradient_ = std::make_shared<Buffer>(std::move(sum));
    return Status();
  });
}

bool GroupGradients::has_shard_gradient(size_t parameter) const {
  return in_gradient_[parameter];
}

std::span<std::byte> GroupGradients::shard_gradient(size_t parameter) const {
  const Packer packer(*trained_->layout, group_.dtypes().gradient);
  return packer.local(parameter, group_.shard_rank(), gradient_->bytes());
}

void GroupGradients::clear_partial() {
  partial_ = Buffer();
  in_partial_.assign(group_.size(), false);
}

void GroupGradients::clear_shard_gradient() {
  gradient_ = nullptr;
  in_gradient_.assign(group_.size(), false);
}

}  // namespace shardwright::hsdp::internal
