// SPDX-License-Identifier: Apache-2.0
//
// What a unit of HSDP needs of torch: the tensors inside of values, a node of autograd that tells
// when backward has come through a module, and memory that is swapped under a tensor. For torch
// 2.15 alone: none of this is a stable interface of torch.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/DLConvertor.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/version.h>

static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 15,
              "shardwright/torch is for torch 2.15, and this is torch " TORCH_VERSION);

namespace shardwright::hsdp {

// The tensors inside of a type of the host that goes into a unit or comes out of it: specialise it.
//   template <> struct shardwright::hsdp::Tensors<Batch> {
//     template <typename Visit> static void visit(Batch& batch, Visit&& each) { each(batch.x); }
//   };
template <typename T>
struct Tensors {
  template <typename Visit>
  static void visit(T&, const Visit&) {}
};

namespace detail {

template <typename T>
concept TupleLike = requires { std::tuple_size<T>::value; };
template <typename T>
concept Container = requires(T& value) {
  typename T::value_type;
  value.begin();
  value.end();
};
template <typename T>
concept Optional = std::is_same_v<T, std::optional<typename T::value_type>>;

// each(tensor) for the tensors in a value: itself, or of tuples, containers, optionals and what
// Tensors knows.
template <typename T, typename Visit>
void visit_tensors(T& value, const Visit& each) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    if (value.defined()) each(value);
  } else if constexpr (TupleLike<T>) {
    std::apply([&](auto&... parts) { (visit_tensors(parts, each), ...); }, value);
  } else if constexpr (Optional<T>) {
    if (value) visit_tensors(*value, each);
  } else if constexpr (Container<T>) {
    for (auto& part : value) visit_tensors(part, each);
  } else {
    Tensors<T>::visit(value, each);
  }
}

// The backward that runs on this thread, -1 outside of one.
inline int backward_task() {
  return torch::autograd::get_current_graph_task_id();
}

// Hands gradients through, and calls when all of them have come: the module behind it has had its
// backward, and the gradients of its parameters are there, as autograd runs their nodes first.
class AfterBackward final : public torch::autograd::Node {
 public:
  explicit AfterBackward(std::function<void()> call) : call_(std::move(call)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    call_();
    return std::move(grads);
  }

 private:
  std::function<void()> call_;
};

// `inputs`, which require gradients, become aliases of themselves behind such a node.
inline void stand_before(const std::vector<at::Tensor*>& inputs, std::function<void()> call) {
  if (inputs.empty()) return;
  torch::autograd::variable_list tensors;
  for (const at::Tensor* each : inputs) tensors.push_back(*each);
  auto node = c10::make_intrusive<AfterBackward>(std::move(call));
  node->set_next_edges(torch::autograd::collect_next_edges(tensors));
  for (at::Tensor* each : inputs) {
    at::Tensor alias = each->detach();
    torch::autograd::set_history(alias, node);
    *each = alias;
  }
}

// Memory of whole parameters that are not in use, by size: a copy into pages that were used before
// is several times as fast as one into new pages.
class RecycledMemory {
 public:
  at::DataPtr take(size_t size_bytes) {
    auto& kept = kept_[size_bytes];
    if (kept.empty()) return c10::GetAllocator(c10::kCPU)->allocate(size_bytes);
    at::DataPtr memory = std::move(kept.back());
    kept.pop_back();
    return memory;
  }
  void keep(size_t size_bytes, at::DataPtr memory) {
    kept_[size_bytes].push_back(std::move(memory));
  }
  void release() { kept_.clear(); }

 private:
  std::map<size_t, std::vector<at::DataPtr>> kept_;
};

// A parameter of a module, which stays the tensor that it is, also where autograd has saved it:
// memory comes and goes under its storage. While it has none, whoever reads it gets an exception
// with the reason (torch::save of the module, for one).
class WholeParameter {
 public:
  WholeParameter(at::Tensor tensor, const std::string& name)
      : tensor_(std::move(tensor)),
        reason_("parameter " + name +
                " is sharded and has no values here: use it inside of its unit, or the shards of "
                "hsdp::Context (sharded_parameters, state_dict, save)") {
    // A storage of its own: what others see of the present one stays.
    const torch::NoGradGuard no_grad;
    tensor_.set_data(at::empty_like(tensor_, at::MemoryFormat::Contiguous));
    take_back();
  }

  at::Tensor& tensor() { return tensor_; }

  void* give(at::DataPtr memory, size_t size_bytes) {
    c10::StorageImpl& storage = *tensor_.storage().unsafeGetStorageImpl();
    void* const address = memory.get();
    storage.clear_data_ptr_access_error_msg_();
    storage.set_data_ptr_noswap(std::move(memory));
    storage.set_nbytes(size_bytes);
    return address;
  }
  at::DataPtr take_back() {
    c10::StorageImpl& storage = *tensor_.storage().unsafeGetStorageImpl();
    at::DataPtr memory = storage.set_data_ptr(at::DataPtr(nullptr, c10::kCPU));
    storage.set_nbytes(size_t{0});
    storage.release_data_and_set_meta_custom_data_ptr_error_msg_(reason_);
    return memory;
  }

 private:
  at::Tensor tensor_;
  std::string reason_;
};

}  // namespace detail
}  // namespace shardwright::hsdp
