// SPDX-License-Identifier: Apache-2.0
//
// One rank of two that train; rank 1 is killed in its third step, and rank 0 prints what it is
// told.
//   killed_rank RANK FOLDER
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <torch/nn/modules/linear.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <shardwright/torch/hsdp.hpp>

int main(int, char** argv) {
  const int rank = std::atoi(argv[1]);
  const auto store = c10::make_intrusive<c10d::FileStore>(std::string(argv[2]) + "/store", 2);
  const auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, 2);
  group->setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::GLOO,
                    c10::make_intrusive<c10d::ProcessGroupGloo>(
                        store, rank, 2, c10d::ProcessGroupGloo::Options::create_default()));
  c10d::register_process_group("ranks", group);
  try {
    torch::nn::Sequential model(torch::nn::Linear(8, 8), torch::nn::Linear(8, 8));
    shardwright::hsdp::Context context(
        {.shard_group = "ranks", .seconds = 60, .poll_seconds = 0.05});
    shardwright::hsdp::fully_shard(context, *model);
    for (int step = 0; step < 5; ++step) {
      const at::Tensor out = model->forward(at::ones({1, 8}));
      if (rank == 1 && step == 2) std::raise(SIGKILL);
      out.sum().backward();
    }
  } catch (const shardwright::Error& failure) {
    std::printf("%d %s\n", failure.status(), failure.what());
    std::fflush(nullptr);
    std::_Exit(3);  // whose groups were given up has nothing to tear down
  }
  return 0;
}
