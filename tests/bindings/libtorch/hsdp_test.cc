// SPDX-License-Identifier: Apache-2.0
//
// The C++ header for hosts of libtorch: ranks are threads, each with its own copy of a model, and
// are compared with one that trains alone on all micro-batches in the order of ranks.
#include <atomic>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <shardwright/torch/hsdp.hpp>

#include "tests/support/gloo_groups.h"

namespace shardwright::hsdp {
namespace {

constexpr int kSteps = 4;

// Numbers that look drawn, another row for each seed; threads share torch's generator.
at::Tensor numbers(at::IntArrayRef shape, double seed) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kFloat).mul_(1.7).add_(seed)).reshape(shape);
}

void fill(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  double seed = 0;
  for (auto& item : module.named_parameters()) {
    if (item.key() != "scale") item.value().copy_(numbers(item.value().sizes(), ++seed).mul_(0.3));
  }
}

at::Tensor batch(int step, int64_t rank) {
  return numbers({6, 13}, 100 * step + static_cast<double>(rank));
}
at::Tensor error_of(const at::Tensor& out, int step, int64_t rank) {
  return torch::nn::functional::mse_loss(
      out, numbers(out.sizes(), 7 * step + 3.0 * static_cast<double>(rank)));
}

torch::nn::Sequential chain() {
  torch::nn::Sequential made(torch::nn::Linear(13, 7), torch::nn::Tanh(), torch::nn::Linear(7, 5),
                             torch::nn::Linear(5, 3));
  fill(*made);
  return made;
}

// Two layers that give and take more than a tensor, and a scale of the root.
class HalfImpl : public torch::nn::Module {
 public:
  HalfImpl() {
    linear_ =
        register_module("linear", torch::nn::Linear(torch::nn::LinearOptions(13, 13).bias(false)));
  }
  std::tuple<at::Tensor, std::vector<at::Tensor>> forward(at::Tensor in,
                                                          std::optional<at::Tensor> more) {
    at::Tensor out = at::tanh(linear_->forward(in));
    if (more) out = out + *more;
    return {out, {out * 2}};
  }
  torch::nn::Linear linear_{nullptr};
};

template <typename Layer>
class TwoHalves : public torch::nn::Module {
 public:
  TwoHalves(std::shared_ptr<Layer> first, std::shared_ptr<Layer> second) {
    first_ = this->register_module("first", std::move(first));
    second_ = this->register_module("second", std::move(second));
    scale_ = this->register_parameter("scale", at::ones({3}));
  }
  at::Tensor forward(at::Tensor in) {
    if (unit == nullptr) return body(in);
    auto scope = unit->scope(in);
    return scope.leave(body(in));
  }
  std::unique_ptr<Unit> unit;

 private:
  at::Tensor body(const at::Tensor& in) {
    auto [one, twice] = first_->forward(in, std::nullopt);
    auto [two, unused] = second_->forward(twice[0], one);
    return two.narrow(1, 0, 3) * scale_;
  }
  std::shared_ptr<Layer> first_;
  std::shared_ptr<Layer> second_;
  at::Tensor scale_;
};

using Forward = std::function<at::Tensor(const at::Tensor&)>;

// Steps of training; `ranks` whose micro-batches this process has, the mean of them all.
void train(std::vector<at::Tensor> parameters, const Forward& forward,
           const std::vector<int64_t>& ranks) {
  torch::optim::SGD optimizer(std::move(parameters), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < kSteps; ++step) {
    for (const int64_t rank : ranks) error_of(forward(batch(step, rank)), step, rank).backward();
    for (auto& group : optimizer.param_groups()) {
      for (at::Tensor& each : group.params()) {
        if (ranks.size() > 1) each.mutable_grad().mul_(1.0 / static_cast<double>(ranks.size()));
      }
    }
    optimizer.step();
    optimizer.zero_grad();
  }
}

std::vector<at::Tensor> trained_alone(int64_t ranks) {
  torch::nn::Sequential model = chain();
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
  train(model->parameters(), [&](const at::Tensor& in) { return model->forward(in); }, all);
  return model->parameters();
}

