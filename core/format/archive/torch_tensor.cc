// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/torch_tensor.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/derived_items.h"

namespace shardwright::format::archive {
namespace {

using enum TorchGlobal;

constexpr PickleClass called(std::string_view module, std::string_view name) {
  return {module, name, kPickleCall, {}};
}

// In the order of TorchGlobal.
constexpr std::array kVocabulary = {
    called("torch._utils", "_rebuild_tensor"),
    called("torch._utils", "_rebuild_tensor_v2"),
    called("torch._utils", "_rebuild_tensor_v3"),
    called("torch._utils", "_rebuild_parameter"),
    called("torch._utils", "_rebuild_parameter_with_state"),
    called("torch._utils", "_rebuild_sparse_tensor"),
    called("torch._utils", "_rebuild_sparse_csr_tensor"),
    called("torch._utils", "_rebuild_nested_tensor"),
    called("torch._utils", "_rebuild_qtensor"),
    called("torch._utils", "_rebuild_meta_tensor_no_storage"),
    called("torch._utils", "_rebuild_wrapper_subclass"),
    called("torch._utils", "_rebuild_device_tensor_from_numpy"),
    called("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"),
    called("torch._tensor", "_rebuild_from_type_v2"),
    called("collections", "OrderedDict"),
    called("collections", "defaultdict"),
    called("torch", "Size"),
    called("torch", "device"),
    called("_codecs", "encode"),
    called("__builtin__", "bytes"),
    called("builtins", "bytes"),
};
static_assert(kVocabulary.size() == static_cast<size_t>(kBytesOf3) + 1);

constexpr std::array<std::pair<std::string_view, DType>, 20> kStorages = {{
    {"FloatStorage", DType::kFloat32},
    {"DoubleStorage", DType::kFloat64},
    {"HalfStorage", DType::kFloat16},
    {"BFloat16Storage", DType::kBfloat16},
    {"LongStorage", DType::kInt64},
    {"IntStorage", DType::kInt32},
    {"ShortStorage", DType::kInt16},
    {"CharStorage", DType::kInt8},
    {"ByteStorage", DType::kUint8},
    {"BoolStorage", DType::kBool},
    {"ComplexFloatStorage", DType::kComplex64},
    {"ComplexDoubleStorage", DType::kComplex128},
    {"ComplexHalfStorage", DType::kComplex32},
    {"UntypedStorage", DType::kUint8},
    {"_UntypedStorage", DType::kUint8},
    // Of quantised tensors, which are refused by how they are rebuilt.
    {"QInt8Storage", DType::kInt8},
    {"QUInt8Storage", DType::kUint8},
    {"QInt32Storage", DType::kInt32},
    {"QUInt4x2Storage", DType::kUint8},
    {"QUInt2x4Storage", DType::kUint8},
}};

constexpr std::string_view kPackedFloat4 = "float4_e2m1fn_x2";

class TensorReader {
 public:
  TensorReader(const PickleData& data, std::string_view file) : data_(data), file_(file) {}

  Result<std::optional<TorchTensor>> read(PickleRef value) const {
    std::span<const PickleRef> arguments;
    const int32_t known = call_of(value, &arguments);
    if (known < 0 || known >= static_cast<int32_t>(kOrderedDict))
      return std::optional<TorchTensor>();
    if (known >= static_cast<int32_t>(kFirstRefused))
      return refused(kVocabulary[static_cast<size_t>(known)].name);
    if (known == static_cast<int32_t>(kRebuildParameter) ||
        known == static_cast<int32_t>(kRebuildParameterWithState)) {
      if (arguments.empty()) return damaged("a parameter has no tensor");
      // Parameters hold no parameters, so this ends.
      const int32_t inner = call_of(arguments[0], &arguments);
      if (inner < 0 || inner > static_cast<int32_t>(kRebuildTensor3)) {
        const bool is_known = inner >= static_cast<int32_t>(kFirstRefused) &&
                              inner < static_cast<int32_t>(kOrderedDict);
        if (is_known) return refused(kVocabulary[static_cast<size_t>(inner)].name);
        return refused("a parameter of something else than a tensor");
      }
      return rebuilt(static_cast<TorchGlobal>(inner), arguments);
    }
    return rebuilt(static_cast<TorchGlobal>(known), arguments);
  }

