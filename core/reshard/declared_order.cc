// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/declared_order.h"

#include <array>
#include <charconv>
#include <utility>

namespace shardwright::reshard {
namespace {

constexpr std::string_view kLayerWord = "layers.";
constexpr int32_t kLayers = 10;
constexpr int32_t kExperts = 30;

// Words of names outside of layers, and inside of one, with their places.
constexpr std::array<std::pair<std::string_view, int32_t>, 6> kSections = {{
    {"word_embeddings.", 0},
    {"position_embeddings.", 1},
    {"tokentype_embeddings.", 2},
    {"final_layernorm.", kLayers + 1},
    {"final_norm.", kLayers + 1},
    {"output_layer.", kLayers + 2},
}};
constexpr std::array<std::pair<std::string_view, int32_t>, 16> kModules = {{
    {"input_layernorm.", 0},
    {"linear_qkv.layer_norm_", 0},
    {"mixer.", 1},
    {"self_attention.linear_proj.", 2},
    {"self_attention.linear_qkv.", 3},
    {"self_attention.q_layernorm.", 4},
    {"self_attention.k_layernorm.", 5},
    {"pre_cross_attn_layernorm.", 10},
    {"cross_attention.", 11},
    {"pre_mlp_layernorm.", 20},
    {"mlp.linear_fc1.layer_norm_", 20},
    {"mlp.router.", 21},
    {"mlp.experts.", kExperts},
    {"mlp.shared_experts.", 40},
    {"mlp.linear_fc1.", 41},
    {"mlp.linear_fc2.", 42},
}};

// The number behind a word, as in "layers.3."; nullopt where another name stands there.
std::optional<int64_t> number_behind(std::string_view name, std::string_view word) {
  const size_t at = name.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(at + word.size());
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (failed != std::errc() || end == rest.data()) return std::nullopt;
  return value;
}

// Leading indexes of a box whose extents are 1: layer, then expert.
int64_t index_at(const Box& box, size_t dimension) {
  if (dimension + 1 >= box.sizes.size() || box.sizes[dimension] != 1) return 0;
  return box.offsets[dimension];
}

int32_t parameter_place(std::string_view name) {
  int32_t place = 0;
  if (name.find("linear_fc2") != std::string_view::npos) place += 2;
  if (name.ends_with("bias")) place += 1;
  return place;
}

}  // namespace

std::optional<int64_t> layer_in_name(std::string_view name) {
  return number_behind(name, kLayerWord);
}

std::optional<int64_t> layer_of(std::string_view name, const Box& box) {
  if (name.find(kLayerWord) == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> said = layer_in_name(name);
  return said.has_value() ? *said : index_at(box, 0);
}

bool is_behind_layers(std::string_view name) {
  const std::optional<DeclaredPlace> place = declared_place(name, Box());
  return place.has_value() && place->section > kLayers;
}

std::optional<DeclaredPlace> declared_place(std::string_view name, const Box& box) {
  DeclaredPlace place;
  place.parameter = parameter_place(name);
  const std::optional<int64_t> layer = layer_of(name, box);
  if (!layer.has_value()) {
    for (const auto& [word, section] : kSections) {
      if (name.find(word) == std::string_view::npos) continue;
      place.section = section;
      return place;
    }
    return std::nullopt;
  }
  place.section = kLayers;
  place.layer = *layer;
  for (const auto& [word, module] : kModules) {
    if (name.find(word) == std::string_view::npos) continue;
    place.module = module;
    if (module == kExperts) {
      const bool has_number = layer_in_name(name).has_value();
      const auto said = number_behind(name, "local_experts.");
      place.expert = said.has_value() ? *said : index_at(box, has_number ? 0 : 1);
    }
    return place;
  }
  return std::nullopt;
}

}  // namespace shardwright::reshard