// The rows of a whole parameter that a rank of `world` has.
at::Tensor rows_of(const at::Tensor& whole, int64_t rank, int64_t world) {
  const int64_t chunk = (whole.size(0) + world - 1) / world;
  const int64_t begin = std::min(rank * chunk, whole.size(0));
  return whole.detach().narrow(0, begin, std::min(chunk, whole.size(0) - begin));
}

void expect_rows(const std::vector<at::Tensor>& shards, const std::vector<at::Tensor>& whole,
                 int64_t rank, int64_t world) {
  ASSERT_EQ(shards.size(), whole.size());
  for (size_t i = 0; i < shards.size(); ++i)
    EXPECT_TRUE(at::equal(shards[i].detach(), rows_of(whole[i], rank, world)))
        << i << " of rank " << rank;
}

Options options_of(const test::GlooGroups& groups, int32_t rank) {
  const auto request = groups.request(rank);
  Options options;
  options.shard_group = request.name;
  options.gloo = request.gloo;
  options.poll_seconds = 0.005;
  options.seconds = 60;
  return options;
}

void on_ranks(int32_t size, const std::function<void(int32_t)>& body) {
  std::vector<std::jthread> threads;
  for (int32_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([rank, &body] {
      try {
        body(rank);
      } catch (const std::exception& failure) {
        ADD_FAILURE() << "rank " << rank << ": " << failure.what();
      }
    });
  }
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "";
}

TEST(LibtorchHsdp, ASequentialHasTheBitsOfOneProcess) {
  for (const int32_t world : {1, 2, 3}) {
    const std::vector<at::Tensor> alone = trained_alone(world);
    const test::GlooGroups groups(world);
    on_ranks(world, [&](int32_t rank) {
      torch::nn::Sequential model = chain();
      Context context(options_of(groups, rank));
      fully_shard(context, *model);
      EXPECT_EQ(context.state_dict().keys(), model->named_parameters().keys());
      train(context.sharded_parameters(), [&](const at::Tensor& in) { return model->forward(in); },
            {rank});
      expect_rows(context.sharded_parameters(), alone, rank, world);
    });
  }
}

TEST(LibtorchHsdp, WrappedLayersKeepTheirNamesAndSignatures) {
  const auto layer = [] { return std::make_shared<HalfImpl>(); };
  TwoHalves<HalfImpl> alone(layer(), layer());
  fill(alone);
  const std::vector<std::string> names = alone.named_parameters().keys();
  train(alone.parameters(), [&](const at::Tensor& in) { return alone.forward(in); }, {0, 1});
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    Context context(options_of(groups, rank));
    const auto first = layer();
    const auto second = layer();
    TwoHalves<HalfImpl> unwrapped(first, second);
    fill(unwrapped);
    TwoHalves<Wrap<HalfImpl>> model(wrap(context, "first", first), wrap(context, "second", second));
    model.unit = std::make_unique<Unit>(context.unit("", model));
    EXPECT_EQ(model.named_parameters().keys(), names);
    train(context.sharded_parameters(), [&](const at::Tensor& in) { return model.forward(in); },
          {rank});
    for (const auto& item : context.state_dict())
      EXPECT_TRUE(
          at::equal(item.value().detach(), rows_of(alone.named_parameters()[item.key()], rank, 2)))
          << item.key();
  });
}

TEST(LibtorchHsdp, AParameterWithTwoNamesIsOne) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    torch::nn::Linear one(4, 4);
    fill(*one);
    torch::nn::Module model;
    model.register_parameter("in", one->weight);
    model.register_parameter("out", one->weight);
    model.register_module("one", one.ptr());
    Context context(options_of(groups, rank));
    const Unit unit = context.unit("", model);
    EXPECT_EQ(context.state_dict().keys(), (std::vector<std::string>{"in", "one.bias"}));
    const auto forward = [&](at::Tensor& in) { return one->forward(in); };
    unit.call(forward, at::ones({1, 4})).sum().backward();
    EXPECT_EQ(unit.sharded_parameters()[0].grad().sizes(), (std::vector<int64_t>{2, 4}));
  });
}

