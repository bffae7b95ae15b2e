// SPDX-License-Identifier: Apache-2.0
//
// What the pickles of torch.save say of tensors: which storage, and which of its elements.
// Behaviour of torch._utils and torch.serialization, torch 1.0 to 2.15; nothing of it is called.
// Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/format/archive/pickle_reader.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::archive {

// Positions in torch_vocabulary() that readers of values ask for.
enum class TorchGlobal : int32_t {
  kRebuildTensor,
  kRebuildTensor2,
  kRebuildTensor3,
  kRebuildParameter,
  kRebuildParameterWithState,
  kFirstRefused,  // tensors that are not given: sparse, quantised, ...
  kOrderedDict = kFirstRefused + 9,
  kDefaultDict,
  kSize,
  kDevice,
  kEncode,    // bytes in protocols without them: a text and "latin1"
  kBytes,     // and no bytes at all
  kBytesOf3,  // the same under its newer name
};

// Globals that mean something here; for read_pickle.
std::span<const PickleClass> torch_vocabulary();

// What the persistent id of a storage says.
struct TorchStorage {
  std::string_view key;
  DType dtype = DType::kInvalid;   // of its elements; kUint8 when it has none of its own
  uint64_t size_bytes = 0;         // of the whole storage
  uint64_t view_offset_bytes = 0;  // of a part of it, in files of before torch 0.4
};
// Of a kPersistent. The failures of torch_tensor.
Result<TorchStorage> torch_storage(const PickleData& data, PickleRef value, std::string_view file);

// A tensor as it lies in its storage.
struct TorchTensor {
  std::string_view storage;    // its key
  uint64_t storage_bytes = 0;  // of the whole storage
  DType dtype = DType::kInvalid;
  uint64_t offset_bytes = 0;  // of the first element
  Dims shape;
  Dims strides;  // in elements, not negative
};

// The tensor that a value is, parameters included; nullopt for any other value. All its elements
// lie in its storage. file: for messages. UNIMPLEMENTED with detail form for tensors that are
// recognised and not given (sparse, quantised, of subclasses, without memory, lazily conjugated);
// DATA_LOSS for one that no torch writes.
Result<std::optional<TorchTensor>> torch_tensor(const PickleData& data, PickleRef value,
                                                std::string_view file);

// "float32" for torch.float32; nullopt when the value is no dtype.
std::optional<std::string_view> torch_dtype_name(const PickleData& data, PickleRef value);

}  // namespace shardwright::format::archive
