// SPDX-License-Identifier: Apache-2.0
//
// A world of which entries are removed: the weights of a model and, where nothing else lies in the
// files of some ranks, the states of its optimizer.
#pragma once

#include <memory>
#include <string>

#include "core/exec/remove_entries.h"
#include "tests/core/exec/save_world.h"

namespace shardwright::exec::test {

inline constexpr const char* kRemovedPrefix = "optimizer.";

// By three ranks, of which the last has states of the optimizer alone.
World removal_world(uint64_t number);
// What is left of it, for `stores`: nobody holds it.
World left_of(const World& world);

// Takes the states of the optimizer away.
Result<Report> remove_optimizer(Runtime& runtime, const format::Location& location);
// Whether they are among what the checkpoint lists; fails the test where none opens.
bool lists_optimizer(Runtime& runtime, const format::Location& location);

}  // namespace shardwright::exec::test