TEST(LibtorchHsdp, AParameterHasItsValuesInsideOfItsUnitAlone) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    torch::nn::Linear layer(8, 8);
    fill(*layer);
    const at::Tensor before = layer->weight.detach().clone();
    Context context(options_of(groups, rank));
    const Unit unit = context.unit("layer", *layer, {.reshard_after_forward = SHW_HSDP_RESHARD});
    const auto outside = [&] { return message_of([&] { (void)layer->weight.sum(); }); };
    EXPECT_NE(outside().find("parameter layer.weight is sharded"), std::string::npos) << outside();
    const std::string saved = message_of([&] {
      std::ostringstream file;
      torch::save(layer, file);
    });
    EXPECT_NE(saved.find("parameter layer.weight is sharded"), std::string::npos) << saved;
    const at::Tensor there = unit.call([&] { return layer->weight.detach().clone(); });
    EXPECT_TRUE(at::equal(there, before));
    EXPECT_EQ(layer->weight.storage().nbytes(), 0U);
    EXPECT_NE(outside(), "");
  });
}

TEST(LibtorchHsdp, MemoryOfWholeParametersIsUsedAgain) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    torch::nn::Linear layer(64, 64);
    Context context(options_of(groups, rank));
    const Unit unit = context.unit("layer", *layer, {.reshard_after_forward = SHW_HSDP_RESHARD});
    std::set<const void*> addresses;
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor out = unit.call(
          [&](at::Tensor& in) {
            addresses.insert(layer->weight.const_data_ptr());
            return layer->forward(in);
          },
          at::ones({2, 64}));
      const at::Tensor in_the_way = at::empty({64, 64});
      out.sum().backward();
    }
    EXPECT_EQ(addresses.size(), 1U);
  });
}

// By the node behind its inputs: at the end of backward would be too late for memory.
TEST(LibtorchHsdp, AUnitIsReshardedWhenBackwardHasComeThroughIt) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    torch::nn::Linear below(4, 4);
    torch::nn::Linear above(4, 4);
    Context context(options_of(groups, rank));
    const auto low = wrap(context, "below", below, {.reshard_after_forward = SHW_HSDP_KEEP});
    const auto high = wrap(context, "above", above, {.reshard_after_forward = SHW_HSDP_KEEP});
    at::Tensor between = low->forward(at::ones({1, 4}));
    std::vector<size_t> bytes;
    between.register_hook([&](const at::Tensor&) {
      bytes = {below->weight.storage().nbytes(), above->weight.storage().nbytes()};
    });
    high->forward(between).sum().backward();
    EXPECT_EQ(bytes, (std::vector<size_t>{64, 0}));
    EXPECT_EQ(below->weight.storage().nbytes(), 0U);
  });
}

TEST(LibtorchHsdp, AWriteIntoShardsIsSeenByTheNextForward) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    torch::nn::Linear layer(4, 4);
    fill(*layer);
    Context context(options_of(groups, rank));
    const auto wrapped = wrap(context, "layer", layer, {.reshard_after_forward = SHW_HSDP_KEEP});
    const auto forward = [&] { return wrapped->forward(at::ones({1, 4})); };
    EXPECT_FALSE(at::equal(forward(), at::zeros({1, 4})));  // and the parameters stay whole
    {
      const torch::NoGradGuard no_grad;
      for (at::Tensor& each : context.sharded_parameters()) each.zero_();
    }
    EXPECT_TRUE(at::equal(forward(), at::zeros({1, 4})));
  });
}

TEST(LibtorchHsdp, GradientsAddUpUntilTheyAreReduced) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    torch::nn::Linear layer(4, 4);
    fill(*layer);
    Context context(options_of(groups, rank));
    const Unit unit = context.unit("layer", *layer);
    context.set_sums_gradients(true);
    const auto backward = [&](double scale) {
      unit.call([&](at::Tensor& in) { return layer->forward(in); }, at::full({1, 4}, scale))
          .sum()
          .backward();
    };
    context.set_requires_gradient_sync(false);
    backward(rank + 1);
    EXPECT_FALSE(unit.sharded_parameters()[0].grad().defined());
    context.set_requires_gradient_sync(true);
    backward(10);
    EXPECT_TRUE(at::equal(unit.sharded_parameters()[0].grad(), at::full({2, 4}, 23.0)));
  });
}

