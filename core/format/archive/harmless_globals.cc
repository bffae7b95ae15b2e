// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/harmless_globals.h"

#include <algorithm>
#include <array>

#include "core/tensor/dtype.h"

namespace shardwright::format::archive {
namespace {

constexpr uint8_t kMade = kPickleCall;

constexpr PickleClass made(std::string_view module, std::string_view name) {
  return {module, name, kMade, {}};
}
// By itself: nothing calls it.
constexpr PickleClass named(std::string_view module, std::string_view name) {
  return {module, name, 0, {}};
}

constexpr std::array kHarmless = {
    made("builtins", "set"),
    made("builtins", "frozenset"),
    made("builtins", "complex"),
    made("builtins", "range"),
    made("builtins", "slice"),
    made("builtins", "bytearray"),
    made("__builtin__", "set"),
    made("__builtin__", "frozenset"),
    made("__builtin__", "complex"),
    made("__builtin__", "xrange"),
    made("__builtin__", "slice"),
    made("__builtin__", "bytearray"),
    named("builtins", "int"),
    named("builtins", "float"),
    named("builtins", "str"),
    named("builtins", "bool"),
    named("builtins", "list"),
    named("builtins", "dict"),
    named("builtins", "tuple"),
    named("builtins", "object"),
    named("builtins", "Ellipsis"),
    named("builtins", "NotImplemented"),
    named("__builtin__", "int"),
    named("__builtin__", "long"),
    named("__builtin__", "float"),
    named("__builtin__", "unicode"),
    named("__builtin__", "bool"),
    named("__builtin__", "list"),
    named("__builtin__", "dict"),
    named("__builtin__", "tuple"),
    named("__builtin__", "object"),
    made("collections", "Counter"),
    made("collections", "deque"),
    made("array", "array"),
    made("array", "_array_reconstructor"),
    made("datetime", "date"),
    made("datetime", "time"),
    made("datetime", "datetime"),
    made("datetime", "timedelta"),
    made("datetime", "timezone"),
    made("decimal", "Decimal"),
    made("fractions", "Fraction"),
    made("types", "SimpleNamespace"),
    made("argparse", "Namespace"),
    made("uuid", "UUID"),
    made("uuid", "SafeUUID"),
    made("_io", "BytesIO"),
    made("_io", "StringIO"),
    made("io", "BytesIO"),
    made("io", "StringIO"),
    made("pathlib", "PosixPath"),
    made("pathlib", "WindowsPath"),
    made("pathlib", "PurePosixPath"),
    made("pathlib", "PureWindowsPath"),
    made("pathlib._local", "PosixPath"),
    made("pathlib._local", "WindowsPath"),
    made("pathlib._local", "PurePosixPath"),
    made("pathlib._local", "PureWindowsPath"),
    made("numpy", "dtype"),
    named("numpy", "ndarray"),
    made("numpy.core.multiarray", "_reconstruct"),
    made("numpy._core.multiarray", "_reconstruct"),
    made("numpy.core.multiarray", "scalar"),
    made("numpy._core.multiarray", "scalar"),
    made("numpy.core.numeric", "_frombuffer"),
    made("numpy._core.numeric", "_frombuffer"),
    named("numpy", "bool"),
    named("numpy", "bool_"),
    named("numpy", "int8"),
    named("numpy", "int16"),
    named("numpy", "int32"),
    named("numpy", "int64"),
    named("numpy", "uint8"),
    named("numpy", "uint16"),
    named("numpy", "uint32"),
    named("numpy", "uint64"),
    named("numpy", "float16"),
    named("numpy", "float32"),
    named("numpy", "float64"),
    named("numpy", "longdouble"),
    named("numpy", "complex64"),
    named("numpy", "complex128"),
    named("numpy", "str_"),
    named("numpy", "bytes_"),
    named("numpy", "void"),
    named("numpy", "datetime64"),
    named("numpy", "timedelta64"),
    made("torch.nn.parameter", "Parameter"),
    made("torch", "Tensor"),
    made("torch.serialization", "_get_layout"),
    made("torch._utils", "_rebuild_device_tensor_from_numpy"),
    named("torch", "per_tensor_affine"),
    named("torch", "per_tensor_symmetric"),
    named("torch", "per_channel_affine"),
    named("torch", "per_channel_symmetric"),
    named("torch", "per_channel_affine_float_qparams"),
};

// dtypes of torch that have no name among those of tensors here.
constexpr std::array<std::string_view, 20> kOtherDtypes = {
    "float",    "double",  "half",    "short",   "int",    "long",   "bool",
    "cfloat",   "cdouble", "chalf",   "qint8",   "quint8", "qint32", "quint4x2",
    "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8",  "bits16",
};
constexpr std::array<std::string_view, 18> kStorageKinds = {
    "Float",       "Double", "Half",   "BFloat16", "Long",         "Int",
    "Short",       "Char",   "Byte",   "Bool",     "ComplexFloat", "ComplexDouble",
    "ComplexHalf", "QInt8",  "QUInt8", "QInt32",   "QUInt4x2",     "QUInt2x4",
};
constexpr std::array<std::string_view, 4> kStorageNames = {"UntypedStorage", "_UntypedStorage",
                                                           "TypedStorage", "_TypedStorage"};

template <size_t count>
bool is_among(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// "1" to "7": numbers of so few bits.
bool is_small_integer(std::string_view name) {
  const std::string_view digits = name.starts_with("uint")  ? name.substr(4)
                                  : name.starts_with("int") ? name.substr(3)
                                                            : std::string_view();
  return digits.size() == 1 && digits[0] >= '1' && digits[0] <= '7';
}

}  // namespace

std::span<const PickleClass> harmless_vocabulary() {
  return kHarmless;
}

bool is_torch_value(std::string_view module, std::string_view name) {
  if (module == "torch.storage") return is_among(kStorageNames, name);
  if (module != "torch" && module != "torch.cuda") return false;
  constexpr std::string_view kStorage = "Storage";
  if (name.ends_with(kStorage) &&
      is_among(kStorageKinds, name.substr(0, name.size() - kStorage.size())))
    return true;
  return module == "torch" && (dtype_from_name(name).has_value() || is_among(kOtherDtypes, name) ||
                               is_small_integer(name) || name == "float4_e2m1fn_x2");
}

}  // namespace shardwright::format::archive
