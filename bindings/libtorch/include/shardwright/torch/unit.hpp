// SPDX-License-Identifier: Apache-2.0
//
// A unit of HSDP over the parameters of a module: how its phases follow from forward and backward
// of torch. Part of hsdp.hpp; hosts use Unit and Context there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <shardwright/torch/autograd.hpp>
#include <shardwright/torch/handles.hpp>

namespace shardwright::hsdp {

// How a unit is made; zeros are the library's defaults.
struct UnitOptions {
  int32_t reshard_after_forward = SHW_HSDP_RESHARD_AUTO;  // SHW_HSDP_RESHARD_
  int32_t reduce_dtype = 0;  // in which gradients are summed, SHW_FLOAT32 and others
};

namespace detail {

using shardwright::detail::check;
using shardwright::detail::made;
using shardwright::detail::UnitHandle;

// The library's number of a dtype of parameters.
inline int32_t dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return SHW_FLOAT32;
    case at::kDouble:
      return SHW_FLOAT64;
    case at::kBFloat16:
      return SHW_BFLOAT16;
    case at::kHalf:
      return SHW_FLOAT16;
    default:
      throw Error(SHW_INVALID_ARGUMENT, std::string("a parameter of dtype ") +
                                            c10::toString(tensor.scalar_type()) +
                                            " cannot be trained: it is none of float32, float64, "
                                            "bfloat16 and float16");
  }
}

// The whole parameters of a unit, to which the library calls for memory as long as it has the unit:
// longer, maybe, than the host has it.
class WholeMemory {
 public:
  explicit WholeMemory(std::shared_ptr<RecycledMemory> pool) : pool_(std::move(pool)) {}

  void add(at::Tensor tensor, const std::string& name) {
    params_.emplace_back(std::move(tensor), name);
  }
  at::Tensor& tensor(size_t index) { return params_[index].tensor(); }

  // Owns `memory` on success of shw_hsdp_unit_set_allocator.
  static shw_hsdp_allocator table(std::unique_ptr<std::shared_ptr<WholeMemory>>& memory) {
    shw_hsdp_allocator allocator = SHW_HSDP_ALLOCATOR_INIT;
    allocator.user = memory.get();
    allocator.allocate = on_allocate;
    allocator.deallocate = on_deallocate;
    allocator.release = on_release;
    return allocator;
  }

 private:
  using Owner = std::shared_ptr<WholeMemory>;  // co-owned by the unit of the host

  // On the thread that calls the unit.
  static shw_status SHW_CALLBACK on_allocate(void* user, uint64_t param, uint64_t bytes, void** out,
                                             shw_error**) {
    WholeMemory& self = **static_cast<Owner*>(user);
    try {
      const auto size_bytes = static_cast<size_t>(bytes);
      *out = self.params_.at(static_cast<size_t>(param))
                 .give(self.pool_->take(size_bytes), size_bytes);
      return SHW_OK;
    } catch (...) {
      return SHW_RESOURCE_EXHAUSTED;
    }
  }
  static void SHW_CALLBACK on_deallocate(void* user, uint64_t param, void*, uint64_t bytes) {
    WholeMemory& self = **static_cast<Owner*>(user);
    try {
      self.pool_->keep(static_cast<size_t>(bytes),
                       self.params_.at(static_cast<size_t>(param)).take_back());
    } catch (...) {
      // No memory for the list: what was taken back is freed.
    }
  }
  static void SHW_CALLBACK on_release(void* user) { delete static_cast<Owner*>(user); }

  std::shared_ptr<RecycledMemory> pool_;  // co-owned by the units of a context
  std::vector<WholeParameter> params_;
};

struct UnitParameter {
  std::string name;
  std::vector<std::string> aliases;
  at::Tensor shard;
  void* address = nullptr;  // of the shard
  int64_t seen_version = 0;
  bool is_frozen = false;
};

