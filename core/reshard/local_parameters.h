// SPDX-License-Identifier: Apache-2.0
//
// Local parameters: what single ranks of the job that saved held of the model's weights, as far as
// stored chunks tell: a chunk each, and what ranks hold as one parameter that is stored in several
// parts (the two halves of a SwiGLU, the parts of Mamba's in_proj). Values, pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/exec/checkpoint.h"
#include "core/layout/box.h"
#include "core/plan/catalog.h"

namespace shardwright::reshard {

// A box of a stored tensor that is a part of a local parameter, which has its parts one after the
// other in row-major order.
struct LocalPart {
  size_t tensor = 0;
  Box box;
};

struct LocalParameter {
  std::vector<LocalPart> parts;
  int64_t elements = 0;
  DType dtype = DType::kInvalid;

  std::string_view name(const plan::Catalog& catalog) const {
    return catalog.tensor_name(parts[0].tensor);
  }
  std::string text(const plan::Catalog& catalog) const;  // "'decoder.w' [0:1, 0:64]"
};

// The dimension in which rows of a parameter are shared out: the first one of which a chunk has
// more than one index; those in front of it number layers and experts. The box has dimensions.
size_t row_dimension(const Box& box);
// Whether an entry is of the model: neither of the optimizer nor common state.
bool is_of_model(std::string_view name);

// Whether a parameter is of experts that ranks share out.
bool is_of_experts(std::string_view name);
// The name of the parameter in that of one of its states ("optimizer.state.exp_avg.NAME"), which
// ends with it; of any other entry its own.
std::string_view model_name(std::string_view name);
// "optimizer.state.exp_avg.NAME"
std::string state_name(std::string_view state, std::string_view parameter);

std::vector<LocalParameter> find_local_parameters(const plan::Catalog& catalog);

}  // namespace shardwright::reshard
