// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/dtype_policy.h"

#include <fmt/format.h>

#include "core/tensor/cast.h"
#include "core/tensor/ordered_add.h"

namespace shardwright::hsdp {
namespace {

Status check_gradient_dtype(DType dtype, std::string_view what) {
  if (dtype == DType::kInvalid || carries_gradients(dtype)) return {};
  return invalid_argument(
      fmt::format("{} cannot be {}; it is one of float16, bfloat16, float32, float64", what,
                  dtype_name(dtype)));
}

}  // namespace

bool carries_gradients(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

Result<DTypePolicy> dtype_policy(const UnitOptions& options, DType stored) {
  SHW_RETURN_IF_ERROR(check_gradient_dtype(options.reduce_dtype, "the reduce dtype"));
  SHW_RETURN_IF_ERROR(check_gradient_dtype(options.gradient_dtype, "the gradient dtype"));
  DTypePolicy policy{stored, stored, stored, stored};
  if (!carries_gradients(stored)) return policy;
  if (options.parameter_dtype != DType::kInvalid) policy.compute = options.parameter_dtype;
  if (options.gradient_dtype != DType::kInvalid) policy.gradient = options.gradient_dtype;
  policy.reduce = options.reduce_dtype != DType::kInvalid ? options.reduce_dtype : policy.gradient;
  if (!cast_is_supported(stored, policy.compute))
    return unimplemented(
        fmt::format("parameters cannot be gathered as {}: there is no cast from {}",
                    dtype_name(policy.compute), dtype_name(stored)));
  return policy;
}

}  // namespace shardwright::hsdp
