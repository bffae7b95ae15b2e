// SPDX-License-Identifier: Apache-2.0
//
// Hybrid sharded data parallel training of C++ modules of libtorch 2.15, without Python. Modules
// have no hooks in C++, so what belongs together is said where it runs: Wrap around a module, a
// UnitScope inside of forward, Unit::call around anything, or fully_shard of a Sequential.
//
// The parameters of a module stay the tensors that they are; between uses they have no memory, and
// reading them throws. Optimizers get shards. All ranks do the same in the same order; a call that
// fails throws shardwright::Error, on all ranks as far as the transport reaches them. Then, on all
// ranks: Context::reset, and the iteration again. One thread of the host at a time, beside which
// autograd calls from its own. Memory of the host alone.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <shardwright/torch/autograd.hpp>
#include <shardwright/torch/handles.hpp>
#include <shardwright/torch/training.hpp>
#include <shardwright/torch/unit.hpp>

namespace shardwright::hsdp {

// Around a stretch of forward that uses the parameters of a unit: from Unit::scope until leave. One
// that goes without leave, because something was thrown, ends the context on all ranks, so that
// they do not wait for this one.
class UnitScope {
 public:
  UnitScope(std::shared_ptr<detail::Training> training, detail::UnitState* unit)
      : training_(std::move(training)), unit_(unit) {}
  UnitScope(UnitScope&& other) noexcept
      : training_(std::move(other.training_)),
        unit_(other.unit_),
        has_left_(std::exchange(other.has_left_, true)) {}
  UnitScope& operator=(UnitScope&&) = delete;
  ~UnitScope() {
    if (!has_left_) training_->abort("forward of a unit was left by an exception");
  }

  // The output, by which backward finds the unit again. Once.
  template <typename Output>
  Output leave(Output output) {
    const auto watch = detail::BeforeBackward::of(training_, unit_);
    detail::visit_tensors(output, [&](at::Tensor& each) { watch(each); });
    leave();
    return output;
  }
  void leave() {
    training_->leave(*unit_);
    has_left_ = true;
  }

 private:
  std::shared_ptr<detail::Training> training_;
  detail::UnitState* unit_;
  bool has_left_ = false;
};

// Parameters that are gathered and reduced together. A handle that copies.
class Unit {
 public:
  Unit(std::shared_ptr<detail::Training> training, detail::UnitState* state)
      : training_(std::move(training)), state_(state) {}

  // Gathers the parameters. The tensors in `inputs` are replaced by ones that backward passes when
  // it has come through the unit; use those.
  template <typename... Inputs>
  UnitScope scope(Inputs&... inputs) const {
    training_->enter(*state_);
    UnitScope made(training_, state_);
    std::vector<at::Tensor*> found;
    if (torch::GradMode::is_enabled()) {
      [[maybe_unused]] const auto collect = [&](at::Tensor& each) {
        if (each.requires_grad()) found.push_back(&each);
      };
      (detail::visit_tensors(inputs, collect), ...);
    }
    detail::stand_before(
        found, [training = training_, state = state_] { training->after_backward(*state); });
    return made;
  }

  // function(inputs...) with the parameters there: a lambda, a scripted module, a module.
  template <typename Function, typename... Inputs>
  auto call(Function&& function, Inputs&&... inputs) const {
    std::tuple<std::decay_t<Inputs>...> held(std::forward<Inputs>(inputs)...);
    auto around = std::apply([&](auto&... each) { return scope(each...); }, held);
    if constexpr (std::is_void_v<decltype(std::apply(function, held))>) {
      std::apply(function, held);
      around.leave();
    } else {
      return around.leave(std::apply(function, held));
    }
  }

  // The part of each parameter that this rank holds, for optimizers; gradients come with the end of
  // backward.
  std::vector<at::Tensor> sharded_parameters() const {
    std::vector<at::Tensor> made;
    for (const detail::UnitParameter& each : state_->params()) made.push_back(each.shard);
    return made;
  }

 private:
  std::shared_ptr<detail::Training> training_;
  detail::UnitState* state_;
};

// The units of one model on this rank. A handle that copies; units, tensors and what autograd holds
// keep what is behind it.
//
//   c10d::register_process_group("ranks", group);  // any name; it counts while the group is held
//   Context context({.shard_group = "ranks"});
//   torch::nn::Sequential model(torch::nn::Linear(8, 8), torch::nn::Linear(8, 1));
//   fully_shard(context, *model);
//   torch::optim::AdamW optimizer(context.sharded_parameters());
//   ... loss.backward(); optimizer.step(); optimizer.zero_grad();
//   context.save("checkpoint");
class Context {
 public:
  // Collective.
  explicit Context(const Options& options)
      : training_(std::make_shared<detail::Training>(options)) {}

  // A unit of the parameters of `module` that no unit has yet: children before their parents.
  // `name` comes before the names of the parameters ("" for a root). Collective. Error where there
  // are no parameters left, or a dtype cannot be trained.
  Unit unit(const std::string& name, torch::nn::Module& module, const UnitOptions& options = {}) {
    return {training_, &training_->add_unit(name, module, options)};
  }