// Names and tensors of a unit before it is sealed, as the C interface wants them.
class ParameterBatch {
 public:
  void add(const UnitParameter& param, const at::Tensor& full) {
    names_ += param.name;
    name_ends_.push_back(names_.size());
    for (const std::string& alias : param.aliases) {
      aliases_ += alias;
      alias_ends_.push_back(aliases_.size());
    }
    alias_ranges_.push_back(alias_ends_.size() - 1);
    flags_.push_back(param.is_frozen ? SHW_HSDP_PARAM_FROZEN : 0);
    shw_tensor tensor = SHW_TENSOR_INIT;
    tensor.data = full.data_ptr();
    tensor.byte_size = full.nbytes();
    tensor.device_type = SHW_DEVICE_CPU;
    tensor.dtype = dtype_of(full);
    tensor.ndim = static_cast<int32_t>(full.dim());
    tensor.shape = full.sizes().data();
    tensors_.push_back(tensor);
  }
  shw_hsdp_param_batch table() const {
    shw_hsdp_param_batch batch = SHW_HSDP_PARAM_BATCH_INIT;
    batch.count = tensors_.size();
    batch.names = names_.data();
    batch.name_offsets = name_ends_.data();
    batch.tensors = tensors_.data();
    batch.param_flags = flags_.data();
    if (alias_ends_.size() == 1) return batch;
    batch.aliases = aliases_.data();
    batch.alias_offsets = alias_ends_.data();
    batch.alias_ranges = alias_ranges_.data();
    return batch;
  }

 private:
  std::string names_;
  std::string aliases_;
  std::vector<uint64_t> name_ends_{0};
  std::vector<uint64_t> alias_ends_{0};
  std::vector<uint64_t> alias_ranges_{0};
  std::vector<uint32_t> flags_;
  std::vector<shw_tensor> tensors_;
};

// A parameter as it was found: the first of its names, and the others.
struct FoundParameter {
  std::string name;
  std::vector<std::string> aliases;
  at::Tensor tensor;
};

class UnitState {
 public:
  // Collective. The tensors of `found` lose their memory; values go into shards.
  UnitState(shw_hsdp* hsdp, const std::string& name, std::vector<FoundParameter> found,
            const UnitOptions& options, std::shared_ptr<RecycledMemory> pool)
      : memory_(std::make_shared<WholeMemory>(std::move(pool))) {
    shw_hsdp_unit_options wanted = SHW_HSDP_UNIT_OPTIONS_INIT;
    wanted.reshard_after_forward = options.reshard_after_forward;
    wanted.reduce_dtype = options.reduce_dtype;
    core_ = made<UnitHandle>([&](shw_hsdp_unit** out, shw_error** err) {
      return shw_hsdp_unit_create(hsdp, name.data(), name.size(), &wanted, out, err);
    });
    take_parameters(std::move(found));
  }
  UnitState(const UnitState&) = delete;
  UnitState& operator=(const UnitState&) = delete;

  std::vector<UnitParameter>& params() { return params_; }
  shw_hsdp_unit* core() { return core_.get(); }
  bool is_unsharded() const { return shw_hsdp_unit_state(core_.get()) == SHW_HSDP_UNSHARDED; }

  // Whether a shard was written to since it was looked at. FAILED_PRECONDITION where its memory was
  // replaced.
  bool look_for_changes() {
    bool changed = false;
    for (size_t index = 0; index < params_.size(); ++index) {
      UnitParameter& each = params_[index];
      const bool is_frozen = !memory_->tensor(index).requires_grad();
      if (is_frozen != each.is_frozen) {
        each.is_frozen = is_frozen;
        check([&](shw_error** err) {
          return shw_hsdp_unit_set_frozen(core_.get(), index, is_frozen ? 1 : 0, err);
        });
      }
      if (each.shard.numel() > 0 && each.shard.data_ptr() != each.address)
        throw Error(SHW_FAILED_PRECONDITION,
                    "the shard of " + each.name +
                        " has other memory than the library gave it: copy into it (copy_) instead");
      const auto version = static_cast<int64_t>(each.shard._version());
      changed = changed || version != each.seen_version;
      each.seen_version = version;
    }
    return changed;
  }

  // is_recompute: inside of a backward. counts: a backward follows.
  void pre_forward(bool counts) {
    shw_hsdp_phase_options options = SHW_HSDP_PHASE_OPTIONS_INIT;
    options.flags = counts ? 0 : SHW_HSDP_RECOMPUTE;
    check([&](shw_error** err) { return shw_hsdp_unit_pre_forward(core_.get(), &options, err); });
  }
  void post_forward(bool counts, bool is_recompute) {
    shw_hsdp_phase_options options = SHW_HSDP_PHASE_OPTIONS_INIT;
    options.flags = is_recompute ? SHW_HSDP_RECOMPUTE : 0;
    check([&](shw_error** err) {
      if (counts || is_recompute) return shw_hsdp_unit_post_forward(core_.get(), &options, err);
      return shw_hsdp_unit_reshard(core_.get(), SHW_HSDP_FORWARD, err);
    });
  }
  void pre_backward() {
    check([&](shw_error** err) { return shw_hsdp_unit_pre_backward(core_.get(), err); });
  }
  void post_backward() {
    hand_over();
    check([&](shw_error** err) { return shw_hsdp_unit_post_backward(core_.get(), err); });
  }

