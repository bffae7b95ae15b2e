// SPDX-License-Identifier: Apache-2.0
//
// Entries of the contract's planning steps, there and back: a step's list as the flat arrays of C,
// and the boxes of a plan as texts.
#pragma once

#include <string>
#include <vector>

#include "tests/bindings/c/handles.h"
#include "tests/bindings/c/values.h"

namespace contract {

// Texts in one blob.
struct Texts {
  std::string blob;
  std::vector<uint64_t> offsets = {0};
  void add(const std::string& text);
};

// The `entries` of a step as columns.
class Entries {
 public:
  explicit Entries(const Json& step);
  // Borrowed from this.
  shw_entry_batch batch() const;

 private:
  void add(const Json& entry);
  void add_boxes(const Json& entry, const std::vector<int64_t>& shape);

  Texts names_, paths_, attributes_;
  std::vector<int32_t> dtypes_, kinds_;
  std::vector<uint64_t> sizes_, order_;
  std::vector<int64_t> shapes_, box_offsets_, box_sizes_;
  std::vector<uint64_t> shape_offsets_ = {0};
  std::vector<uint64_t> box_ranges_ = {0};
  Bytes digests_, secondary_;
};

// One text per box: name, dtype, kind, offsets, sizes, number.
std::vector<std::string> box_lines(const shw_plan* plan);
// name#number of each box that the rank of the plan keeps; `numbers`: what a merge says of its
// boxes.
std::vector<std::string> kept_names(const shw_plan* plan, const std::vector<uint32_t>& numbers);

}  // namespace contract