  // Of all units, in the order in which they were made.
  std::vector<at::Tensor> sharded_parameters() const {
    std::vector<at::Tensor> made;
    for (const auto& item : state_dict()) made.push_back(item.value());
    return made;
  }
  // The same by name; `torch::save` of a module of units throws, as its tensors have no values.
  torch::OrderedDict<std::string, at::Tensor> state_dict() const { return training_->state_dict(); }

  // false: gradients add up on this rank; true: the next backward reduces them.
  void set_requires_gradient_sync(bool is_required) {
    training_->set(SHW_HSDP_REQUIRES_GRADIENT_SYNC, is_required ? 1 : 0);
  }
  // Gradients are summed instead of averaged.
  void set_sums_gradients(bool sums) {
    training_->set(SHW_HSDP_REDUCE_OP, sums ? SHW_HSDP_REDUCE_SUM : SHW_HSDP_REDUCE_AVERAGE);
  }

  // The checkpoint at `path`, of all parameters, without gathering them; other numbers of ranks,
  // Python and the command line read it. Collective over all ranks.
  void save(const std::string& path) { training_->save(path); }
  // Into the shards. Collective over all ranks.
  void load(const std::string& path) { training_->load(path); }

  // After a failure, on all ranks: connects anew, drops all gradients. Parameters are as they were.
  void reset() { training_->reset(); }
  // Memory of whole parameters that are not in use is freed.
  void release_memory() { training_->release_memory(); }

 private:
  std::shared_ptr<detail::Training> training_;
};

namespace detail {

// A module around another one with the same signature of forward and the same names: what the inner
// one has registered is registered here.
template <typename Inner, typename Forward>
class WrapOf;

template <typename Inner, typename Base, typename Output, typename... Inputs>
class WrapOf<Inner, Output (Base::*)(Inputs...)> : public torch::nn::Module {
 public:
  WrapOf(Unit unit, std::shared_ptr<Inner> inner)
      : torch::nn::Module(inner->name()), unit_(std::move(unit)), inner_(std::move(inner)) {
    for (const auto& each : inner_->named_parameters(false))
      register_parameter(each.key(), each.value(), each.value().requires_grad());
    for (const auto& each : inner_->named_buffers(false)) register_buffer(each.key(), each.value());
    for (const auto& each : inner_->named_children()) register_module(each.key(), each.value());
  }

  Output forward(Inputs... inputs) {
    return unit_.call([this](auto&... each) { return inner_->forward(each...); },
                      std::forward<Inputs>(inputs)...);
  }
  void train(bool on = true) override {
    torch::nn::Module::train(on);
    inner_->train(on);
  }

  const std::shared_ptr<Inner>& inner() const { return inner_; }

 private:
  Unit unit_;
  std::shared_ptr<Inner> inner_;  // co-owned by the host
};

}  // namespace detail

// A module whose forward runs as that of `Inner` with its parameters there.
template <typename Inner>
class Wrap : public detail::WrapOf<Inner, decltype(&Inner::forward)> {
 public:
  Wrap(Unit unit, std::shared_ptr<Inner> inner)
      : detail::WrapOf<Inner, decltype(&Inner::forward)>(std::move(unit), std::move(inner)) {}
};

// Wrap of a unit of its own, such as
//   register_module("layer", wrap(context, "layer", torch::nn::Linear(8, 8)));
// Collective.
template <typename Inner>
std::shared_ptr<Wrap<Inner>> wrap(Context& context, const std::string& name,
                                  std::shared_ptr<Inner> inner, const UnitOptions& options = {}) {
  const Unit unit = context.unit(name, *inner, options);
  return std::make_shared<Wrap<Inner>>(unit, std::move(inner));
}
template <typename Inner>
auto wrap(Context& context, const std::string& name, const torch::nn::ModuleHolder<Inner>& inner,
          const UnitOptions& options = {}) {
  return wrap(context, name, inner.ptr(), options);
}

// Each module of a Sequential that has parameters becomes a unit, with the name that it has there
// after `name`; modules take and give one tensor. Names of parameters stay. Collective.
inline void fully_shard(Context& context, torch::nn::SequentialImpl& model,
                        const std::string& name = "", const UnitOptions& options = {}) {
  struct Step : torch::nn::Module {
    Step(Unit around, torch::nn::AnyModule wrapped)
        : unit(std::move(around)), inner(std::move(wrapped)) {}
    at::Tensor forward(at::Tensor input) {
      return unit.call([this](at::Tensor& each) { return inner.forward<at::Tensor>(each); },
                       std::move(input));
    }
    Unit unit;
    torch::nn::AnyModule inner;
  };
  const auto children = model.named_children();
  size_t index = 0;
  for (torch::nn::AnyModule& each : model) {
    const std::string path = name + (name.empty() ? "" : ".") + children[index++].key();
    if (each.ptr()->parameters().empty()) continue;
    const Unit unit = context.unit(path, *each.ptr(), options);
    each = torch::nn::AnyModule(std::make_shared<Step>(unit, std::move(each)));
  }
}

}  // namespace shardwright::hsdp
