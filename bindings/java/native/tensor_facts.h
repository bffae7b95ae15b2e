/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors as the numbers that Java gives of them. Any thread. */
#ifndef SHARDWRIGHT_JAVA_TENSOR_FACTS_H
#define SHARDWRIGHT_JAVA_TENSOR_FACTS_H

#include <stdint.h>

#include "shardwright/tensor.h"

/* What the facts of a tensor begin with. */
enum { kAddress, kBytes, kDtype, kNdim, kDeviceType, kDeviceId, kTensorFacts };

/* A row-major tensor from its facts; *shapes moves on to the next one. */
shw_tensor shw_java_tensor(const int64_t* facts, const int64_t** shapes);

#endif
