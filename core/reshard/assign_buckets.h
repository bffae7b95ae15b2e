// SPDX-License-Identifier: Apache-2.0
//
// Which parameter lies where in the buckets: proved by contents, never guessed. From the beginning
// of a bucket on, a run that ends where a chunk does and equals a parameter of the model, rounded
// as the model was, is that parameter; the next one begins at the next multiple of 64 elements.
// Where several parameters are equal in every bit, the order in which a model declares them
// decides, and where it cannot, a description from outside must. Pure but for the contents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/catalog.h"
#include "core/reshard/buckets.h"
#include "core/reshard/contents.h"
#include "core/reshard/local_parameters.h"

namespace shardwright::reshard {

struct Assigned {
  size_t bucket = 0;
  int64_t begin = 0;     // in the bucket, of the parameter's first element
  size_t parameter = 0;  // number in the list of local parameters
};

// What a host says of one place: the parameter with just these parts begins there.
struct SaidPlace {
  std::string bucket;  // as Bucket::name
  int64_t begin = 0;
  std::vector<std::pair<std::string, Box>> parts;  // names and boxes
};

struct AssignInput {
  const plan::Catalog& catalog;
  const std::vector<Bucket>& buckets;
  const std::vector<LocalParameter>& parameters;
  const std::vector<SaidPlace>& said;
};

// In the order of the buckets; a parameter that several groups hold is there several times.
// FAILED_PRECONDITION naming bucket, place and what was tried: a run that is no stored weight, or
// several alike of which no order is known. INVALID_ARGUMENT for what was said and does not fit.
Result<std::vector<Assigned>> assign_buckets(const AssignInput& input, Contents* contents);

}  // namespace shardwright::reshard
