// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_scan.h"

#include "core/format/archive/pickle_machine_internal.h"

namespace shardwright::format::archive {

PickleScan scan_pickle(std::span<const std::byte> input, std::string_view file,
                       std::span<const PickleClass> vocabulary, const PickleLimits& limits) {
  PickleOptions options;
  options.file = file;
  options.vocabulary = vocabulary;
  options.limits = limits;
  internal::PickleMachine machine(input, options, internal::Recycling::kOff);
  PickleScan scan;
  if (!machine.run()) scan.ended = machine.status();
  scan.protocol = machine.protocol();
  scan.end = machine.end();
  for (const PickleGlobal& global : machine.globals()) {
    scan.imports.push_back({std::string(global.module), std::string(global.name), global.offset,
                            global.known >= 0 && global.odd_calls == 0, global.imports,
                            global.calls, global.instances});
  }
  if (machine.computed_calls() > 0) {
    scan.imports.push_back({std::string(kComputedModule), "", machine.first_computed_call(), false,
                            0, machine.computed_calls(), 0});
  }
  return scan;
}

}  // namespace shardwright::format::archive
