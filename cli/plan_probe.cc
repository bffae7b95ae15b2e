// SPDX-License-Identifier: Apache-2.0
//
// Measures a directory the way it will be used: one durable save of one rank and one load, with
// digests. What was saved is dropped from the system's cache before it is read, as far as the
// system lets a user do that.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "cli/plan.h"

namespace shardwright::cli {
namespace {

using State = Owner<shw_state, shw_state_release>;
constexpr char kName[] = "probe";

// The folder of the probe; it goes with this object.
class ProbeFolder {
 public:
  explicit ProbeFolder(const std::string& directory)
      : path_(std::filesystem::path(directory) / fmt::format(".shardwright-probe-{}", ::getpid())) {
    if (std::filesystem::is_directory(directory)) return;
    fail_usage("cannot measure the directory", directory + " is no directory",
               "name a directory of the file system that the checkpoints go to");
  }
  ProbeFolder(const ProbeFolder&) = delete;
  ProbeFolder& operator=(const ProbeFolder&) = delete;
  ~ProbeFolder() {
    std::error_code ignored;  // the measurement stands; what is left is named by its folder
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

State state_over(std::vector<uint64_t>* words) {
  State state = made_by<shw_state, shw_state_release>(
      [](shw_state** out, shw_error** error) { return shw_state_create(out, error); },
      "describe the probe", "");
  const auto extent = static_cast<int64_t>(words->size());
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = words->data();
  tensor.dtype = SHW_UINT64;
  tensor.ndim = 1;
  tensor.shape = &extent;
  const uint64_t offsets[] = {0, sizeof kName - 1};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = kName;
  batch.name_offsets = offsets;
  batch.tensors = &tensor;
  shw_error* error = nullptr;
  const shw_status status = shw_state_add_tensors(state.get(), &batch, &error);
  require(status, Error(error), "describe the probe", "");
  return state;
}

void drop_from_cache(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;  // a cached file only makes the measured rate higher
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

template <typename Call>
double seconds_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

uint64_t rate(uint64_t bytes, double seconds) {
  return static_cast<uint64_t>(std::max(1.0, static_cast<double>(bytes) / std::max(seconds, 1e-9)));
}

}  // namespace

MeasuredRates measure_rates(Session& session, const std::string& directory, uint64_t bytes) {
  const ProbeFolder folder(directory);
  const std::string path = folder.path();
  // Not compressible, so that a file system cannot make it smaller.
  std::vector<uint64_t> words(bytes / sizeof(uint64_t));
  uint64_t random = 0x9E3779B97F4A7C15;
  for (uint64_t& word : words) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    word = random;
  }
  const State state = state_over(&words);
  shw_context* context = session.context();
  const auto run = [&](auto call, const char* what) {
    return seconds_of([&] {
      made_by<shw_report, shw_report_release>(
          [&](shw_report** out, shw_error** error) {
            return call(context, state.get(), path.c_str(), out, error);
          },
          what, path);
    });
  };
  MeasuredRates rates;
  const auto save = [](auto* within, auto* values, auto* place, auto** out, auto** error) {
    return shw_save(within, values, nullptr, place, nullptr, nullptr, out, error);
  };
  const auto load = [](auto* within, auto* values, auto* place, auto** out, auto** error) {
    return shw_load(within, values, nullptr, place, nullptr, nullptr, out, error);
  };
  rates.write_bytes_per_second = rate(bytes, run(save, "save the probe"));
  drop_from_cache(folder.path());
  rates.read_bytes_per_second = rate(bytes, run(load, "load the probe"));
  return rates;
}

}  // namespace shardwright::cli
