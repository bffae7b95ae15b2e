// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_reader.h"

#include "core/format/archive/pickle_machine_internal.h"

namespace shardwright::format::archive {

Result<PickleData> read_pickle(std::span<const std::byte> input, const PickleOptions& options,
                               uint64_t* end) {
  using internal::PickleMachine;
  using internal::Recycling;
  PickleMachine machine(input, options, Recycling::kOn);
  if (machine.run()) {
    if (end != nullptr) *end = machine.end();
    return PickleData(machine.take_arena(), machine.root());
  }
  if (!machine.needs_again()) return machine.status();
  PickleMachine again(input, options, Recycling::kOff);
  if (!again.run()) return again.status();
  if (end != nullptr) *end = again.end();
  return PickleData(again.take_arena(), again.root());
}

}  // namespace shardwright::format::archive