  // ("storage", class, key, device, elements[, view]).
  Result<TorchStorage> storage(PickleRef value) const {
    const PickleRef target = data_.target(value);
    if (data_.kind(target) != PickleKind::kTuple) return damaged("a storage is named by no tuple");
    const auto parts = data_.tuple(target);
    if (parts.size() < 5 || parts.size() > 6 || data_.kind(parts[0]) != PickleKind::kText ||
        data_.text(parts[0]) != "storage" || data_.kind(parts[1]) != PickleKind::kGlobal ||
        data_.kind(parts[2]) != PickleKind::kText || data_.kind(parts[4]) != PickleKind::kInteger)
      return damaged("a storage has another name than those of torch");
    const std::string_view name = data_.global(parts[1]).name;
    const auto* found =
        std::ranges::find(kStorages, name, [](const auto& row) { return row.first; });
    if (found == kStorages.end()) return refused(fmt::format("{}", escape_text(name, 64)));
    TorchStorage storage;
    storage.key = data_.text(parts[2]);
    storage.dtype = found->second;
    const auto bytes = static_cast<uint64_t>(dtype_bits(storage.dtype) / 8);
    const int64_t elements = data_.integer(parts[4]);
    if (elements < 0 ||
        !checked_multiply(static_cast<uint64_t>(elements), bytes, &storage.size_bytes))
      return damaged("a storage has an impossible size");
    if (parts.size() == 6 && data_.kind(parts[5]) != PickleKind::kNone)
      SHW_RETURN_IF_ERROR(take_view(parts[5], bytes, &storage));
    return storage;
  }

 private:
  Status damaged(std::string_view what) const {
    return data_loss(fmt::format("file '{}': {}, which torch.save never writes", escape_text(file_),
                                 what))
        .with_detail("file", file_);
  }
  Status refused(std::string_view form) const {
    return unimplemented(fmt::format("file '{}': a tensor of the form {} is recognised and cannot "
                                     "be given as a tensor",
                                     escape_text(file_), form))
        .with_detail("file", file_)
        .with_detail("form", form);
  }

  // Position in the vocabulary of what is called, and its arguments; -1 for anything else.
  int32_t call_of(PickleRef value, std::span<const PickleRef>* arguments) const {
    const PickleKind kind = data_.kind(value);
    if (kind == PickleKind::kRecord) {
      *arguments = data_.fields(value);
      return data_.known(value);
    }
    // A state was set on what the call gives: a Python attribute of the tensor.
    if (kind != PickleKind::kObject || data_.known(value) < 0) return -1;
    *arguments = data_.tuple(data_.arguments(value));
    return data_.known(value);
  }

  Result<std::optional<TorchTensor>> rebuilt(TorchGlobal form,
                                             std::span<const PickleRef> arguments) const {
    const size_t least = form == kRebuildTensor3 ? 7 : form == kRebuildTensor2 ? 6 : 4;
    if (arguments.size() < least || arguments.size() > least + 1)
      return damaged(fmt::format("a tensor is rebuilt of {} values", arguments.size()));
    TorchTensor tensor;
    SHW_RETURN_IF_ERROR(take_storage(arguments[0], &tensor));
    SHW_RETURN_IF_ERROR(take_dims(arguments[2], &tensor.shape));
    SHW_RETURN_IF_ERROR(take_dims(arguments[3], &tensor.strides));
    bool is_packed_float4 = false;
    if (form == kRebuildTensor3)
      SHW_RETURN_IF_ERROR(take_dtype(arguments[6], &tensor.dtype, &is_packed_float4));
    if (arguments.size() > least) SHW_RETURN_IF_ERROR(check_metadata(arguments.back()));
    SHW_RETURN_IF_ERROR(place(arguments[1], is_packed_float4, &tensor));
    return std::optional(std::move(tensor));
  }

  Status take_storage(PickleRef value, TorchTensor* tensor) const {
    if (data_.kind(value) != PickleKind::kPersistent) return damaged("a tensor has no storage");
    SHW_ASSIGN_OR_RETURN(const TorchStorage found, storage(value));
    tensor->dtype = found.dtype;
    tensor->storage = found.key;
    tensor->storage_bytes = found.size_bytes;
    tensor->offset_bytes = found.view_offset_bytes;
    return {};
  }

  // (key, offset, elements).
  Status take_view(PickleRef value, uint64_t element_bytes, TorchStorage* storage) const {
    const bool is_tuple = data_.kind(value) == PickleKind::kTuple;
    const auto parts = is_tuple ? data_.tuple(value) : std::span<const PickleRef>();
    if (parts.size() != 3 || data_.kind(parts[1]) != PickleKind::kInteger ||
        data_.integer(parts[1]) < 0 ||
        !checked_multiply(static_cast<uint64_t>(data_.integer(parts[1])), element_bytes,
                          &storage->view_offset_bytes))
      return damaged("a storage is a part of another one and does not say which");
    return {};
  }

  Status take_dims(PickleRef value, Dims* dims) const {
    const PickleKind kind = data_.kind(value);
    std::span<const PickleRef> extents;
    if (kind == PickleKind::kTuple) {
      extents = data_.tuple(value);
    } else if (kind == PickleKind::kRecord && data_.known(value) == static_cast<int32_t>(kSize) &&
               data_.fields(value).size() == 1 &&
               data_.kind(data_.fields(value)[0]) == PickleKind::kTuple) {
      extents = data_.tuple(data_.fields(value)[0]);
    } else {
      return damaged("a shape is no tuple");
    }
    if (extents.size() > static_cast<size_t>(kMaxTensorRank))
      return damaged(fmt::format("a tensor has {} dimensions", extents.size()));
    *dims = Dims(extents.size(), 0);
    for (size_t d = 0; d < extents.size(); ++d) {
      if (data_.kind(extents[d]) != PickleKind::kInteger) return damaged("a shape has no numbers");
      (*dims)[d] = data_.integer(extents[d]);
    }
    return {};
  }