  // Gradients of whole parameters go to the library, which holds them until they were reduced.
  void hand_over() {
    std::vector<uint64_t> numbers;
    std::vector<DLManagedTensorVersioned*> grads;
    for (size_t index = 0; index < params_.size(); ++index) {
      at::Tensor& grad = memory_->tensor(index).mutable_grad();
      if (!grad.defined()) continue;
      numbers.push_back(index);
      grads.push_back(at::toDLPackVersioned(grad.detach().contiguous()));
      grad = at::Tensor();
    }
    if (grads.empty()) return;
    try {
      check([&](shw_error** err) {
        return shw_hsdp_unit_add_grads_dlpack(core_.get(), numbers.data(), grads.data(),
                                              grads.size(), SHW_HSDP_TAKE, err);
      });
    } catch (...) {
      for (DLManagedTensorVersioned* each : grads) each->deleter(each);
      throw;
    }
  }

  // What the library has summed is added to the gradients of the shards.
  void take_gradients() {
    for (size_t index = 0; index < params_.size(); ++index) {
      UnitParameter& each = params_[index];
      const shw_tensor view = view_of(SHW_HSDP_VIEW_GRAD, index);
      at::Tensor grad;
      if (each.shard.numel() == 0) {
        if (!each.is_frozen) grad = at::zeros_like(each.shard);
      } else if (view.data != nullptr) {
        grad = at::fromDLPackVersioned(exported(SHW_HSDP_VIEW_GRAD, index)).clone();
      }
      if (!grad.defined()) continue;
      at::Tensor& held = each.shard.mutable_grad();
      const torch::NoGradGuard no_grad;
      if (held.defined()) {
        held.add_(grad);
      } else {
        held = grad;
      }
    }
  }

  void drop_gradients() {
    for (size_t index = 0; index < params_.size(); ++index) {
      memory_->tensor(index).mutable_grad() = at::Tensor();
      params_[index].shard.mutable_grad() = at::Tensor();
    }
  }

 private:
  void take_parameters(std::vector<FoundParameter> found) {
    ParameterBatch batch;
    std::vector<at::Tensor> full;  // until the unit is sealed
    params_.reserve(found.size());
    for (FoundParameter& each : found) {
      full.push_back(each.tensor.detach().contiguous().clone());
      const bool is_frozen = !each.tensor.requires_grad();
      memory_->add(each.tensor, each.name);
      params_.push_back({each.name, each.aliases, {}, nullptr, 0, is_frozen});
      batch.add(params_.back(), full.back());
    }
    const shw_hsdp_param_batch table = batch.table();
    check([&](shw_error** err) { return shw_hsdp_unit_add_params(core_.get(), &table, err); });
    auto owner = std::make_unique<std::shared_ptr<WholeMemory>>(memory_);
    const shw_hsdp_allocator allocator = WholeMemory::table(owner);
    check(
        [&](shw_error** err) { return shw_hsdp_unit_set_allocator(core_.get(), &allocator, err); });
    static_cast<void>(owner.release());
    check([&](shw_error** err) { return shw_hsdp_unit_seal(core_.get(), err); });
    for (size_t index = 0; index < params_.size(); ++index) {
      UnitParameter& each = params_[index];
      each.shard = at::fromDLPackVersioned(exported(SHW_HSDP_VIEW_LOCAL, index));
      each.shard.set_requires_grad(!each.is_frozen);
      each.address = each.shard.data_ptr();
      each.seen_version = static_cast<int64_t>(each.shard._version());
    }
  }

  shw_tensor view_of(int32_t view, size_t index) {
    shw_tensor out = SHW_TENSOR_INIT;
    check([&](shw_error** err) {
      return shw_hsdp_unit_views(core_.get(), view, index, 1, &out, err);
    });
    return out;
  }
  DLManagedTensorVersioned* exported(int32_t view, size_t index) {
    DLManagedTensorVersioned* out = nullptr;
    check([&](shw_error** err) {
      return shw_hsdp_unit_view_dlpack(core_.get(), view, index, &out, err);
    });
    return out;
  }

  const std::shared_ptr<WholeMemory> memory_;  // co-owned by the library
  std::vector<UnitParameter> params_;
  UnitHandle core_;
};

}  // namespace detail
}  // namespace shardwright::hsdp
