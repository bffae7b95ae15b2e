// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <fmt/format.h>

#include "core/base/without_exceptions.h"
#include "core/collective/nccl/nccl_library_internal.h"

namespace shardwright::collective::internal {
namespace {

constexpr int kLeastVersion = 22800;  // 2.28, the first one with ncclAlltoAll

Status cannot_be_used(const std::string& name, std::string_view why) {
  return unavailable(
             fmt::format("NCCL cannot be used: {}: {}; install the Python package "
                         "nvidia-nccl-cu13 or NVIDIA's package libnccl2, and put its folder on "
                         "LD_LIBRARY_PATH or name the file as \"library\"",
                         name, why))
      .with_retryable(false);
}

template <typename Function>
bool find(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  return *out != nullptr;
}

// "" where all are there, else the name of one that is not.
const char* find_all(void* library, NcclFunctions* out) {
  const char* missing = "";
  const auto need = [&](const char* name, auto* function) {
    if (!find(library, name, function)) missing = name;
  };
  need("ncclGetVersion", &out->get_version);
  need("ncclGetUniqueId", &out->get_unique_id);
  need("ncclGetErrorString", &out->get_error_string);
  need("ncclGetLastError", &out->get_last_error);
  need("ncclCommInitRankConfig", &out->init_rank);
  need("ncclCommFinalize", &out->finalize);
  need("ncclCommDestroy", &out->destroy);
  need("ncclCommAbort", &out->abort);
  need("ncclCommGetAsyncError", &out->get_async_error);
  need("ncclAllGather", &out->all_gather);
  need("ncclAlltoAll", &out->all_to_all);
  need("ncclReduceScatter", &out->reduce_scatter);
  need("ncclAllReduce", &out->all_reduce);
  need("ncclBroadcast", &out->broadcast);
  need("ncclRedOpCreatePreMulSum", &out->create_scaled_sum);
  need("ncclRedOpDestroy", &out->destroy_reduction);
  return missing;
}

Status failure(ncclResult_t result, std::string text) {
  switch (result) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return invalid_argument(std::move(text));
    case ncclInternalError:
      return internal_error(std::move(text));
    default:  // CUDA, the system, a peer or a time-out
      return unavailable(std::move(text));
  }
}

}  // namespace

Result<std::shared_ptr<const NcclLibrary>> NcclLibrary::open(const std::string& name) {
  return without_exceptions("opening NCCL", [&]() -> Result<std::shared_ptr<const NcclLibrary>> {
    // It has threads of its own, so it stays.
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      const char* const why = dlerror();
      return cannot_be_used(name, why == nullptr ? "it cannot be loaded" : why);
    }
    auto opened = std::make_shared<NcclLibrary>();
    const std::string_view missing = find_all(library, &opened->functions_);
    int version = 0;
    if (opened->functions_.get_version != nullptr)
      static_cast<void>(opened->functions_.get_version(&version));  // 0 is too old as well
    if (version < kLeastVersion || !missing.empty())
      return cannot_be_used(name,
                            fmt::format("it is version {}, and this needs {} or newer{}{}", version,
                                        kLeastVersion, missing.empty() ? "" : ", with ", missing));
    return std::shared_ptr<const NcclLibrary>(std::move(opened));
  });
}

Status NcclLibrary::status_of(ncclResult_t result, ncclComm_t communicator,
                              std::string_view doing) const {
  if (result == ncclSuccess || result == ncclInProgress) return {};
  return without_exceptions("describing a failure of NCCL", [&] {
    const char* const last = functions_.get_last_error(communicator);
    const std::string_view more = last == nullptr ? "" : last;
    return failure(result, fmt::format("{}: NCCL says: {} ({}){}{}", doing,
                                       functions_.get_error_string(result),
                                       static_cast<int>(result), more.empty() ? "" : ": ", more));
  });
}

}  // namespace shardwright::collective::internal
