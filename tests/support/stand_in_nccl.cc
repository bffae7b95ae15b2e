// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for NCCL whose ranks are threads of this process, over the stand-in for the CUDA
// runtime: an operation is a task of a stream that meets those of the other ranks. A rank that
// aborts is seen by the others as a remote error. It compares nothing, as NCCL does not. The
// program exports these functions, so that a library of no name is the program itself.
#pragma GCC visibility push(default)
#include <nccl.h>
#pragma GCC visibility pop

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "core/tensor/cast.h"

namespace {

using shardwright::DType;
using Bytes = std::vector<std::byte>;

struct Round {
  std::vector<const std::byte*> in;
  int arrived = 0;
  int read = 0;
};

struct World {
  explicit World(int of_size) : size(of_size) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<int> ranks;
  std::map<uint64_t, Round> rounds;
  bool is_over = false;
};

std::mutex worlds_mutex;
uint64_t ids_made = 0;

std::map<std::string, std::weak_ptr<World>>& worlds() {
  static std::map<std::string, std::weak_ptr<World>> all;
  return all;
}

std::shared_ptr<World> world_of(const ncclUniqueId& id, int size) {
  const std::lock_guard<std::mutex> lock(worlds_mutex);
  auto& known = worlds()[std::string(id.internal, sizeof id.internal)];
  std::shared_ptr<World> world = known.lock();
  if (world == nullptr) {
    world = std::make_shared<World>(size);
    known = world;
  }
  return world;
}

// What a rank makes of the parts of all; its result goes out when all have read.
using Combine = std::function<Bytes(const std::vector<const std::byte*>&)>;

struct Operation {
  std::shared_ptr<World> world;
  int rank = 0;
  uint64_t number = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  Combine combine;
};

// False where the world ended first.
bool meet(World& world, std::unique_lock<std::mutex>& lock, int& count) {
  ++count;
  world.changed.notify_all();
  world.changed.wait(lock, [&] { return world.is_over || count == world.size; });
  return count == world.size;
}

void run(void* data) {
  const std::unique_ptr<Operation> own(static_cast<Operation*>(data));
  World& world = *own->world;
  std::unique_lock<std::mutex> lock(world.mutex);
  Round& round = world.rounds[own->number];  // stays, as maps leave what they hold where it is
  round.in.resize(static_cast<size_t>(world.size));
  round.in[static_cast<size_t>(own->rank)] = own->in;
  if (!meet(world, lock, round.arrived)) return;
  const Bytes result = own->combine(round.in);
  if (!meet(world, lock, round.read)) return;
  if (!result.empty()) std::memcpy(own->out, result.data(), result.size());
}

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return DType::kFloat16;
    case ncclBfloat16:
      return DType::kBfloat16;
    case ncclFloat64:
      return DType::kFloat64;
    case ncclInt32:
      return DType::kInt32;
    case ncclInt64:
      return DType::kInt64;
    default:
      return DType::kFloat32;
  }
}

size_t bytes_of(DType dtype, size_t count) {
  return count * static_cast<size_t>(shardwright::dtype_bits(dtype)) / 8;
}

std::vector<double> numbers(DType dtype, const std::byte* at, size_t count) {
  std::vector<double> values(count);
  static_cast<void>(shardwright::cast_elements(dtype, {at, bytes_of(dtype, count)}, DType::kFloat64,
                                               std::as_writable_bytes(std::span(values))));
  return values;
}

double joined(ncclRedOp_t operation, double sum, double value) {
  if (operation == ncclMax) return std::max(sum, value);
  if (operation == ncclMin) return std::min(sum, value);
  return sum + value;
}

}  // namespace

struct ncclComm {
  std::shared_ptr<World> world;
  int rank = 0;
  uint64_t issued = 0;
  std::map<int, double> scales;
};

namespace {

// C functions throw nothing.
template <typename Body>
ncclResult_t guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return ncclSystemError;
  }
}

ncclResult_t put(ncclComm_t comm, cudaStream_t stream, const void* in, void* out,
                 const Combine& combine) {
  auto own = std::make_unique<Operation>(Operation{comm->world, comm->rank, comm->issued++,
                                                   static_cast<const std::byte*>(in),
                                                   static_cast<std::byte*>(out), combine});
  if (cudaLaunchHostFunc(stream, &run, own.get()) != cudaSuccess) return ncclUnhandledCudaError;
  static_cast<void>(own.release());  // run() has it
  return ncclSuccess;
}

