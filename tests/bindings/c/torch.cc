// SPDX-License-Identifier: Apache-2.0
//
// The steps that write items of torch.distributed.checkpoint for an index of somebody else's.
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/bindings/c/interpreter.h"

namespace contract {
namespace {

// [[name, offset, length], ...] of the first part, as the step says it.
Json places_of(shw_buffer* written, const shw_state* state) {
  const auto* rows = static_cast<const uint64_t*>(shw_buffer_part_data(written, 0));
  const uint64_t count = shw_buffer_part_size(written, 0) / (3 * sizeof(uint64_t));
  const uint64_t tensors = shw_state_tensor_count(state);
  Json places = Json::array();
  for (uint64_t i = 0; i < count; ++i, rows += 3) {
    uint64_t size = 0;
    const char* name = rows[0] < tensors ? shw_state_tensor_name(state, rows[0], &size)
                                         : shw_state_object_name(state, rows[0] - tensors, &size);
    places.push_back({std::string(name, size), rows[1], rows[2]});
  }
  return places;
}

}  // namespace

void Interpreter::write_items(const Json& step) {
  const shw_state* state = states_.at(text_of(step, "state")).get();
  shw_buffer* made = nullptr;
  shw_error* error = nullptr;
  check(shw_torch_items_write(context_, state, storage_of(step), path_of(step).c_str(),
                              text_of(step, "name").c_str(), nullptr, &made, &error),
        &error);
  const Buffer written(made);
  const auto* result = static_cast<const uint8_t*>(shw_buffer_part_data(made, 1));
  plans_[text_of(step, "id")] = Bytes(result, result + shw_buffer_part_size(made, 1));
  const Json places = places_of(made, state);
  if (step.contains("places") && step["places"] != places)
    throw std::runtime_error("items lie at " + places.dump());
}

void Interpreter::write_item_digests(const Json& step) {
  std::ifstream in(root_ / text_of(step, "index"), std::ios::binary);
  const std::string index{std::istreambuf_iterator<char>(in), {}};
  std::vector<uint64_t> offsets;
  const Bytes results = join(member(step, "results"), &offsets);
  shw_error* error = nullptr;
  check(shw_torch_digests_write(context_, storage_of(step), path_of(step).c_str(), index.data(),
                                index.size(), results.data(), offsets.data(), offsets.size() - 1,
                                nullptr, &error),
        &error);
}

}  // namespace contract
