// SPDX-License-Identifier: Apache-2.0
//
// The steps in which several ranks save or load together, one thread per rank.
#include <optional>
#include <stdexcept>
#include <thread>

#include "tests/bindings/c/interpreter.h"

namespace contract {
namespace {

std::vector<Collective> collectives(int32_t size) {
  shw_collective_group* group = nullptr;
  shw_error* error = nullptr;
  check(shw_collective_group_create(size, &group, &error), &error);
  const Owned<shw_collective_group, shw_collective_group_release> owned(group);
  std::vector<Collective> members;
  for (int32_t rank = 0; rank < size; ++rank) {
    shw_collective* member = nullptr;
    check(shw_collective_group_member(group, rank, &member, &error), &error);
    members.emplace_back(member);
  }
  return members;
}

}  // namespace

void Interpreter::run_ranks(const Json& step) {
  const Json& states = member(step, "states");
  const bool saving = text_of(step, "op") == "save_ranks";
  if (saving) last_save_ = step;
  std::vector<Collective> members = collectives(static_cast<int32_t>(states.size()));
  std::vector<std::optional<Failed>> outcomes(states.size());
  std::vector<std::thread> threads;
  const std::string path = path_of(step);
  for (size_t rank = 0; rank < states.size(); ++rank) {
    if (states[rank].is_null()) {
      // An absent rank keeps its collective unused until the others ended, or leaves at once.
      if (text_of(step, "absent") == "gone") members[rank].reset();
      continue;
    }
    const Json options = member(step, "options").is_array() ? step["options"][rank] : Json();
    shw_state* state = states_.at(text_of(states[rank])).get();
    threads.emplace_back([=, this, &outcomes, collective = members[rank].get(),
                          storage = storage_of(step)] {
      shw_report* report = nullptr;
      shw_error* error = nullptr;
      try {
        if (saving) {
          const SaveOptions save(options);
          check(shw_save(context_, state, storage, path.c_str(), collective, &save.options, &report,
                         &error),
                &error);
        } else {
          const shw_load_options load = load_options(options);
          check(
              shw_load(context_, state, storage, path.c_str(), collective, &load, &report, &error),
              &error);
        }
        shw_report_release(report);
      } catch (const Failed& failed) {
        outcomes[rank] = failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::optional<size_t> first;
  for (size_t rank = 0; rank < states.size(); ++rank) {
    if (states[rank].is_null()) continue;
    if (!first) first = rank;
    const shw_status wanted = outcomes[*first] ? outcomes[*first]->status : SHW_OK;
    const shw_status found = outcomes[rank] ? outcomes[rank]->status : SHW_OK;
    if (wanted != found) throw std::runtime_error("the ranks ended differently");
  }
  if (first && outcomes[*first]) throw *outcomes[*first];
}

}  // namespace contract