TEST(LibtorchHsdp, ReplicasHaveEqualShards) {
  const std::vector<at::Tensor> alone = trained_alone(4);
  const test::GlooGroups rows[] = {test::GlooGroups(2), test::GlooGroups(2)};
  const test::GlooGroups columns[] = {test::GlooGroups(2), test::GlooGroups(2)};
  on_ranks(4, [&](int32_t rank) {
    const int32_t replica = rank / 2;
    const int32_t shard = rank % 2;
    torch::nn::Sequential model = chain();
    Options options = options_of(rows[replica], shard);
    options.replicate_group = columns[shard].request(replica).name;
    Context context(options);
    fully_shard(context, *model);
    EXPECT_NE(message_of([&] { context.save("nowhere"); }).find("set all_group"),
              std::string::npos);
    train(context.sharded_parameters(), [&](const at::Tensor& in) { return model->forward(in); },
          {rank});
    const std::vector<at::Tensor> shards = context.sharded_parameters();
    for (size_t i = 0; i < shards.size(); ++i)
      EXPECT_TRUE(at::allclose(shards[i].detach(), rows_of(alone[i], shard, 2), 1e-5, 1e-6)) << i;
  });
}

TEST(LibtorchHsdp, ARankThatThrowsIsToldOfAndAllGoOnAfterAReset) {
  const std::vector<at::Tensor> alone = trained_alone(2);
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    torch::nn::Sequential model = chain();
    Context context(options_of(groups, rank));
    fully_shard(context, *model);
    torch::nn::Linear extra(3, 3);
    const Unit last = context.unit("extra", *extra);
    const std::string said = message_of([&] {
      last.call(
          [&](at::Tensor& in) -> at::Tensor {
            if (rank == 1) throw std::runtime_error("no data");
            return model->forward(in);
          },
          batch(0, rank));
    });
    if (rank == 1) {
      EXPECT_EQ(said, "no data");
    } else {
      EXPECT_NE(said.find("left by an exception"), std::string::npos) << said;
      EXPECT_NE(said.find("unit"), std::string::npos) << said;
      EXPECT_NE(said.find("rank 0"), std::string::npos) << said;
      EXPECT_NE(said.find("all_gather"), std::string::npos) << said;
    }
    context.reset();
    std::vector<at::Tensor> shards = context.sharded_parameters();
    shards.resize(shards.size() - 2);  // of the chain
    train(shards, [&](const at::Tensor& in) { return model->forward(in); }, {rank});
    expect_rows(shards, alone, rank, 2);
  });
}

TEST(LibtorchHsdp, ARankThatIsGoneIsNamed) {
  const test::GlooGroups groups(2);
  on_ranks(2, [&](int32_t rank) {
    torch::nn::Linear layer(4, 4);
    std::string said;
    {
      Context context(options_of(groups, rank));
      const Unit unit = context.unit("layer", *layer);
      const auto forward = [&] {
        unit.call([&](at::Tensor& in) { return layer->forward(in); }, at::ones({1, 4}));
      };
      if (rank == 0) said = message_of(forward);
    }
    if (rank == 0) {
      EXPECT_NE(said.find("rank 1 has left"), std::string::npos) << said;
      EXPECT_NE(said.find("'layer'"), std::string::npos) << said;
    }
  });
}

TEST(LibtorchHsdp, WhatCannotBeAUnitIsRefused) {
  const test::GlooGroups groups(1);
  Context context(options_of(groups, 0));
  torch::nn::Linear layer(4, 4);
  const Unit unit = context.unit("layer", *layer);
  const std::string again = message_of([&] { context.unit("again", *layer); });
  EXPECT_NE(again.find("unit 'again' has no parameters"), std::string::npos) << again;
  unit.sharded_parameters()[0].set_data(at::zeros({4, 4}));
  const std::string moved = message_of([&] { unit.call([] {}); });
  EXPECT_NE(moved.find("the shard of layer.weight has other memory"), std::string::npos) << moved;
}

}  // namespace
}  // namespace shardwright::hsdp
