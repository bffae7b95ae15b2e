// SPDX-License-Identifier: Apache-2.0
//
// Mapping: rules that say under which names, in which shapes and in which boxes the entries of a
// host are stored. A rule takes the entries whose names match its pattern through its steps; each
// step is affine, so that what a host holds is stored, and loaded, as boxes of its own memory. The
// same rules work in both directions. Names that no rule matches stay as they are; a name that two
// rules match is refused. Rules also hold behind prefixes, such as those of optimizers: what a
// prefix matches is taken off the name and put back. docs/formats/mapping.md describes the JSON.
// Immutable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/tensor/dtype.h"

namespace shardwright {

// A number in a step: `value`, and to it what a capture of '#' holds (counted from 1; 0 for none).
struct MappingIndex {
  size_t capture = 0;
  int64_t value = 0;
};

// Axes are those of the tensor as the steps before left it; negative ones count from the end.

// Cuts an axis into parts: `count` equal ones, or as many as `sizes` lists; sizes are those of the
// whole tensor, and each part of a grid has its share of each of them. With one suffix per part, or
// a form of names with {#} for its number, each part becomes a tensor of its own; without, the
// parts stand one after the other in the axis that they come from.
struct SplitStep {
  int32_t axis = 0;
  int64_t count = 0;  // 0: as many as there are sizes or suffixes
  std::vector<int64_t> sizes = {};
  std::vector<std::string> suffixes = {};
  std::string name = {};
  // Off: each part of the grid holds a share of each part, one behind the other, as fused weights
  // under tensor parallelism do. On: the parts are consecutive in the whole tensor.
  bool whole_tensor = false;
};

// The entry is part `index` of an axis of a larger tensor: of `count` equal parts, or of those that
// `sizes` lists.
struct ConcatStep {
  int32_t axis = 0;
  MappingIndex index = {};
  int64_t count = 0;
  std::vector<int64_t> sizes = {};
};

struct RenameStep {
  std::string name;  // a NameForm over the captures; suffixes of splits stay
};

// A new axis of extent `count`, in which the entry is at `index`. Negative: -1 is a new last axis.
struct InsertAxisStep {
  int32_t axis = 0;
  MappingIndex index = {};
  int64_t count = 0;
};

// Each index of the axis becomes a tensor without it; {#} of the form is the index.
struct DropAxisStep {
  int32_t axis = 0;
  std::string name;
};

// The stored axis has `size` elements. What the entry has above is not stored, and loads set it to
// zero; what it lacks is stored as zeros, and loads leave it out.
struct PadStep {
  int32_t axis = 0;
  int64_t size = 0;
  int64_t real = 0;  // elements that are no padding, which an entry must have; 0: all
};

using MappingStep =
    std::variant<SplitStep, ConcatStep, RenameStep, InsertAxisStep, DropAxisStep, PadStep>;

struct MappingRule {
  std::string match;                     // a NamePattern
  std::vector<std::string> except = {};  // NamePatterns of names that the rule leaves alone
  bool optional = false;                 // may match no entry
  std::vector<MappingStep> steps = {};   // none: the entry passes as it is
};

// What a host holds: one box of one of its tensors.
struct MappingEntry {
  std::string_view name;
  DType dtype = DType::kFloat32;
  std::span<const int64_t> global_shape;
  // Equal parts per axis of the grid that the tensor is cut into, 0 where there is no regular one.
  // Empty: told from the box, on each axis of which it is one of equal parts.
  std::span<const int64_t> fragments;
  Box box;
};

enum class BoxRole : uint8_t {
  kStored,  // a part of the entry
  kZeros,   // padding that is stored, of which the entry has nothing
  kLeftOut  // padding of the entry, of which nothing is stored
};

// What is stored of it: a box of a tensor, and the part of the entry's box that holds it.
struct MappedBox {
  std::string name;
  Dims global_shape;
  Dims fragments;  // as above; 0 where the parts are not known to be equal
  Box box;
  Box source;  // inside the local box, which begins at the origin; of zeros nothing
  Dims axes;   // per axis of the tensor the axis of the entry that it is, -1 for an inserted one
  BoxRole role = BoxRole::kStored;  // of what is left out only `source` counts
};

// Value of "$name" in the JSON of a mapping.
struct MappingParameter {
  std::string name;
  int64_t value = 0;
};

// A mapping that the library brings: its name and its JSON.
struct ShippedMapping {
  std::string_view name;
  std::string_view json;
};
std::span<const ShippedMapping> shipped_mappings();

class Mapping {
 public:
  Mapping() = default;  // no rule

  // INVALID_ARGUMENT names rule and member: patterns and forms of names that do not fit, counts
  // that are not positive, sizes and suffixes that do not agree, captures that are no numbers.
  static Result<Mapping> create(std::vector<MappingRule> rules,
                                std::vector<std::string> prefixes = {});
  // INVALID_ARGUMENT with line and column, rule and member; also an unknown member, a parameter
  // that is used and not given, or given and not known. UNIMPLEMENTED for another schema.
  static Result<Mapping> parse(std::string_view json,
                               std::span<const MappingParameter> parameters = {});

  // One of the mappings of mapping_sets/. NOT_FOUND naming those that there are.
  static Result<Mapping> shipped(std::string_view name,
                                 std::span<const MappingParameter> parameters = {});

  bool empty() const { return compiled_ == nullptr; }
  std::span<const MappingRule> rules() const;

  // Number of the rule that matches, from 0. INVALID_ARGUMENT naming both rules when two do.
  Result<std::optional<size_t>> rule_of(std::string_view name) const;
  // In the order of the parts; nothing for an empty box. INVALID_ARGUMENT naming rule, member and
  // entry: an axis that is not there, an extent that is not divided, a box that no equal parts
  // tell, an axis shorter than what is no padding. OUT_OF_RANGE: a box that leaves the shape, a
  // number above its count. UNIMPLEMENTED: a cut inside a byte. RESOURCE_EXHAUSTED: too many boxes.
  Result<std::vector<MappedBox>> apply(const MappingEntry& entry) const;
  // INVALID_ARGUMENT naming each rule that matches none of the names and is not optional.
  Status check_used(std::span<const std::string_view> names) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;  // shared by copies
};

}  // namespace shardwright