  Status take_dtype(PickleRef value, DType* dtype, bool* is_packed_float4) const {
    const std::optional<std::string_view> name = torch_dtype_name(data_, value);
    if (!name.has_value()) return damaged("a dtype is none of torch");
    *is_packed_float4 = *name == kPackedFloat4;
    const auto found =
        *is_packed_float4 ? std::optional(DType::kFloat4E2m1fn) : dtype_from_name(*name);
    // How torch lays out elements of less than a byte is known for pairs of float4 alone.
    if (!found.has_value() || (dtype_is_subbyte(*found) && !*is_packed_float4))
      return refused(fmt::format("dtype {}", escape_text(*name, 64)));
    *dtype = *found;
    return {};
  }

  Status check_metadata(PickleRef value) const {
    if (data_.kind(value) == PickleKind::kNone) return {};
    if (data_.kind(value) != PickleKind::kDict) return damaged("a tensor's metadata is no dict");
    PickleCursor pairs = data_.pairs(value);
    for (PickleRef key, set; pairs.next(&key) && pairs.next(&set);) {
      const bool is_unset = data_.kind(set) == PickleKind::kBool && !data_.boolean(set);
      const std::string_view name =
          data_.kind(key) == PickleKind::kText ? data_.text(key) : std::string_view("?");
      if (!is_unset) return refused(fmt::format("metadata '{}'", escape_text(name, 64)));
    }
    return {};
  }

  // Whether all elements lie in the storage.
  Status place(PickleRef offset, bool is_packed_float4, TorchTensor* tensor) const {
    if (tensor->shape.size() != tensor->strides.size())
      return damaged("shape and strides of a tensor have different lengths");
    if (data_.kind(offset) != PickleKind::kInteger || data_.integer(offset) < 0)
      return damaged("a tensor begins in front of its storage");
    const Result<uint64_t> elements = elements_spanned(tensor->shape, tensor->strides);
    if (!elements.ok()) return damaged(std::string(elements.status().message()));
    const auto bytes =
        is_packed_float4 ? uint64_t{1} : static_cast<uint64_t>(dtype_bits(tensor->dtype) / 8);
    uint64_t begin = 0;
    uint64_t end = 0;
    if (!checked_multiply(static_cast<uint64_t>(data_.integer(offset)), bytes, &begin) ||
        !checked_add(begin, tensor->offset_bytes, &begin) ||
        !checked_multiply(*elements, bytes, &end) || !checked_add(begin, end, &end))
      return damaged("a tensor ends beyond what can be counted");
    if (end > tensor->storage_bytes && *elements > 0)
      return damaged(fmt::format("a tensor of shape [{}] ends at byte {} of a storage of {}",
                                 fmt::join(tensor->shape, ","), end, tensor->storage_bytes));
    tensor->offset_bytes = *elements == 0 ? 0 : begin;
    return is_packed_float4 ? unpack_float4(tensor) : Status();
  }

  // torch counts pairs of elements.
  Status unpack_float4(TorchTensor* tensor) const {
    const size_t last = tensor->shape.size();
    if (last == 0 || !is_packed(tensor->shape, tensor->strides))
      return refused(fmt::format("{} without packed rows", kPackedFloat4));
    int64_t stride = 1;
    for (size_t d = last; d-- > 0;) {
      tensor->strides[d] = stride;
      if (d + 1 == last && !checked_multiply(tensor->shape[d], int64_t{2}, &tensor->shape[d]))
        return damaged("a tensor ends beyond what can be counted");
      if (!checked_multiply(stride, std::max<int64_t>(tensor->shape[d], 1), &stride))
        return damaged("a tensor ends beyond what can be counted");
    }
    return {};
  }

  const PickleData& data_;
  std::string_view file_;
};

}  // namespace

std::span<const PickleClass> torch_vocabulary() {
  return kVocabulary;
}

Result<std::optional<TorchTensor>> torch_tensor(const PickleData& data, PickleRef value,
                                                std::string_view file) {
  return TensorReader(data, file).read(value);
}

Result<TorchStorage> torch_storage(const PickleData& data, PickleRef value, std::string_view file) {
  return TensorReader(data, file).storage(value);
}

std::optional<std::string_view> torch_dtype_name(const PickleData& data, PickleRef value) {
  if (data.kind(value) != PickleKind::kGlobal) return std::nullopt;
  const PickleGlobal& global = data.global(value);
  if (global.module != "torch") return std::nullopt;
  const std::string_view name = global.name;
  // Those that are in no table here are dtypes by how their names begin.
  const bool is_like_one = name.starts_with("float") || name.starts_with("int") ||
                           name.starts_with("uint") || name.starts_with("q") ||
                           name.starts_with("bits") || name.starts_with("complex");
  if (!dtype_from_name(name).has_value() && !is_like_one) return std::nullopt;
  return name;
}

}  // namespace shardwright::format::archive
