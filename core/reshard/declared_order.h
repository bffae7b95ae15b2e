// SPDX-License-Identifier: Apache-2.0
//
// The order in which a model of Megatron declares its parameters, as far as names tell it. It
// decides only between parameters of equal contents; whatever else a bucket shows is proved.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/layout/box.h"

namespace shardwright::reshard {

struct DeclaredPlace {
  int32_t section = 0;  // embedding, layers, what follows them, output
  int64_t layer = 0;    // of all pipeline stages
  int32_t module = 0;   // in the layer
  int64_t expert = 0;
  int32_t parameter = 0;  // weights before biases
  friend auto operator<=>(const DeclaredPlace&, const DeclaredPlace&) = default;
};

// The layer that a name says; nullopt where layers are no names, but the first dimension.
std::optional<int64_t> layer_in_name(std::string_view name);
// The layer that a name, or the first index of a box of it, says; nullopt outside of layers.
std::optional<int64_t> layer_of(std::string_view name, const Box& box);
// Whether it is declared behind all layers, as far as is known.
bool is_behind_layers(std::string_view name);
// nullopt for a name whose place is not known.
std::optional<DeclaredPlace> declared_place(std::string_view name, const Box& box);

}  // namespace shardwright::reshard
