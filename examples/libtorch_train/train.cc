// SPDX-License-Identifier: Apache-2.0
//
// Trains a small model with libtorch on two processes without Python: its parameters are sharded,
// and at the end saved as one checkpoint. Then one process trains the same model on the
// micro-batches of both, one after the other, loads the checkpoint and compares every bit.
//
//   libtorch_train FOLDER          the folder must not be there yet
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <shardwright/torch/hsdp.hpp>

namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 8;

torch::nn::Sequential make_model() {
  torch::manual_seed(7);
  return torch::nn::Sequential(torch::nn::Linear(13, 37), torch::nn::Tanh(),
                               torch::nn::Linear(37, 29), torch::nn::Tanh(),
                               torch::nn::Linear(29, 3));
}

torch::optim::SGD make_optimizer(std::vector<at::Tensor> parameters) {
  return torch::optim::SGD(std::move(parameters), torch::optim::SGDOptions(0.05).momentum(0.9));
}

// Of the micro-batch of one rank in one step.
at::Tensor loss_of(torch::nn::Sequential& model, int step, int rank) {
  torch::manual_seed(1000 + kRanks * step + rank);
  const at::Tensor in = torch::randn({6, 13});
  const at::Tensor wanted = torch::randn({6, 3});
  return torch::nn::functional::mse_loss(model->forward(in), wanted);
}

// The processes meet at a file. The name counts as long as the group is held.
c10::intrusive_ptr<c10d::ProcessGroup> make_group(const std::string& folder, int rank) {
  const auto store = c10::make_intrusive<c10d::FileStore>(folder + "/store", kRanks);
  const auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, kRanks);
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO,
                    c10::make_intrusive<c10d::ProcessGroupGloo>(
                        store, rank, kRanks, c10d::ProcessGroupGloo::Options::create_default()));
  c10d::register_process_group("ranks", group);
  return group;
}

void train_rank(const std::string& folder, int rank) {
  const auto group = make_group(folder, rank);
  torch::nn::Sequential model = make_model();
  shardwright::hsdp::Context context({.shard_group = "ranks"});
  shardwright::hsdp::fully_shard(context, *model);
  torch::optim::SGD optimizer = make_optimizer(context.sharded_parameters());
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor loss = loss_of(model, step, rank);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    std::printf("step %d rank %d loss %.6f\n", step, rank, loss.item<double>());
  }
  context.save(folder + "/checkpoint");
}

// The gradient is the mean over micro-batches, summed in the order of their ranks.
torch::nn::Sequential train_alone() {
  torch::nn::Sequential model = make_model();
  torch::optim::SGD optimizer = make_optimizer(model->parameters());
  for (int step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < kRanks; ++rank) loss_of(model, step, rank).backward();
    for (const at::Tensor& each : model->parameters()) each.grad().div_(kRanks);
    optimizer.step();
    optimizer.zero_grad();
  }
  return model;
}

using shardwright::detail::check;
using shardwright::detail::made;

// Whether every parameter of the checkpoint has the bits of the model's.
bool is_equal(torch::nn::Sequential& model, const std::string& path) {
  const auto context = made<shardwright::detail::ContextHandle>(
      [](auto** out, auto** err) { return shw_context_create(nullptr, out, err); });
  const auto state = made<shardwright::detail::StateHandle>(
      [](auto** out, auto** err) { return shw_state_create(out, err); });
  std::vector<at::Tensor> loaded;
  for (const auto& item : model->named_parameters()) {
    loaded.push_back(torch::empty_like(item.value()).detach());
    shw_tensor tensor = SHW_TENSOR_INIT;
    tensor.data = loaded.back().data_ptr();
    tensor.device_type = SHW_DEVICE_CPU;
    tensor.dtype = SHW_FLOAT32;
    tensor.ndim = static_cast<int32_t>(loaded.back().dim());
    tensor.shape = loaded.back().sizes().data();
    const std::vector<int64_t> offsets(static_cast<size_t>(tensor.ndim));
    check([&](auto** err) {
      return shw_state_add_tensor(state.get(), item.key().data(), item.key().size(), &tensor,
                                  tensor.shape, offsets.data(), SHW_KIND_AUTO, err);
    });
  }
  const auto report = made<shardwright::detail::ReportHandle>([&](auto** out, auto** err) {
    return shw_load(context.get(), state.get(), nullptr, path.c_str(), nullptr, nullptr, out, err);
  });
  size_t index = 0;
  for (const at::Tensor& each : model->parameters()) {
    const at::Tensor& other = loaded[index++];
    if (std::memcmp(each.data_ptr(), other.data_ptr(), each.nbytes()) != 0) return false;
  }
  return true;
}

// Whether all of them ended well.
bool run_ranks(const std::string& folder) {
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(fork());
    if (ranks.back() != 0) continue;
    int code = 0;
    try {
      train_rank(folder, rank);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "rank %d: %s\n", rank, failure.what());
      code = 1;
    }
    std::fflush(nullptr);
    _exit(code);
  }
  bool all_well = true;
  for (const pid_t each : ranks) {
    int status = 0;
    all_well = waitpid(each, &status, 0) == each && status == 0 && all_well;
  }
  return all_well;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::create_directory(argv[1])) {
    std::fprintf(stderr, "usage: libtorch_train FOLDER, which must not be there yet\n");
    return 2;
  }
  const std::string folder = std::filesystem::absolute(argv[1]);
  try {
    if (!run_ranks(folder)) return 1;
    torch::nn::Sequential model = train_alone();
    const bool equal = is_equal(model, folder + "/checkpoint");
    std::printf("%d ranks and one process have %s parameters\n", kRanks,
                equal ? "equal" : "DIFFERENT");
    return equal ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