// Elements [begin, begin + count) of all ranks.
Combine reduction(ncclComm_t comm, ncclDataType_t type, ncclRedOp_t operation, size_t begin,
                  size_t count) {
  const auto found = comm->scales.find(static_cast<int>(operation));
  const double scale = found == comm->scales.end() ? 1.0 : found->second;
  const double divisor = operation == ncclAvg ? comm->world->size : 1.0;
  return [=](const std::vector<const std::byte*>& parts) {
    const DType dtype = dtype_of(type);
    std::vector<double> sums;
    for (const std::byte* part : parts) {
      std::vector<double> own = numbers(dtype, part + bytes_of(dtype, begin), count);
      for (double& value : own) value *= scale;
      for (size_t i = 0; i < sums.size(); ++i) own[i] = joined(operation, sums[i], own[i]);
      sums = std::move(own);
    }
    for (double& value : sums) value /= divisor;
    Bytes result(bytes_of(dtype, count));
    static_cast<void>(
        shardwright::cast_elements(DType::kFloat64, std::as_bytes(std::span(sums)), dtype, result));
    return result;
  };
}

ncclResult_t end(ncclComm_t comm, bool others_too) {
  {
    const std::lock_guard<std::mutex> lock(comm->world->mutex);
    comm->world->is_over |= others_too;
    comm->world->changed.notify_all();
  }
  delete comm;
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return guarded([&]() -> ncclResult_t {
    const std::lock_guard<std::mutex> lock(worlds_mutex);
    std::memset(id->internal, 0, sizeof id->internal);
    ++ids_made;
    std::memcpy(id->internal, &ids_made, sizeof ids_made);
    return ncclSuccess;
  });
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "a remote rank has ended" : "the stand-in failed";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return guarded([&]() -> ncclResult_t {
    if (config->blocking != 0) return ncclInvalidUsage;  // what it stands in for must not block
    auto made = std::make_unique<ncclComm>();
    made->world = world_of(id, size);
    made->rank = rank;
    const std::lock_guard<std::mutex> lock(made->world->mutex);
    made->world->ranks.insert(rank);
    *comm = made.release();
    return ncclInProgress;
  });
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const std::lock_guard<std::mutex> lock(comm->world->mutex);
  const bool is_whole = static_cast<int>(comm->world->ranks.size()) == comm->world->size;
  *error = comm->world->is_over ? ncclRemoteError : is_whole ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) {
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return end(comm, false);
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return end(comm, true);
}

ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    return put(comm, stream, in, out, [count](const std::vector<const std::byte*>& parts) {
      Bytes all;
      for (const std::byte* part : parts) all.insert(all.end(), part, part + count);
      return all;
    });
  });
}
ncclResult_t ncclAlltoAll(const void* in, void* out, size_t count, ncclDataType_t, ncclComm_t comm,
                          cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    const size_t begin = static_cast<size_t>(comm->rank) * count;
    return put(comm, stream, in, out, [begin, count](const std::vector<const std::byte*>& parts) {
      Bytes all;
      for (const std::byte* part : parts) all.insert(all.end(), part + begin, part + begin + count);
      return all;
    });
  });
}
ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    return put(comm, stream, in, out,
               reduction(comm, type, operation, static_cast<size_t>(comm->rank) * count, count));
  });
}
ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    return put(comm, stream, in, out, reduction(comm, type, operation, 0, count));
  });
}
ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    return put(comm, stream, in, out, [root, count](const std::vector<const std::byte*>& parts) {
      const std::byte* const from = parts[static_cast<size_t>(root)];
      return Bytes(from, from + count);
    });
  });
}
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* operation, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t, ncclComm_t comm) {
  return guarded([&]() -> ncclResult_t {
    const int made = ncclNumOps + static_cast<int>(comm->scales.size());
    comm->scales[made] = numbers(dtype_of(type), static_cast<const std::byte*>(scalar), 1)[0];
    *operation = static_cast<ncclRedOp_t>(made);
    return ncclSuccess;
  });
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t operation, ncclComm_t comm) {
  return comm->scales.erase(static_cast<int>(operation)) == 1 ? ncclSuccess : ncclInvalidArgument;
}

}  // extern "C"
